"""The papers' numbers: how many there are, a few of them as printed, and what contradicts what."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.published import COUNTERPARTS, PublishedRow, read_published
from lm_eval_rag.leaderboards.published import FOLDER, rows

# Numbers a table, counted in the papers (the dashes of a table have no row).
COUNTS = {
    "RuleRAG": {"table_2": 165, "table_3": 120, "table_4": 135, "table_5": 45, "table_6": 60}
    | {"figure_3": 58, "figure_5": 16},
    "CRAG hybrid": {"table_1": 12, "table_2": 40, "table_3": 9, "table_4": 7, "figure_3": 17, "figure_4": 21},
    "CRP-RAG": {"table_1": 160, "table_2": 8, "table_3": 20, "table_4": 16, "table_5": 8},
    "FlashRAG": {"readme": 20},
    "HippoRAG 2": {"table_2": 36, "table_3": 27},
    "Search-R1": {"table_2": 132},
}


def value(task: str, table: str, method: str, metric: str, **more: str) -> float:
    wanted = {"table": table, "method": method, "metric": metric, **more}
    (found,) = [row for row in rows(task) if all(getattr(row, key) == text for key, text in wanted.items())]
    return found.value


def test_counts() -> None:
    found = {paper: Counter(row.table for row in rows() if row.paper == paper) for paper in COUNTS}
    assert found == COUNTS
    assert [sum(tables.values()) for tables in COUNTS.values()] == [599, 106, 212, 20, 63, 132]
    assert len(rows()) == 1132


def test_other_tables() -> None:
    counts = {"rulerag_statistics": 10, "rulerag_hyperparameters": 53, "crag_hybrid_hyperparameters": 18}
    for name, wanted in counts.items():
        with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as text:
            assert len(list(csv.DictReader(text))) == wanted


def test_as_printed() -> None:
    """RuleRAG, table 2 (LLAMA2_7B); CRAG hybrid, table 1; CRP-RAG, table 1."""
    assert value("ruleqa_i", "table_2", "Standard Prompting", "em") == 1.5
    assert value("ruleqa_i", "table_2", "RuleRAG-ICL", "recall@10", generator="RG-LLAMA2_7B") == 24.2
    assert value("ruleqa_i", "table_2", "RuleRAG-ICL", "em", generator="RG-LLAMA2_7B") == 9.8
    assert value("crag_task1", "table_1", "Official LLM Baseline", "crag_score") == -67.6
    assert value("rag_webquestions", "table_1", "CRP-RAG", "token_f1") == 75.6
    assert value("rag_nq", "readme", "Standard RAG", "squad_em") == 35.1
    assert value("2wikimultihopqa_hipporag", "table_3", "BM25", "evidence_recall@5") == 65.3
    assert value("bamboogle", "table_2", "Search-R1-base", "squad_em", generator="Qwen2.5-7b-Base/Instruct") == 43.2


def test_search_r1s_numbers_have_the_printed_averages() -> None:
    """Search-R1, table 2, averages over seven datasets; PopQA is no task here, so it is given with the average."""
    popqa = {"RAG": (0.392, 0.304), "Search-R1-base": (0.457, 0.431), "Search-R1-instruct": (0.397, 0.385)}
    for method, (left_out, average) in popqa.items():
        wanted = {"paper": "Search-R1", "method": method, "generator": "Qwen2.5-7b-Base/Instruct"}
        found = [row.value / 100 for row in rows() if all(getattr(row, key) == text for key, text in wanted.items())]
        assert (sum(found) + left_out) / 7 == pytest.approx(average, abs=0.0006)


def test_a_metric_of_the_same_name_may_mean_something_else() -> None:
    """CRP-RAG's EM is 1 if the gold answer occurs anywhere in the output (section 4.2)."""
    by_paper = {row.paper: row.counterpart for row in rows() if row.metric == "em"}
    assert by_paper == {"RuleRAG": "em", "CRP-RAG": "em_contains"}
    assert {row.paper for row in rows() if row.read_otherwise} == {"RuleRAG"}
    assert all(bool(row.read_otherwise) == (row.metric == "em") for row in rows() if row.paper == "RuleRAG")


def test_rulerags_f1_is_no_token_f1() -> None:
    """An exact match has a token F1 of 1, so that no mean token F1 is below EM; every cell where it is has a doubt."""
    cells: dict[tuple[str, ...], dict[str, PublishedRow]] = {}
    for row in (row for row in rows() if row.paper == "RuleRAG"):
        key = (row.table, row.task, row.method, row.retriever or "", row.generator, row.note)
        cells.setdefault(key, {})[row.metric] = row
    both = [cell for cell in cells.values() if {"em", "token_f1"} <= set(cell)]
    below = [cell["token_f1"] for cell in both if cell["token_f1"].value < cell["em"].value]
    assert (len(both), len(below)) == (200, 29)
    assert below == [row for row in rows() if any("29 of the 200" in doubt for doubt in row.doubts)]
    assert {cell["token_f1"].counterpart for cell in both} == {None}
    others = {row.counterpart for row in rows() if row.metric == "token_f1" and row.paper != "RuleRAG"}
    assert others == {"token_f1"}


def test_every_row_is_named_once_and_in_range() -> None:
    keys = [(r.paper, r.table, r.task, r.method, r.retriever, r.generator, r.metric, r.note) for r in rows()]
    assert len(set(keys)) == len(keys)
    for row in rows():
        assert row.unit in ("%", "points", "")
        low = -100 if row.unit == "points" or row.metric == "crag_score" else 0
        assert low <= row.value <= (100 if row.unit else 10_000)  # a perplexity has no unit


def test_names() -> None:
    ours = {row.ours: row.method for row in rows("ruleqa_i") if row.ours}
    assert ours["standard_prompting"] == "Standard Prompting"
    assert ours["standard_rag"] == "Standard RAG"
    assert ours["rulerag_icl"] == "RuleRAG-ICL"
    with (FOLDER / "names.csv").open(encoding="utf-8", newline="") as text:
        for line in csv.DictReader(text):
            assert any(row.ours == line["method"] and row.method == line["printed"] for row in rows()), line


def test_every_contradiction_touches_a_number_and_quotes_it() -> None:
    with (FOLDER / "contradictions.csv").open(encoding="utf-8", newline="") as text:
        doubts = [line["doubt"] for line in csv.DictReader(text)]
    for doubt in doubts:
        touched = [row for row in rows() if doubt in row.doubts]
        assert touched, doubt
        if "by T-F1 in table 2" not in doubt:  # which is about many numbers at once
            assert any(f"{row.value:g}" in doubt for row in touched), doubt
    assert sum(bool(row.doubts) for row in rows()) < 90


def test_counterparts_are_metrics_of_ours() -> None:
    from lm_eval_rag.harness.scoring import METRICS

    assert set(COUNTERPARTS.values()) <= set(METRICS)
    assert set(COUNTERPARTS) <= {row.metric for row in rows()}


@pytest.mark.parametrize(
    ("text", "says"),
    [("a,b\n1,2\n", "lacks the columns"), (None, "does not exist"), ("bad value", "is not a number")],
)
def test_spoilt_files(tmp_path: Path, text: str | None, says: str) -> None:
    for file in FOLDER.glob("*.csv"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    path = tmp_path / "crp_rag.csv"
    if text is None:
        path.unlink()
    elif text == "bad value":
        path.write_text(path.read_text(encoding="utf-8").replace(",33.0,", ",33.o,"), encoding="utf-8")
    else:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=says):
        read_published(tmp_path)
