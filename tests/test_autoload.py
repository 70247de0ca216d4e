"""How lm_eval comes to know us: the hook, the registry, the lazy task index, what a failure does."""

import importlib.util
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from lm_eval.api.registry import Registry

from lm_eval_rag import _autoload, _lazy_tasks, _models, _register

TASK = "task: {name}\ntag: {tag}\noutput_type: generate_until\n"


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh Python without a start file's help: it installs the hook itself."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


# --- the hook


def test_install_is_idempotent_and_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if finder is not _autoload.HOOK])
    monkeypatch.setattr(_autoload, "AFTER", {})
    for value in ("0", "false", "OFF", " no "):
        monkeypatch.setenv("LM_EVAL_RAG_AUTOLOAD", value)
        _autoload.install()
        assert not _autoload.installed()
    monkeypatch.delenv("LM_EVAL_RAG_AUTOLOAD")
    _autoload.install()
    _autoload.install()
    assert sys.meta_path.count(_autoload.HOOK) == 1


def test_targets_of_the_hook_exist() -> None:
    for target in _autoload.AFTER.values():
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function))
    assert set(_autoload.AFTER) >= {"lm_eval.models", "lm_eval.tasks.manager"}


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ModuleType]:
    """A module ``probed`` that the hook watches, and the list of what the hook was called with."""
    (tmp_path / "probed.py").write_text("value = 1\n")
    called: list[ModuleType] = []
    target = ModuleType("probe_target")
    target.report = called.append  # type: ignore[attr-defined]
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "probe_target", target)
    monkeypatch.setattr(_autoload, "AFTER", {"probed": "probe_target:report"})
    monkeypatch.setattr(_autoload, "failures", {})
    monkeypatch.setattr(sys, "meta_path", [_autoload.HOOK, *(f for f in sys.meta_path if f is not _autoload.HOOK)])
    monkeypatch.delitem(sys.modules, "probed", raising=False)
    return called


def test_hook_calls_after_execution_and_after_a_reload(probe: list[ModuleType]) -> None:
    assert importlib.util.find_spec("probed") is not None
    assert probe == []
    module = importlib.import_module("probed")
    assert probe == [module] and module.value == 1
    importlib.reload(module)
    assert probe == [module, module]
    del sys.modules["probed"]


def test_late_install_serves_what_is_imported_already(probe: list[ModuleType]) -> None:
    sys.meta_path.remove(_autoload.HOOK)
    module = importlib.import_module("probed")
    _autoload.install()
    assert probe == [module]
    del sys.modules["probed"]


def test_a_failure_becomes_one_warning(probe: list[ModuleType], caplog: pytest.LogCaptureFixture) -> None:
    _autoload.AFTER["probed"] = "probe_target:is_not_there"
    module = importlib.import_module("probed")
    importlib.reload(module)
    assert module.value == 1
    (record,) = caplog.records
    assert "is_not_there" in record.getMessage() and "LM_EVAL_RAG_AUTOLOAD=0" in record.getMessage()
    assert "is_not_there" in _autoload.failures["probed"]
    del sys.modules["probed"]


def test_lm_eval_runs_on_when_everything_of_ours_fails() -> None:
    code = """
import lm_eval_rag._autoload as a
for name in a.AFTER: a.AFTER[name] = "lm_eval_rag._nowhere:f"
a.install()
import lm_eval.models, lm_eval.evaluator, lm_eval._cli
from lm_eval.api.registry import get_model
from lm_eval.tasks import TaskManager
print(get_model("dummy").__name__, len(TaskManager(include_defaults=False).all_tasks))
"""
    done = python(code)
    assert (done.returncode, done.stdout) == (0, "DummyLM 0\n"), done.stderr
    assert done.stderr.count("lm-eval-rag could not show itself") == 1


# --- the models


