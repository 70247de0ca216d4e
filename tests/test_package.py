"""What the wheel holds, and what installing, switching off and uninstalling do to a fresh environment."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lm_eval_rag import __version__
from lm_eval_rag._register import ENTRY_POINTS, MODELS

ROOT = Path(__file__).parents[1]
FOLDERS = ("harness", "tasks", "methods", "leaderboards")
SITE = Path(sysconfig.get_paths()["purelib"])
OURS = ("lm_eval_rag", "_lm_eval_rag", "lm-eval-rag")


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed, without the tests' own autoload settings and paths."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LM_EVAL_RAG_AUTOLOAD")}
    done = subprocess.run(list(command), cwd=cwd, env={**kept, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@dataclass(frozen=True)
class Environment:
    """A fresh virtual environment that sees this one's packages, but not our own."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, without: tuple[str, ...] = ()) -> "Environment":
        venv.create(folder, with_pip=False)
        made = cls(folder)
        packages = folder / "packages"
        packages.mkdir()
        for entry in SITE.iterdir():
            if not entry.name.startswith((*OURS, *without)) and entry.suffix != ".pth":
                (packages / entry.name).symlink_to(entry)
        (made.site / "packages.pth").write_text(f"{packages}\n")
        return made

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        return next((self.folder / "lib").glob("python3*/site-packages"))

    def pip(self, *arguments: str | Path) -> None:
        run(sys.executable, "-m", "pip", "--python", self.python, *arguments, cwd=self.folder)

    def install(self, *arguments: str | Path) -> None:
        """Without byte code of what no test here imports, which takes seconds."""
        self.pip("install", "--no-deps", "--no-compile", *arguments)

    def ask(self, code: str, **environment: str) -> str:
        return run(self.python, "-c", code, cwd=self.folder, **environment).stdout.strip()

    def entries(self) -> set[str]:
        """What lies in site-packages."""
        return {entry.name for entry in self.site.iterdir() if entry.name != "__pycache__"}


STORED = """
import zlib
compressor = zlib.compressobj
zlib.compressobj = lambda level, *others: compressor(0, *others)
"""


def build(folder: Path, module: str, *arguments: str | Path) -> None:
    """Run a build without compressing what it packs, which is weights for the most part and takes seconds."""
    (folder / "sitecustomize.py").write_text(STORED)
    run(sys.executable, "-m", module, *arguments, cwd=ROOT, PYTHONPATH=str(folder))


@pytest.fixture(scope="session")
def built(run_folder: Path, once: Callable[..., None]) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it."""
    folder = run_folder / "dist"

    def make() -> None:
        if not list(folder.glob("*.whl")):
            folder.mkdir(exist_ok=True)
            build(folder, "build", "--no-isolation", "--outdir", folder, ROOT)

    once("dist", make)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def tracked(*folders: str) -> set[str]:
    """The files of the project in some folders: tracked ones, and new ones that are not ignored."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("needs the git checkout: what is tracked is compared with what is packed")
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", *folders, cwd=ROOT).stdout
    return {name for name in listed.splitlines() if (ROOT / name).is_file() and not (ROOT / name).is_symlink()}


def test_wheel_holds_what_git_tracks(built: tuple[Path, Path]) -> None:
    names = set(zipfile.ZipFile(built[1]).namelist())
    packed = {name for name in names if ".dist-info/" not in name}
    left_out = ("leaderboards/entries/", "leaderboards/checkpoints/")
    files = {name for name in tracked(*FOLDERS, "src/lm_eval_rag") if not name.startswith(left_out)}
    expected = {f"lm_eval_rag/{name.removeprefix('src/lm_eval_rag/')}" for name in files}
    assert packed == expected | {"lm_eval_rag.pth", "lm_eval_rag.start"}
    assert "lm_eval_rag/py.typed" in packed


