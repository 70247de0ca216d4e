"""Recorded scores: every number of a page stands in the file that the page names."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "docs_site"))

from recorded_results import Recorded, of_page, of_results, published_of_methods, recorded  # noqa: E402
from results_section import of_method, of_task  # noqa: E402

TABLE = """title = "A table"
source = "table_2"
metrics = ["em", "recall@10"]
tasks = ["ruleqa_i", "ruleqa_f"]

[[row]]
name = "one"
label = "Standard RAG, BM25"
model = "standard_rag"
"""
PAGE = """A table
=======

Claims
------

One beats two
              n  difference
--------  --  ---  --------------------------------
ruleqa_i  em  500  +0.2 [-2.6, 2.8] not significant

em

                                   ruleqa_i       ruleqa_f
------------------  -----------------------  -------------
Standard RAG, BM25  16.6 [13.4, 20.0] n=500            0.0
  paper                                9.8!           19.0
A row that is gone         -1.5 [-2.0, 1.0]

Why answers are wrong

                              n  rule failure
--------  ------------------  ---  ------------
ruleqa_i  Standard RAG, BM25  417    208 (50 %)
"""
RESULTS = """# Results

## Rules

All questions:

| em, all questions | ruleqa_i | `ruleqa_f` |
| --- | ---: | ---: |
| `rulerag_icl`, BM25 | 15.1 [13.3, 16.9] | |
| - without rules (`standard_rag`) | 1,234.5 | 2.0 |
| - random rules | 3.0 [1.0, 5.0] | 4.0 |
| published RuleRAG | 20.5 | 44.6 |
| RGFT - SSFT, paired | -8.3 [-9.5, -7.1] | 1.0 |

### Retrievers

Over `fever_345`:

| task | retriever | evidence recall@5 | seconds |
|---|---|---:|---:|
| `hotpotqa_200` | bm25 | 0.728 [0.690, 0.765] | 5.0 |

| method | em | em, direct |
| --- | ---: | ---: |
| `ircot` | 12.5 [2.5, 22.5] | 9.0 |
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one reproduced page."""
    for folder, name, text in (("reproduce", "mine.toml", TABLE), ("reproduced", "mine.txt", PAGE)):
        path = tmp_path / "leaderboards" / folder / name
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_a_reproduced_page(project: Path) -> None:
    source, row = "leaderboards/reproduced/mine.txt", "Standard RAG, BM25"
    assert list(of_page(project / source, project)) == [
        Recorded("ruleqa_i", "standard_rag", row, "em", "16.6", "[13.4, 20.0]", "500", source),
        Recorded("ruleqa_f", "standard_rag", row, "em", "0.0", "", "", source),
        Recorded("ruleqa_i", "", "A row that is gone", "em", "-1.5", "[-2.0, 1.0]", "", source),
    ]


def test_a_page_on_older_data_says_so(project: Path) -> None:
    (project / "leaderboards" / "reproduced" / "older.toml").write_text('[ruleqa]\nversion = 3\npages = ["mine"]\n')
    sources = {one.source for one in of_page(project / "leaderboards/reproduced/mine.txt", project)}
    assert sources == {"leaderboards/reproduced/mine.txt (ruleqa data version 3)"}


def test_the_tables_of_results() -> None:
    found = [(one.task, one.method, one.row, one.metric, one.value, one.interval) for one in of_results(RESULTS)]
    icl = "rulerag_icl, BM25"
    assert found == [
        ("ruleqa_i", "rulerag_icl", icl, "em", "15.1", "[13.3, 16.9]"),
        ("ruleqa_i", "standard_rag", f"{icl}; without rules (standard_rag)", "em", "1,234.5", ""),
        ("ruleqa_f", "standard_rag", f"{icl}; without rules (standard_rag)", "em", "2.0", ""),
        ("ruleqa_i", "rulerag_icl", f"{icl}; random rules", "em", "3.0", "[1.0, 5.0]"),
        ("ruleqa_f", "rulerag_icl", f"{icl}; random rules", "em", "4.0", ""),
        ("hotpotqa_200", "", "bm25", "evidence_recall@5", "72.8", "[69.0, 76.5]"),
        ("hotpotqa_200", "ircot", "ircot", "em", "12.5", "[2.5, 22.5]"),
    ]
    assert [one.source for one in of_results(RESULTS)][-1] == "RESULTS.md: Retrievers"


def test_every_number_of_the_project_stands_in_its_source() -> None:
    scores = recorded(ROOT)
    assert len(scores) > 1500 and {"rule_vote", "crag_hybrid", "ircot"} < {one.method for one in scores}
    texts = {one.source: "" for one in scores}
    for source in texts:
        file = ROOT / source.partition(":")[0].partition(" (")[0]
        texts[source] = file.read_text(encoding="utf-8") if file.is_file() else ""
    for one in scores:
        shares = one.source.startswith("RESULTS.md: Retrieval on the tasks")
        if texts[one.source] and not shares:
            assert f"{one.value} {one.interval}".strip() in texts[one.source], one
    assert [source for source, text in texts.items() if not text] == ["leaderboards/entries"]


def test_entries_of_the_board_have_the_scores_of_todays_scorers() -> None:
    """If this finds none, the scorers have changed since the last ``make board``."""
    votes = {
        one.metric: one
        for one in recorded(ROOT)
        if one.source.endswith("entries") and (one.task, one.method) == ("ruleqa_demo", "rule_vote")
    }
    predictions = (ROOT / "leaderboards/entries/rule-vote/predictions/ruleqa_demo.jsonl").read_text(encoding="utf-8")
    assert len(predictions.splitlines()) == 200
    low, high = map(float, re.findall(r"[\d.]+", votes["em"].interval))
    assert low < float(votes["em"].value) < high and float(votes["em"].value) * 2 % 1 == 0


def test_published_numbers_stand_apart() -> None:
    numbers = published_of_methods(ROOT)
    assert {one.paper for one in numbers["ircot"]} >= {"CRP-RAG", "FlashRAG"}
    section = of_method("ircot", "lm_eval ...", ROOT)
    ours, _, printed = section.partition("### Published, not verified")
    assert "CRP-RAG, table 1" in printed and "CRP-RAG" not in ours
    guided = of_method("rulerag_icl", "lm_eval ...", ROOT).partition("### Published, not verified")[2]
    assert "token_f1 (no counterpart here)" in guided and "- RuleRAG's released code takes as the answer" in guided
    assert of_task("bamboogle", "lm_eval --tasks bamboogle", ROOT).splitlines()[2:6] == [
        "None recorded. This command measures it:", "", "```", "lm_eval --tasks bamboogle"
    ]  # fmt: skip
