"""The tables that ship: every name in them is known, and their published numbers are those of the CSV."""

from __future__ import annotations

import csv
import re
import tomllib
from functools import cache
from html import unescape
from pathlib import Path

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.published import PAPERS, read_published
from lm_eval_rag.harness.reproduce.check_table import check_table
from lm_eval_rag.harness.reproduce.claims import VERDICTS
from lm_eval_rag.harness.reproduce.page import shown_metrics
from lm_eval_rag.harness.reproduce.published_numbers import numbers_of
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.table_spec import Row
from lm_eval_rag.harness.reproduce.verdicts import VERDICTS as ROW_VERDICTS
from lm_eval_rag.tasks.ruleqa.build import VERSION as RULEQA_VERSION

BOARDS = Path(__file__).parents[3] / "leaderboards"
FILES = {paper: f"{file}.csv" for file, paper in PAPERS.items()}
BENCHMARKS = {"rag_nq": "nq", "rag_triviaqa": "triviaqa", "rag_webquestions": "webquestions"}  # CRP-RAG's names
OURS = {
    **{f"recall@{k}": "pooled_recall_contains" for k in (1, 2, 5, 10, 50)},
    **{name: f"crag_{name}" for name in ("correct", "missing", "hallucination")},
}
TABLES = sorted((BOARDS / "reproduce").glob("*.toml"))
NEEDED = [*(f"rulerag_table{n}" for n in (2, 3, 4, 5, 6)), *(f"rulerag_figure{n}" for n in (3, 4, 5, 6))]


@cache
def printed(paper: str) -> list[dict[str, str]]:
    with (BOARDS / "published" / FILES[paper]).open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def test_every_table_and_figure_of_the_paper_is_there() -> None:
    assert set(NEEDED) <= {path.stem for path in TABLES}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_name_in_a_table_is_known(path: Path) -> None:
    table = read_table(path)
    check_table(table, read_published(BOARDS / "published"))
    assert table.notes and table.rows
    assert {row.model for row in table.rows} - {""}


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_every_rule_claim_is_shown_against_controls(path: Path) -> None:
    """A claim that guided lines beat unguided ones has a control, whether or not its lines are run here."""
    for claim in read_table(path).claims:
        if claim.text.startswith(("Rules help", "Rules find", "RGFT beats SSFT, in both", "RGFT of LLAMA2_7B and DPR")):
            assert any("random" in name for name in claim.controls), claim.text


RULEQA = [path for path in TABLES if re.match(r"rulerag_", path.stem)]
# lines that join the claim when their table is run again, since its kept page was made without it
WAITING = {"rulerag_smollm2": {"plain", "bm25-ft", "bm25-ssft"}}
TRIVIAL = ["mode_of_relation", "mode_of_subject", "last_object", "link_vote", "copy_vote"]


@pytest.mark.parametrize("path", RULEQA, ids=lambda path: path.stem)
def test_every_ruleqa_table_begins_with_the_trivial_baselines_and_tests_its_methods_against_the_best(
    path: Path,
) -> None:
    """All lines that answer, here or on a GPU, but not those that are a control of another claim."""
    table = read_table(path)
    lines = table.lines()
    assert [rows[0].model for rows in lines.values()][:5] == TRIVIAL
    assert all(set(table.rows[i].tasks) >= set(row.tasks) for i in range(5) for row in table.rows)
    assert not any(row.sample or row.needs for row in table.rows[:5])
    claims = [claim for claim in table.claims if claim.text.endswith("beats the best trivial baseline")]
    assert all((claim.worse, claim.of, claim.metrics) == (tuple(TRIVIAL), "best", ("em",)) for claim in claims)
    controls = {name for claim in table.claims for names in claim.controls.values() for name in names}
    controls |= {name for claim in table.claims for names in claim.bounds.values() for name in names}
    answering = {
        name
        for name, (row, *_) in lines.items()
        if row.model and row.arguments.get("generator") != "dummy" and row.arguments.get("rules") in (None, "selected")
    }
    told = {name for claim in claims for name in claim.better}
    assert told == answering - controls - set(TRIVIAL) - WAITING.get(table.name, set())


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_published_numbers_are_those_of_the_file(path: Path) -> None:
    """Looked up again, in the CSV itself."""
    table, published = read_table(path), read_published(BOARDS / "published")
    for row in table.rows:
        for task in row.tasks:
            numbers = numbers_of(row, task, table.source, published)
            wanted = {"table": table.source, **row.published}
            named = wanted.pop("task", task)
            paper = wanted.pop("paper", "RuleRAG")
            lines = [
                line
                for line in printed(paper)
                if row.published and wanted.items() <= line.items() and line["task"] in (named, BENCHMARKS.get(named))
                if (paper, line["metric"]) != ("RuleRAG", "token_f1")  # which has no counterpart here
            ]
            ours = {**OURS, **({"em": "em_contains"} if paper == "CRP-RAG" else {})}
            values = {ours.get(line["metric"], line["metric"]): float(line["value"]) for line in lines}
            assert len(values) == len(lines)
            assert {ours: one.value for ours, one in numbers.items()} == values