def test_sdist_holds_what_git_tracks(built: tuple[Path, Path]) -> None:
    root = f"lm_eval_rag-{__version__}/"
    with tarfile.open(built[0]) as archive:
        packed = {name.removeprefix(root) for name in archive.getnames()}
    hidden = (".github", ".pre-commit-config.yaml")
    texts = ("CONTRIBUTING.md", "README.md", "RESULTS.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "SECURITY.md")
    others = ("src", "metrics", "scripts", "tests", "docs", "Makefile", "mkdocs.yml")
    expected = tracked(*FOLDERS, *others, *hidden, *texts)
    assert packed - {"PKG-INFO", ".gitignore", "pyproject.toml", "lm_eval_rag.pth", "lm_eval_rag.start"} == expected


def test_pip_install_from_the_checkout_gives_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    build(tmp_path, "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    (direct,) = tmp_path.glob("*.whl")
    assert sorted(zipfile.ZipFile(direct).namelist()) == sorted(zipfile.ZipFile(built[1]).namelist())


def test_entry_points_are_the_table() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {group: names for group, names in project["entry-points"].items() if group.startswith("lm_eval.")}
    assert declared == ENTRY_POINTS


KNOWN = """
import json, sys
import lm_eval_rag, lm_eval_rag.harness.core.types, lm_eval_rag.tasks, lm_eval_rag.methods, lm_eval_rag.leaderboards
from importlib.metadata import entry_points
from importlib.util import find_spec
import lm_eval.models, lm_eval.tasks.manager as manager
from lm_eval.api.registry import model_registry
from lm_eval.tasks._index import TaskIndex
find = TaskIndex._iter_yaml_files  # lm_eval's own 14,000 files take 10 s and are of no interest here
own = manager.Path(manager.__file__).parent
TaskIndex._iter_yaml_files = staticmethod(lambda root: [] if root == own else find(root))
index = manager.TaskManager()._index
print(json.dumps({
    "package": lm_eval_rag.__file__,
    "stray": [name for name in ("tasks", "methods", "harness", "leaderboards") if find_spec(name)],
    "models": sorted(model_registry),
    "tasks": sorted(index.found),
    "entry points": sorted(point.name for point in entry_points(group="lm_eval.models")),
}))
"""


def check_installed(environment: Environment, package: Path) -> None:
    """lm_eval in this environment knows us without a flag, and nothing else got a new name."""
    known = json.loads(environment.ask(KNOWN))
    assert Path(known["package"]).parent == package
    assert known["stray"] == []
    assert set(MODELS) < set(known["models"]) and "hf" in known["models"]
    assert "ruleqa_demo" in known["tasks"]
    assert known["entry points"] == sorted(MODELS)
    assert environment.ask("import sys; print([n for n in sys.modules if 'rag' in n])") == "[]"  # before lm_eval is
    off = "import sys, lm_eval.models as m; from lm_eval.api.registry import model_registry as r; print(sorted(r))"
    assert "rule_vote" not in environment.ask(off, LM_EVAL_RAG_AUTOLOAD="0")
    said = run(environment.folder / "bin" / "lm-eval-rag", "doctor", "--quick", cwd=environment.folder).stdout
    assert "Nothing is wrong." in said and str(package) in said


def test_wheel_in_a_fresh_environment(built: tuple[Path, Path], tmp_path: Path) -> None:
    environment = Environment.make(tmp_path / "fresh")
    before = environment.entries()
    environment.install("--no-index", built[1])
    new = environment.entries() - before
    assert new == {"lm_eval_rag", f"lm_eval_rag-{__version__}.dist-info", "lm_eval_rag.pth", "lm_eval_rag.start"}
    check_installed(environment, environment.site / "lm_eval_rag")
    environment.pip("uninstall", "--yes", "lm-eval-rag")
    assert environment.entries() == before
    assert not list((environment.folder / "bin").glob("lm-eval-rag*"))
    assert environment.ask("import sys; print(sorted(n for n in sys.modules if 'rag' in n))") == "[]"


def test_editable_install(tmp_path: Path) -> None:
    environment = Environment.make(tmp_path / "fresh")
    before = environment.entries()
    environment.install("--no-build-isolation", "--editable", ROOT)
    check_installed(environment, ROOT / "src" / "lm_eval_rag")
    environment.pip("uninstall", "--yes", "lm-eval-rag")
    assert environment.entries() == before


def test_core_install_runs_rule_vote(built: tuple[Path, Path], tmp_path: Path) -> None:
    """No torch, no transformers: ``rule_vote`` on the embedded benchmark needs the core install only."""
    environment = Environment.make(tmp_path / "core", without=("torch", "transformers", "peft", "accelerate"))
    environment.install("--no-index", built[1])
    assert environment.ask("from importlib.util import find_spec as f; print(f('torch'), f('peft'))") == "None None"
    command = ("-m", "lm_eval", "--tasks", "ruleqa_demo", "--model", "rule_vote", "--limit", "2")
    done = run(environment.python, *command, cwd=tmp_path, LM_EVAL_RAG_CACHE=str(tmp_path / "cache"))
    assert "|ruleqa_demo|" in done.stdout
    said = run(environment.folder / "bin" / "lm-eval-rag", "doctor", "--quick", cwd=tmp_path).stdout
    lines = said.splitlines()
    line = lines[1 + next(number for number, line in enumerate(lines) if line.startswith("extra hf"))]
    assert line.strip() == (
        "not installed (missing: accelerate, peft, torch, transformers): "
        'pip install "accelerate>=1.0" "peft>=0.15" torch==2.13.0 "transformers>=4.57"'
    )


def test_checkout_without_symlinks(tmp_path: Path) -> None:
    """As on Windows and from zip archives, where the links are small text files."""
    package = tmp_path / "src" / "lm_eval_rag"
    package.mkdir(parents=True)
    for file in (ROOT / "src" / "lm_eval_rag").glob("*.py"):
        shutil.copy(file, package)
    for folder in FOLDERS:
        (package / folder).write_text(f"../../{folder}")
        shutil.copytree(ROOT / folder, tmp_path / folder)
    code = "import lm_eval_rag.harness.core.types as t, lm_eval_rag.tasks, lm_eval_rag.methods; print(t.__file__)"
    said = run(sys.executable, "-S", "-c", code, cwd=tmp_path, PYTHONPATH=str(package.parent)).stdout
    assert Path(said.strip()) == tmp_path / "harness" / "core" / "types.py"


def test_start_file_without_its_package_is_silent(built: tuple[Path, Path], tmp_path: Path) -> None:
    """A start file whose package is gone, or is an empty folder, must not disturb Python."""
    environment = Environment.make(tmp_path / "fresh")
    environment.install("--no-index", built[1])
    shutil.rmtree(environment.site / "lm_eval_rag")
    gone = run(environment.python, "-c", "print('runs')", cwd=tmp_path)
    (environment.site / "lm_eval_rag").mkdir()
    empty = run(environment.python, "-c", "print('runs')", cwd=tmp_path)
    assert (gone.stdout, gone.stderr) == (empty.stdout, empty.stderr) == ("runs\n", "")
