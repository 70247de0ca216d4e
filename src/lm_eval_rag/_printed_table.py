"""lm_eval's printed table, reduced to the headline metrics of our tasks, in the order in which a task declares them.

lm_eval 0.4.13 prints every metric of the results, sorted by name, and a task has no say in it; ours have about twenty.
So :func:`lm_eval.utils.make_table` is wrapped: it gets a copy of the results with the metrics that a task names under
``metadata: headline``. Other tasks are printed as before, and where anything goes wrong, so are ours. The results
themselves, in the file and in a program, stay complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

HEADLINE = "headline"  # key of a task's metadata
STDERR = "_stderr"
NOTE = (
    "\nHeadline metrics only. `--output_path DIR --log_samples` saves all scores; `lm-eval-rag report DIR` shows them "
    "with intervals.\n"
)


class Ranked(str):
    """A key of the results that is sorted by its rank, since lm_eval sorts the rows of a task by their keys."""

    rank: tuple[int, str]

    def __lt__(self, other: str) -> bool:
        return self.rank < other.rank  # type: ignore[attr-defined, no-any-return]


def print_headline(utils: Any) -> None:
    """Change ``lm_eval.utils.make_table`` as said above, once."""
    if not hasattr(utils.make_table, "__wrapped__"):
        utils.make_table = _headline_first(utils.make_table)


def _headline_first(stock: Callable[..., str]) -> Callable[..., str]:
    @wraps(stock)
    def make_table(result_dict: Mapping[str, Any], column: str = "results", *args: Any, **kwargs: Any) -> str:
        try:
            scores = {name: _shown(name, own, result_dict) for name, own in result_dict[column].items()}
            table = stock({**result_dict, column: scores}, column, *args, **kwargs)
        except Exception:  # noqa: BLE001 - a later lm_eval may build its table in another way
            return stock(result_dict, column, *args, **kwargs)
        reduced = any(len(scores[name]) < len(own) for name, own in result_dict[column].items())
        return table + (NOTE if reduced and column == "results" else "")

    return make_table


def _shown(name: str, scores: Mapping[str, Any], results: Mapping[str, Any]) -> Mapping[str, Any]:
    """The scores of one task or group that are printed; all of them if it declares none that it has."""
    declared = _declared(name, results)
    shown: dict[str, Any] = {}
    for key, value in scores.items():
        metric, comma, filter_ = key.partition(",")
        metric = metric.removesuffix(STDERR)
        if not comma:
            shown[key] = value
        elif metric in declared:
            ranked = Ranked(key)
            ranked.rank = declared.index(metric), filter_
            shown[ranked] = value
    return shown if _metrics(shown) else scores


def _declared(name: str, results: Mapping[str, Any]) -> list[str]:
    """The headline metrics of a task, or of all tasks of a group; [] if one of them declares none."""
    members = results.get("group_subtasks", {}).get(name)
    if not members:
        metadata = results["configs"].get(name, {}).get("metadata") or {}
        return list(metadata.get(HEADLINE) or ())
    by_member = [_declared(member, results) for member in members]
    return list(dict.fromkeys(metric for own in by_member for metric in own)) if all(by_member) else []


def _metrics(scores: Iterable[str]) -> list[str]:
    return [key for key in scores if "," in key and not key.partition(",")[0].endswith(STDERR)]