@pytest.mark.parametrize("path", RULEQA, ids=lambda path: path.stem)
def test_a_table_with_rulerags_em_says_how_it_was_read_and_none_shows_its_f1(path: Path) -> None:
    table, published = read_table(path), read_published(BOARDS / "published")
    cells = [(row, numbers_of(row, task, table.source, published)) for row in table.rows for task in row.tasks]
    beside = {name for row, numbers in cells for name in numbers.keys() & set(shown_metrics(row, table))}
    beside |= {plot.metric for plot in table.plots if plot.kind == "banks"}  # gains, which are found by another way
    notes = " ".join(table.notes)
    assert "token_f1" not in beside and not table.verdicts
    assert ("The paper's EM may be read from the reply otherwise" in notes) == ("em" in beside)
    assert "token_f1" not in table.metrics or "em" not in beside or "T-F1 is not shown beside token_f1" in notes


PAGES = sorted((BOARDS / "reproduced").glob("*.txt"))


@pytest.mark.parametrize(
    "path", [path for path in PAGES if path.stem.startswith("rulerag")], ids=lambda path: path.stem
)
def test_a_page_of_ruleqa_is_of_todays_data(path: Path) -> None:
    """A page that must wait for its runs is named in older.toml, with the version of its data."""
    (line,) = re.findall(r"^Task versions: .*(?:\n .*)*", path.read_text(encoding="utf-8"), re.MULTILINE)
    versions = {int(version) for name, version in re.findall(r"(ruleqa_\w+) (\d+)", line) if "demo" not in name}
    waiting = BOARDS / "reproduced" / "older.toml"
    older = tomllib.loads(waiting.read_text(encoding="utf-8"))["ruleqa"] if waiting.is_file() else {"pages": []}
    assert versions == {older["version"] if path.stem in older["pages"] else RULEQA_VERSION}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_kept_page_has_the_words_of_its_table(path: Path) -> None:
    table = read_table(BOARDS / "reproduce" / f"{path.stem}.toml")
    for shown in both_forms(path):
        for words in (table.title, *table.notes, *(claim.text for claim in table.claims)):
            assert words in shown


def both_forms(path: Path) -> tuple[str, str]:
    """A page as text, and what its HTML shows."""
    html = path.with_suffix(".html").read_text(encoding="utf-8")
    shown = unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", html, flags=re.DOTALL))
    return " ".join(path.read_text(encoding="utf-8").split()), " ".join(shown.split())


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_kept_page_has_the_same_numbers_in_both_forms(path: Path) -> None:
    table, (text, shown) = read_table(BOARDS / "reproduce" / f"{path.stem}.toml"), both_forms(path)
    number = r"-?\d+\.\d \[-?\d+\.\d, -?\d+\.\d\]"
    ours = set(re.findall(number, shown))
    assert set(re.findall(number, text)) == ours
    if not ours:  # no row has run: what papers print is there
        published = read_published(BOARDS / "published")
        cells = [numbers_of(row, task, table.source, published) for row in table.rows for task in row.tasks]
        printed = {f"{cell[name].value:.1f}" for cell in cells for name in cell.keys() & set(table.metrics)}
        assert printed and all(one in text and one in shown for one in printed)
    verdicts = re.findall(rf"{number} (?:{'|'.join(VERDICTS)})", shown)
    assert (verdicts or table.verdicts) and not [one for one in verdicts if one not in text]
    if table.verdicts:
        assert len(re.findall(rf" (?:{'|'.join(ROW_VERDICTS)})\b", text)) >= len(table.lines())
        assert all(row.label in text and row.label in shown for row in table.rows)


def test_two_numbers_for_one_cell_are_refused() -> None:
    row = Row("r", "r", "r", "", {}, ("ruleqa_i",), published={"method": "RuleRAG-ICL"})
    with pytest.raises(UserError, match="fits two numbers"):
        numbers_of(row, "ruleqa_i", "table_2", read_published(BOARDS / "published"))


def test_a_number_of_table_2_is_as_printed() -> None:
    """RuleRAG (arXiv:2410.22353), table 2, RuleRAG-FT on RuleQA-I: R@10 45.1, EM 20.5."""
    published = {"method": "RuleRAG-FT", "generator": "RGFT-LLAMA2_7B"}
    row = Row("r", "r", "r", "", {}, ("ruleqa_i",), published=published)
    numbers = numbers_of(row, "ruleqa_i", "table_2", read_published(BOARDS / "published"))
    assert (numbers["pooled_recall_contains"].value, numbers["em"].value) == (45.1, 20.5)