def test_models_are_registered_after_the_built_in_ones() -> None:
    code = """
import lm_eval_rag._autoload as a; a.install()
from lm_eval.api.registry import get_model, model_registry
assert not len(model_registry)
print(get_model("dummy").__name__)
print(*[name for name in model_registry if model_registry._objs[name] == f"lm_eval_rag._models:{name}"])
"""
    done = python(code)
    assert done.stdout.split() == ["DummyLM", *_register.MODELS], done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("name", _register.MODELS)
def test_every_model_is_made_of_its_method(name: str) -> None:
    from lm_eval.api.model import LM

    made = getattr(_models, name)
    assert issubclass(made, LM)
    assert getattr(_models, name) is made
    assert name in dir(_models)


def test_a_model_that_is_none() -> None:
    with pytest.raises(AttributeError, match="rule_votee"):
        _models.rule_votee  # noqa: B018


@pytest.mark.parametrize(
    "held",
    [
        "lm_eval_rag._models:rule_vote",
        EntryPoint("rule_vote", "lm_eval_rag._models:rule_vote", "lm_eval.models"),
        type("rule_vote", (), {"__module__": "lm_eval_rag._models"}),
    ],
)
def test_silent_when_upstream_found_us(held: Any, caplog: pytest.LogCaptureFixture) -> None:
    registry: Any = Registry("model")
    registry.register("rule_vote", target=held)
    _register._add(registry, "rule_vote", "lm_eval_rag._models:rule_vote")
    assert dict(registry.items()) == {"rule_vote": held}
    assert not caplog.records


def test_somebody_elses_model_stays(caplog: pytest.LogCaptureFixture) -> None:
    registry: Any = Registry("model")
    registry.register("rule_vote", target="theirs:Model")
    _register._add(registry, "rule_vote", "lm_eval_rag._models:rule_vote")
    assert dict(registry.items()) == {"rule_vote": "theirs:Model"}
    assert "already registered" in caplog.text


# --- the tasks


class Folders:
    """Three folders of tasks (lm-eval's, ours, the user's) and a TaskManager module, stock or with ours added."""

    def __init__(self, root: Path) -> None:
        self.lm_eval, self.ours, self.user = root / "lm_eval", root / "ours", root / "user"
        for folder, names in ((self.lm_eval, "a b both"), (self.ours, "o1 o2 both mine"), (self.user, "u mine")):
            folder.mkdir()
            for name in names.split():
                (folder / f"{name}.yaml").write_text(TASK.format(name=name, tag=f"tag_{folder.name}"))
        (self.ours / "g.yaml").write_text("group: og\ntask:\n  - o1\n  - o2\n")
        self.parsed: list[str] = []

    def manager(self, *, added: bool) -> Any:
        import lm_eval.tasks.manager as loaded

        spec = importlib.util.spec_from_file_location("stock_manager", loaded.__file__)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.__file__ = str(self.lm_eval / "manager.py")
        if added:
            _lazy_tasks.add_tasks(module)
            _lazy_tasks.add_tasks(module)
        return module.TaskManager


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    from lm_eval.tasks._index import TaskIndex

    made = Folders(tmp_path)
    find = TaskIndex._iter_yaml_files
    monkeypatch.setattr(_lazy_tasks, "tasks_folder", lambda: made.ours)
    monkeypatch.setattr(
        TaskIndex, "_iter_yaml_files", staticmethod(lambda root: made.parsed.append(Path(root).name) or find(root))
    )
    return made


