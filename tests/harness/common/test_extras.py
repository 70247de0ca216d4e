"""Commands that install: they name the checkout or the packages, never our name, which anybody could register."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from lm_eval_rag.harness.common import extras
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import install_line, need, requirements, versions

ROOT = Path(__file__).parents[3]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
OURS = ("harness", "src", "methods", "tasks", "leaderboards", "scripts")
METADATA = [
    "numpy>=1.26",
    'torch>=2.4; extra == "hf"',
    'peft<1,>=0.15; extra == "hf"',
    "faiss-cpu>=1.8; extra == 'dense'",
    "pyjnius>=1.7; extra == 'lucene'",
]


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As if the package was installed from a wheel, into a folder without a checkout around it."""
    place = tmp_path / "site-packages" / "lm_eval_rag" / "harness" / "common" / "extras.py"
    monkeypatch.setattr(extras, "__file__", str(place))
    monkeypatch.setattr(extras, "requires", lambda name: METADATA)
    origin(monkeypatch, None)
    return tmp_path


def origin(monkeypatch: pytest.MonkeyPatch, said: object) -> None:
    """What pip noted of the source of the install: PEP 610."""
    text = None if said is None else json.dumps(said)
    monkeypatch.setattr(extras, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))


def test_a_checkout_is_installed_by_its_path() -> None:
    assert install_line("web") == f'pip install -e "{ROOT}[web]"'
    assert install_line("lucene") == f'pip install -e "{ROOT}[lucene]" && pip install --no-deps pyserini==1.6.0'


def test_torch_is_pinned_where_it_would_come_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert install_line("dense") == f'pip install -e "{ROOT}[dense]" torch==2.13.0'
    assert install_line("web") == f'pip install -e "{ROOT}[web]"'
    monkeypatch.setattr(extras, "find_spec", lambda name: object())
    assert install_line("dense") == f'pip install -e "{ROOT}[dense]"'


def test_an_install_from_a_checkout_is_installed_by_its_path(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = wheel / "a checkout"
    checkout.mkdir()
    origin(monkeypatch, {"url": checkout.as_uri(), "dir_info": {}})
    assert install_line("lucene").startswith('pip install "pyjnius>=1.7" && ')  # the folder is no checkout any more
    (checkout / "pyproject.toml").write_text('[project]\nname = "another"')
    assert install_line("lucene").startswith('pip install "pyjnius>=1.7" && ')
    (checkout / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    assert install_line("web") == f'pip install "{checkout}[web]"'
    assert {each.name for each in requirements("dense")} > {"faiss-cpu", "torch"}


@pytest.mark.parametrize("said", [None, {"url": "file:///tmp/lm_eval_rag-0.1.0-py3-none-any.whl", "archive_info": {}}])
def test_a_wheel_names_the_packages(wheel: Path, said: object, monkeypatch: pytest.MonkeyPatch) -> None:
    origin(monkeypatch, said)
    monkeypatch.setattr(extras, "find_spec", lambda name: object())
    assert install_line("hf") == 'pip install "torch>=2.4" "peft<1,>=0.15"'
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert install_line("hf") == 'pip install torch==2.13.0 "peft<1,>=0.15"'
    assert install_line("dense") == 'pip install "faiss-cpu>=1.8"'


def test_a_package_without_metadata_still_answers(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "requires", absent)
    monkeypatch.setattr(extras, "distribution", absent)
    assert requirements("hf") == [] and install_line("lucene") == "pip install --no-deps pyserini==1.6.0"


def test_extras_within_extras_are_opened() -> None:
    names = {name: {each.name for each in requirements(name)} for name in DECLARED}
    assert names["faiss"] == {"faiss-cpu"} < names["dense"] < names["dev"]
    assert names["all"] == {"pyserini"}.union(
        *(names[name] for name in set(DECLARED) - {"gpu", "ray", "vllm", "all", "dev", "docs"})
    )
    assert not any("lm-eval-rag" in one for one in names.values()) and requirements("nosuch") == []


def test_need_says_what_to_do() -> None:
    need("This test", "dev", "json", "pytest")
    with pytest.raises(UserError, match=r"needs nosuch1, nosuch2, which are not.*`pip install -e \".*\[web\]\"`\."):
        need("This", "web", "json", "nosuch1", "nosuch2")
    with pytest.raises(UserError, match="needs nosuch1, which is not installed"):
        need("This", "web", "nosuch1")


def test_versions_name_what_is_installed() -> None:
    named = versions("pytest", "nosuch-package", "packaging")
    assert re.fullmatch(r"pytest=[\d.]+, packaging=[\d.]+", named) and versions("nosuch-package") == ""


def texts() -> Iterator[tuple[Path, str]]:
    """What users may be shown: our code, but not our tests, and the documentation."""
    files = [file for folder in OURS for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".toml", ".md")]
    for file in {file.resolve() for file in (*files, *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))}:
        yield file, file.read_text(encoding="utf-8")


def test_no_command_asks_an_index_for_our_name() -> None:
    wrong = re.compile(r"(?<!un)install[^`\n]*?[\s\"'`]lm[-_]eval[-_]rag(?=[\s\"'`\[]|$)", re.MULTILINE)
    assert wrong.search('pip install "lm-eval-rag[hf]"') and wrong.search("pip install lm-eval-rag vllm")
    shown = dict(texts())
    assert len(shown) > 200
    assert not {str(file): found.group() for file, text in shown.items() if (found := wrong.search(text))}


def test_every_extra_that_the_code_names_exists() -> None:
    named = set()
    for file, text in texts():
        for node in ast.walk(ast.parse(text)) if file.suffix == ".py" else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                place = {"install_line": 0, "need": 1}.get(node.func.id)
                if place is not None and isinstance(node.args[place], ast.Constant):
                    named.add(node.args[place].value)
    assert {"hf", "dense", "lucene", "train", "web", "serve", "vllm"} <= named <= set(DECLARED)
