"""lm_eval's printed table: headline metrics of our tasks first and only, everything else as lm_eval prints it."""

from __future__ import annotations

import copy
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from lm_eval import utils

from lm_eval_rag._printed_table import NOTE, print_headline
from lm_eval_rag._register import tasks_folder
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.plugin.task import RagTask
from lm_eval_rag.harness.scoring import METRICS

STOCK = getattr(utils.make_table, "__wrapped__", utils.make_table)
DECLARED = ["token_f1", "em", "acc_lm"]


def printed(results: dict[str, Any], column: str = "results", stock: Any = STOCK) -> str:
    module = cast(ModuleType, SimpleNamespace(make_table=stock))
    print_headline(module)
    print_headline(module)  # a second call changes nothing
    text: str = module.make_table(results, column)
    return text


def rows(text: str) -> list[tuple[str, str, str]]:
    """(task, metric, value) of each row, values with four digits."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:] if line[:1] == "|"]
    return [(row[0], row[4], f"{float(row[6]):.4f}") for row in cells]


def scores(*names: str) -> dict[str, Any]:
    values = {f"{name},none": i / 8 for i, name in enumerate(names)}
    return {"alias": "t", "sample_len": 4, **values, **{f"{name}_stderr,none": 0.25 for name in names}}


@pytest.fixture
def results() -> dict[str, Any]:
    ours = {"metadata": {"version": 1, "headline": DECLARED}}
    return {
        "results": {
            "both": scores("em", "token_f1") | {"alias": "both"},
            "a": scores("crag_score", "em", "mrr", "token_f1") | {"alias": "a"},
            "b": scores("em", "recall@10", "token_f1") | {"alias": "b"},
            "stock": scores("word_perplexity", "acc", "bits") | {"alias": "stock"},
        },
        "groups": {"both": scores("em", "token_f1", "mrr") | {"alias": "both"}},
        "group_subtasks": {"both": ["a", "b"]},
        "configs": {"a": ours, "b": ours, "stock": {"metadata": {"version": 2}}},
        "versions": {"a": 1, "b": 1, "stock": 2, "both": 1},
        "n-shot": {"a": 0, "b": 0, "stock": 5},
        "higher_is_better": {name: {"em": True} for name in ("a", "b", "both")},
    }


def test_headline_metrics_are_printed_first_and_only(results: dict[str, Any]) -> None:
    before = copy.deepcopy(results)
    text = printed(results)
    assert results == before, "the results themselves are left alone"
    assert text.endswith(NOTE)
    assert rows(text) == [
        *(("both", "token_f1", "0.1250"), ("", "em", "0.0000")),
        *(("- a", "token_f1", "0.3750"), ("", "em", "0.1250")),
        *(("- b", "token_f1", "0.2500"), ("", "em", "0.0000")),
        *(("stock", "acc", "0.1250"), ("", "bits", "0.2500"), ("", "word_perplexity", "0.0000")),
    ]


def test_the_table_of_groups(results: dict[str, Any]) -> None:
    text = printed(results, "groups")
    assert rows(text) == [("both", "token_f1", "0.1250"), ("", "em", "0.0000")]
    assert "±" in text and "0.25" in text and NOTE not in text


def test_tasks_without_a_headline_are_printed_as_lm_eval_does(results: dict[str, Any]) -> None:
    for config in results["configs"].values():
        config["metadata"] = None
    assert printed(results) == STOCK(results)
    results["configs"]["a"]["metadata"] = {"headline": ["not_scored"]}
    assert printed(results) == STOCK(results), "rather all scores than none"


@pytest.mark.parametrize("change", [{"configs": {}}, {"configs": None}, {"group_subtasks": {"both": ["both"]}}])
def test_whatever_goes_wrong_the_table_is_lm_evals(results: dict[str, Any], change: dict[str, Any]) -> None:
    if "group_subtasks" not in change:
        assert printed({**results, **change}) == STOCK({**results, **change})
    else:  # a group that holds itself, which lm_eval's own table may refuse too
        seen: list[Any] = []
        printed({**results, **change}, stock=lambda given, *rest: seen.append(given) or "its own")
        assert seen == [{**results, **change}]


def test_the_hook_is_in_force() -> None:
    from lm_eval_rag import _autoload

    assert _autoload.AFTER["lm_eval.utils"] == "lm_eval_rag._printed_table:print_headline"
    if _autoload.installed():
        assert hasattr(utils.make_table, "__wrapped__")


def test_every_group_has_a_row_of_its_own_and_every_declared_metric_exists() -> None:
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("!", lambda *_: None)
    files = [path for path in tasks_folder().rglob("*") if path.suffix == ".yaml" or path.name.startswith("_")]
    loaded = [yaml.load(path.read_text(), Loader) for path in files if path.is_file() and path.suffix in ("", ".yaml")]
    groups = [content for content in loaded if "group" in content]
    assert {group["group"] for group in groups} >= {"ruleqa", "crag", "multihop", "open_domain", "crp_table1"}
    for group in groups:
        aggregated = group["aggregate_metric_list"]
        assert aggregated and {one["metric"] for one in aggregated} <= set(METRICS), group["group"]
        assert not any(one["weight_by_size"] for one in aggregated), "the mean of the tasks, as papers print it"
    declared = [content["metadata"]["headline"] for content in loaded if "headline" in content.get("metadata", {})]
    assert len(declared) >= 5 and {name for names in declared for name in names} <= set(METRICS)


def test_a_task_may_declare_its_own_headline() -> None:
    config = {
        "task": "own",
        "output_type": "generate_until",
        "test_split": "test",
        "doc_to_text": "",
        "dataset_path": "",
    }
    with pytest.raises(UserError, match=r"metric in metadata: headline, 'tokenf1'.*token_f1"):
        RagTask({**config, "metadata": {"headline": ["tokenf1"]}})
