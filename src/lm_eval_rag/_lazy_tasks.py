"""Makes lm_eval's TaskManager know our tasks at once, and parse lm-eval's own only when they are asked for.

lm-eval parses its 14,000 YAML files at every start, which takes 8 of its 10 seconds. Here its TaskManager first indexes
our folder and the user's ``include_path``; the rest follows when a name is looked up that is not among them, when a
pattern is matched or when all are listed. Of two tasks of one name the user's wins, then lm-eval's, then ours (a test
finds such a name). ``include_defaults=False`` is left as it is: no tasks but the user's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, MutableMapping
from functools import partial, wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from lm_eval_rag._register import tasks_folder

LISTS = ("all_tasks", "all_groups", "all_subtasks", "all_tags")


class LazyIndex(MutableMapping[str, Any]):
    """A task index that completes itself when it is asked for a name it lacks, or for all names."""

    def __init__(self, found: dict[str, Any], complete: Callable[[], dict[str, Any]]) -> None:
        self.found = found
        self._complete: Callable[[], dict[str, Any]] | None = complete

    def fill(self) -> None:
        """Complete the index; a second call does nothing."""
        if self._complete is not None:
            complete, self._complete = self._complete, None
            self.found = complete()

    def __getitem__(self, name: str) -> Any:
        if name not in self.found:
            self.fill()
        return self.found[name]

    def __setitem__(self, name: str, entry: Any) -> None:
        self.found[name] = entry

    def __delitem__(self, name: str) -> None:
        self.fill()
        del self.found[name]

    def __iter__(self) -> Iterator[str]:
        self.fill()
        return iter(self.found)

    def __len__(self) -> int:
        self.fill()
        return len(self.found)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def add_tasks(manager: ModuleType) -> None:
    """Change the class ``lm_eval.tasks.manager.TaskManager`` in place, once, so that every importer has it.

    Raises:
        AttributeError: It is not the TaskManager this was written for; it is left as it was.
    """
    cls = manager.TaskManager
    if hasattr(cls.match_tasks, "__wrapped__"):
        return
    changed = {name: _complete_first(getattr(cls, name)) for name in LISTS} | {
        "__init__": _with_ours(cls.__init__, lm_eval_folder=Path(str(manager.__file__)).parent),
        "match_tasks": _match_known_first(cls.match_tasks),
    }
    for name, value in changed.items():
        setattr(cls, name, value)


def _with_ours(stock: Callable[..., None], lm_eval_folder: Path) -> Callable[..., None]:
    """TaskManager.__init__ that indexes our folder and the user's, and leaves lm-eval's own for later."""
    signature = inspect.signature(stock)
    if not {"include_path", "include_defaults"} <= set(signature.parameters):
        raise AttributeError(f"TaskManager{signature} has no include_path or no include_defaults")

    @wraps(stock)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        call = signature.bind(self, *args, **kwargs)
        call.apply_defaults()
        if not call.arguments["include_defaults"]:
            return stock(self, *args, **kwargs)
        given = call.arguments["include_path"]
        theirs = list(given) if isinstance(given, list | tuple) else [given] if given else []

        def index(*folders: Path) -> Any:
            call.arguments.update(include_path=[*folders, *theirs], include_defaults=False)
            stock(*call.args, **call.kwargs)
            self.include_path = given
            return getattr(self, "_index", None)

        complete = partial(index, tasks_folder(), lm_eval_folder)
        quick = index(tasks_folder())
        if isinstance(quick, dict):
            self._index = LazyIndex(quick, complete)
        else:  # a later lm-eval that keeps its index elsewhere: slow, but right
            complete()

    return init


def _complete_first(stock: property) -> property:
    """A list of TaskManager that is completed before it is given."""

    def get(self: Any) -> Any:
        if isinstance(index := getattr(self, "_index", None), LazyIndex):
            index.fill()
        return stock.__get__(self)

    return property(get, doc=stock.__doc__)


def _match_known_first(stock: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """TaskManager.match_tasks that needs no complete index when every name is known as it stands."""

    @wraps(stock)
    def match_tasks(self: Any, task_list: Any) -> list[str]:
        names = [task_list] if isinstance(task_list, str) else list(task_list)
        index = getattr(self, "_index", None)
        if isinstance(index, LazyIndex) and all(name in index.found for name in names):
            return sorted(set(names))
        return stock(self, names)

    return match_tasks