def test_our_names_need_no_other_folder(folders: Folders) -> None:
    manager = folders.manager(added=True)()
    assert manager.match_tasks(["o1", "og"]) == ["o1", "og"]
    assert manager.match_tasks("o2") == ["o2"]
    assert manager._entry("o1").yaml_path == folders.ours / "o1.yaml"
    assert "og" in manager.task_index and manager.include_path is None
    assert folders.parsed == ["ours"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda manager: manager._entry("a").name == "a",
        lambda manager: manager.match_tasks(["a"]) == ["a"],
        lambda manager: manager.match_tasks(["o*"]) == ["o1", "o2", "og"],
        lambda manager: manager.match_tasks(["nothing"]) == [],
        lambda manager: {"a", "b", "o1", "og", "tag_ours"} <= set(manager.all_tasks),
        lambda manager: set(manager.all_subtasks) == {"a", "b", "both", "mine", "o1", "o2"},
        lambda manager: manager.all_groups == ["og"],
        lambda manager: manager.all_tags == ["tag_lm_eval", "tag_ours"],
        lambda manager: len(manager.task_index) == 9 == len({**manager.task_index}),
        lambda manager: manager.task_index.get("nothing") is None,
        lambda manager: "| b " in manager.list_all_tasks().replace("|b ", "| b "),
    ],
)
def test_any_other_name_completes_the_index(folders: Folders, ask: Any) -> None:
    assert ask(folders.manager(added=True)())
    assert sorted(folders.parsed) == ["lm_eval", "ours", "ours"]


def test_completed_it_is_what_stock_gives_and_ours(folders: Folders) -> None:
    ours = folders.manager(added=True)(include_path=str(folders.user))
    stock = folders.manager(added=False)(include_path=str(folders.user))
    assert ours.include_path == stock.include_path == str(folders.user)
    assert set(stock.all_tasks) < set(ours.all_tasks)
    assert {name: ours.task_index[name] for name in stock.task_index} == dict(stock.task_index)
    assert ours.task_index["both"].yaml_path == folders.lm_eval / "both.yaml"
    assert ours.task_index["mine"].yaml_path == folders.user / "mine.yaml"
    assert ours.task_index["o1"].yaml_path == folders.ours / "o1.yaml"


def test_the_users_tasks_are_known_at_once_and_win(folders: Folders) -> None:
    manager = folders.manager(added=True)(include_path=[str(folders.user)])
    assert manager._entry("mine").yaml_path == folders.user / "mine.yaml"
    assert manager.match_tasks(["u", "o1"]) == ["o1", "u"]
    assert "lm_eval" not in folders.parsed


def test_without_defaults_there_is_nothing_of_ours(folders: Folders) -> None:
    manager = folders.manager(added=True)(include_defaults=False, include_path=folders.user)
    assert manager.all_subtasks == ["mine", "u"]
    assert folders.manager(added=True)(None, None, False).all_tasks == []


def test_a_manager_can_be_pickled(folders: Folders) -> None:
    manager = folders.manager(added=True)(metadata={"k": 1})
    copy = pickle.loads(pickle.dumps(manager._index))
    assert copy == dict(manager.task_index)
    assert manager.metadata == {"k": 1}


def test_another_task_manager_is_left_alone_or_served_slowly(folders: Folders) -> None:
    class Foreign:
        all_tasks = all_groups = all_subtasks = all_tags = property(lambda self: sorted(self.kept))

        def __init__(self, include_path: Any = None, include_defaults: bool = True) -> None:
            self.kept = include_path

        def match_tasks(self, task_list: list[str]) -> list[str]:
            return [*task_list, *map(str, self.kept)]

    module: Any = ModuleType("foreign")
    module.TaskManager, module.__file__ = Foreign, str(folders.lm_eval / "manager.py")
    _lazy_tasks.add_tasks(module)
    assert Foreign(include_path=["u"]).match_tasks(["x"]) == ["x", str(folders.ours), str(folders.lm_eval), "u"]
    stock = Foreign.__init__ = lambda self: None  # type: ignore[misc, assignment]
    Foreign.match_tasks = lambda self, task_list: []  # type: ignore[method-assign]
    with pytest.raises(AttributeError, match="include_defaults"):
        _lazy_tasks.add_tasks(module)
    assert Foreign.__init__ is stock


