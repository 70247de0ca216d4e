"""Who may import whom, and what must not be imported before it is needed."""

import ast
import subprocess
import sys
from collections.abc import Container, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("harness", "tasks", "methods", "leaderboards")
ALLOWED = {  # folder -> what of ours it may import (ARCHITECTURE: "The house")
    "harness": {"harness"},
    "tasks": {"harness", "tasks"},
    "methods": {"harness", "methods"},
    "leaderboards": {"harness", "tasks", "leaderboards"},
}
FLOORS = (  # rooms of harness/; each may import rooms of lower floors, and itself
    ("common",),
    ("checkpoints", "core"),
    ("data", "generators", "kg"),
    ("retrieval", "scoring", "systems"),
    ("rules", "web", "report", "hub"),
    ("backends", "documents", "view"),
    ("plugin",),
    ("train",),
    ("reproduce",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
HEAVY = {"torch", "transformers", "faiss", "datasets", "polars", "numba", "bm25s", "pyarrow"}
INSIDE_FUNCTIONS = {
    "torch",
    "transformers",
    "faiss",
    "numba",
    "peft",
    "trl",
    "accelerate",
    "bitsandbytes",
    "sentence_transformers",
    "sklearn",
    "umap",
    "graspologic_native",
    "matplotlib",
    "jnius",
    "pyserini",
    "trafilatura",
    "resiliparse",
    "bs4",
    "lxml",
    "blingfire",
    "fastapi",
    "uvicorn",
    "pydantic",
    "ray",
}
MODULES = sorted(file for folder in (*FOLDERS, "src/lm_eval_rag") for file in (ROOT / folder).rglob("*.py"))
MODULES = [file for file in MODULES if not any(part.is_symlink() for part in file.parents)]

IN_HARNESS = [
    file for file in MODULES if file.relative_to(ROOT).parts[0] == "harness" and len(file.relative_to(ROOT).parts) > 2
]


parsed = cache(ast.parse)  # four tests look at each file


def imported(tree: ast.AST, *, top_level: bool = False) -> Iterator[str]:
    """The modules a file imports, in dotted form; with ``top_level`` those alone that its own import brings."""
    for node in ast.walk(tree) if not top_level else at_import(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and called(node).endswith(("import_module", "__import__")):
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


def called(call: ast.Call) -> str:
    """The last name of what is called: ``import_module`` of ``importlib.import_module(...)``; "" without a name."""
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are executed on import: bodies of functions and of ``if TYPE_CHECKING`` are not."""
    yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    for child in ast.iter_child_nodes(node):
        yield from at_import(child)


def folder_of(module: str) -> str | None:
    """``harness`` for ``lm_eval_rag.harness.core`` and ``harness.core``, ``cli`` for ``lm_eval_rag.cli``; or None."""
    first, *rest = module.split(".")
    if first == "lm_eval_rag":
        return rest[0] if rest and rest[0] != "__version__" else None
    return first if first in FOLDERS else None


def wrong_arrows(folder: str, source: str) -> set[str]:
    """The imports of a file in ``folder`` that the house forbids."""
    found = set(imported(parsed(source)))
    return {name for name in found if (to := folder_of(name)) is not None and to not in ALLOWED[folder]}


def room_of(module: str) -> str | None:
    """``core`` for ``lm_eval_rag.harness.core.types``; None outside of harness."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["lm_eval_rag", "harness"] and len(parts) > 2 else None


def upward(room: str, source: str) -> set[str]:
    """The rooms a file in ``room`` imports that do not stand on a lower floor; itself excepted."""
    rooms = {to for name in imported(parsed(source)) if (to := room_of(name)) is not None}
    return {to for to in rooms - {room} if FLOOR.get(to, len(FLOORS)) >= FLOOR[room]}


def test_the_walk_sees_every_module() -> None:
    assert {file.relative_to(ROOT).parts[0] for file in MODULES} == {*FOLDERS, "src"}
    assert ROOT / "harness/core/types.py" in MODULES
    assert len(MODULES) == len(set(MODULES))


def test_arrows() -> None:
    """All files in one test, as in those below: a test for each file costs more than what it checks."""
    files = [file for file in MODULES if file.relative_to(ROOT).parts[0] in ALLOWED]
    wrong = {file: wrong_arrows(file.relative_to(ROOT).parts[0], file.read_text()) for file in files}
    assert len(wrong) > 500 and not {str(file): names for file, names in wrong.items() if names}


def test_every_room_stands_on_a_floor() -> None:
    assert {path.name for path in (ROOT / "harness").iterdir() if (path / "__init__.py").is_file()} == set(FLOOR)
    assert [path.name for path in (ROOT / "harness").glob("*.py")] == ["__init__.py"]


def test_imports_only_go_down() -> None:
    """So there is no circle between rooms either: two on one floor do not import each other."""
    found = {file: upward(file.relative_to(ROOT).parts[1], file.read_text()) for file in IN_HARNESS}
    assert len(found) > 300 and not {str(file): rooms for file, rooms in found.items() if rooms}


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("core", "from lm_eval_rag.harness.data.corpus import Corpus"),
        ("core", "def f():\n    from lm_eval_rag.harness import plugin"),
        ("core", "from lm_eval_rag.harness.checkpoints import note"),
        ("web", "import lm_eval_rag.harness.rules.bank"),
        ("train", "from importlib import import_module\nimport_module('lm_eval_rag.harness.reproduce.page')"),
        ("common", "from lm_eval_rag.harness.new_room.thing import x"),
    ],
)
def test_an_upward_import_is_found(room: str, source: str) -> None:
    assert upward(room, source)


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Circles between files, imports inside functions and under ``TYPE_CHECKING`` included."""
    names = {".".join(("lm_eval_rag", *file.relative_to(ROOT).with_suffix("").parts)): file for file in IN_HARNESS}
    names = {name.removesuffix(".__init__"): file for name, file in names.items()}
    list(TopologicalSorter({name: modules_of(file, names) - {name} for name, file in names.items()}).static_order())


def modules_of(file: Path, names: Container[str]) -> set[str]:
    """Those of ``names`` that a file imports; of ``from package import module`` the module alone."""
    modules = set()
    for node in ast.walk(parsed(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            modules |= {name for name in whole if name in names} or {str(node.module)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return {name for name in modules if name in names}


def test_heavy_libraries_are_imported_inside_functions() -> None:
    found = {file: heavy_at_import(file) for file in MODULES}
    assert len(found) > 500 and not {str(file): names for file, names in found.items() if names}


def heavy_at_import(file: Path) -> set[str]:
    """The heavy libraries that the import of a file brings, though it may not."""
    top = {name.split(".")[0] for name in imported(parsed(file.read_text()), top_level=True)}
    # The forms of submissions are classes of pydantic; only the commands that read them import that room.
    allowed = {"pydantic"} if file.parent == ROOT / "leaderboards" / "submissions" else set()
    return top & INSIDE_FUNCTIONS - allowed


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("harness", "from lm_eval_rag.tasks.ruleqa import build"),
        ("harness", "def f():\n    import lm_eval_rag.methods.rule_vote"),
        ("harness", "from lm_eval_rag import methods"),
        ("tasks", "from lm_eval_rag import methods"),
        ("methods", "from importlib import import_module\nimport_module('lm_eval_rag.tasks.ruleqa')"),
        ("leaderboards", "import lm_eval_rag.methods"),
        ("methods", "import tasks.ruleqa"),
        ("harness", "from lm_eval_rag import _register"),
    ],
)
def test_a_wrong_arrow_is_found(folder: str, source: str) -> None:
    assert wrong_arrows(folder, source)


def test_a_top_level_import_is_told_from_a_late_one() -> None:
    late = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\ndef f():\n    import torch"
    assert "torch" not in set(imported(ast.parse(late), top_level=True))
    assert "torch" in set(imported(ast.parse("class A:\n    import torch"), top_level=True))
    assert "torch.nn" in set(imported(ast.parse("try:\n    from torch import nn\nexcept E:\n    pass"), top_level=True))


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that a fresh Python has loaded after a statement."""
    code = f"{statement}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_package_alone_is_light() -> None:
    loaded = loaded_by("import lm_eval_rag")
    assert "lm_eval_rag" in loaded
    assert not loaded & {*HEAVY, "numpy", "lm_eval"}


def test_all_of_harness_is_imported_without_torch() -> None:
    names = [
        ".".join(("lm_eval_rag", *file.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for file in MODULES
        if file.relative_to(ROOT).parts[0] in ("harness", "methods", "tasks", "leaderboards")
    ]
    loaded = loaded_by("import " + ", ".join(names))
    assert "lm_eval_rag" in loaded
    assert not loaded & {"torch", "transformers", "faiss", "numba"}


def test_autoload_imports_nothing_that_python_has_not_at_start() -> None:
    code = (
        "import sys; before = set(sys.modules); import lm_eval_rag._autoload as a; a.install()\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    command = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); import os\n{code}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["lm_eval_rag", "lm_eval_rag._autoload"]