def test_no_name_of_ours_is_one_of_lm_evals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of lm-eval's 14,000 files those alone are parsed that hold one of our names as a word, or hellaswag."""
    import lm_eval.tasks
    from lm_eval.tasks import TaskManager
    from lm_eval.tasks._index import TaskIndex

    ours = TaskIndex.build([_register.tasks_folder()])
    assert "ruleqa_demo" in ours
    theirs = Path(lm_eval.tasks.__file__).parent
    named = re.compile(rf"\b(?:{'|'.join(ours)})\b".encode())
    find, sizes = TaskIndex._iter_yaml_files, []

    def mentioning(root: Path) -> Iterator[Path]:
        files = list(find(root))
        sizes.append(len(files))
        for file in files:
            text = file.read_bytes()
            if root != theirs or named.search(text) or b"task: hellaswag\n" in text:
                yield file

    monkeypatch.setattr(TaskIndex, "_iter_yaml_files", staticmethod(mentioning))
    included = [file for file in theirs.rglob("*") if file.is_file() and file.suffix in ("", ".yml", ".json")]
    assert not [file for file in included if named.search(file.read_bytes())]  # else parse what includes them, too
    every = TaskManager(include_path=None).task_index
    assert "hellaswag" in every and max(sizes) > 10_000
    for name, entry in ours.items():
        assert (every[name].yaml_path, every[name].tags) == (entry.yaml_path, entry.tags)


# --- start-up


def test_torch_is_seeded_when_it_is_imported() -> None:
    if not importlib.util.find_spec("torch"):
        pytest.skip("needs torch")
    code = """
import lm_eval_rag._autoload as a; a.install()
import sys, lm_eval.evaluator as e
e.set_torch_seed(7); e.set_torch_seed(11)
assert "torch" not in sys.modules
import torch
first = torch.rand(3).tolist()
e.set_torch_seed(11)
print(torch.initial_seed(), first == torch.rand(3).tolist())
"""
    done = python(code)
    assert done.stdout == "11 True\n", done.stderr


def test_the_machine_is_described_without_torch() -> None:
    code = """
import lm_eval_rag._autoload as a; a.install()
import sys, lm_eval.evaluator as e, lm_eval.utils as u
storage = {"config": {"model": "rule_vote"}}
before = u.is_torch_available
e.add_env_info(storage)
assert u.is_torch_available is before and not {"torch", "transformers"} & set(sys.modules)
print(sorted(storage)); print(storage["pretty_env_info"])
"""
    done = python(code)
    assert "'lm_eval_version', 'pretty_env_info', 'transformers_version', 'upper_git_hash'" in done.stdout, done.stderr
    assert "not imported by this run" in done.stdout and "Python version" in done.stdout


# --- the start file


def test_the_start_file_reads_nothing_until_lm_eval_is_imported() -> None:
    line = (Path(__file__).parents[1] / "lm_eval_rag.pth").read_text().strip()
    assert line.startswith("import ") and "\n" not in line  # what site runs
    rag = "sorted(name for name in sys.modules if 'rag' in name)"
    code = f"""
import os, sys
before = set(sys.modules)
exec({line!r})
print({rag}, set(sys.modules) - before)
import json.tool, lm_eval_rag._autoload as autoload
print(autoload.waiting(), autoload.installed())
import lm_eval
print(autoload.installed(), sys.meta_path.count(autoload.HOOK))
"""
    said = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}\n{code}"], capture_output=True, text=True
    )
    first, second, third = said.stdout.splitlines()[:3]
    assert first == "[] set()", said  # it imports nothing
    assert (second, third) == ("True False", "True 1"), said
    off = f"import sys; before = len(sys.meta_path); exec({line!r}); print(len(sys.meta_path) - before)"
    environment = {**os.environ, "LM_EVAL_RAG_AUTOLOAD": "0"}
    assert subprocess.check_output([sys.executable, "-S", "-c", off], env=environment) == b"0\n"


def test_the_start_file_without_its_package_lets_lm_eval_be_found(tmp_path: Path) -> None:
    line = (Path(__file__).parents[1] / "lm_eval_rag.pth").read_text()
    (tmp_path / "lm_eval.py").write_text("print('found')")
    (tmp_path / "lm_eval_rag").mkdir()  # an empty folder, as after a failed uninstall
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{line}\nsys.path.insert(0, {str(tmp_path)!r})\nimport lm_eval"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (said.stdout, said.stderr) == ("found\n", "")
