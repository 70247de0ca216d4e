"""Demonstrations from CRAG's own validation part (``demonstrations_file=official``), on what the mirror has of it.

The mirror has all 2,706 questions with their part, few of them with labels, and ten whole records, all of the public
test; here four of these are put into the validation part.
"""

from __future__ import annotations

import bz2
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.methods.crag.attribute_predictor import LABELS
from lm_eval_rag.methods.crag.demonstrations import OFFICIAL, demonstrations_of, stratified
from lm_eval_rag.methods.crag_hybrid import crag_hybrid
from lm_eval_rag.tasks.crag.build import build
from lm_eval_rag.tasks.crag.task import questions

RATES = {"static": "static", "slow-changing": "dynamic", "fast-changing": "dynamic", "real-time": "dynamic"}


def corpora(files: Path, **options: Any) -> list[Query]:
    """The questions of task 1 over a file of CRAG's."""
    rows = questions(build("crag_task1", data_files=str(files)), **options)["test"]
    return [Query(row["id"], row["query"], row["time"], row["corpus"]) for row in rows]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def all_questions(mirror: Path | None) -> list[dict[str, Any]]:
    """CRAG's 2,706 questions, as far as their labels are at hand."""
    if mirror is None or not (mirror / "crag" / "crag_dev_v4_qa_2706.jsonl").is_file():
        pytest.skip("needs the mirror's list of CRAG's questions")
    lines = (mirror / "crag" / "crag_dev_v4_qa_2706.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def records(mirror: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ten whole records, of which the first four are of the validation part."""
    if mirror is None or not (mirror / "crag" / "dev_data.jsonl.bz2").is_file():
        pytest.skip("needs the mirror's ten records")
    with bz2.open(mirror / "crag" / "dev_data.jsonl.bz2", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) | {"split": 0 if number < 4 else 1} for number, line in enumerate(lines)]
    return write(tmp_path_factory.mktemp("crag") / "records.jsonl", rows)


@pytest.mark.parametrize("attribute", ["static_or_dynamic", "domain"])
def test_they_are_the_validation_parts_questions(
    all_questions: list[dict[str, Any]], attribute: str, cache: Path, tmp_path: Path
) -> None:
    wanted: dict[str, list[str]] = {}
    for row in all_questions:
        if row["split"] == 0 and attribute in row:
            wanted.setdefault(RATES.get(row[attribute], row[attribute]), []).append(row["query"].strip())
    corpus = corpora(write(tmp_path / "crag.jsonl", all_questions), split=1)[0].corpus
    assert demonstrations_of(OFFICIAL, attribute, corpus) == wanted and len(wanted) > 1
    assert set(wanted) <= set(LABELS[attribute])
    tested = {row["query"].strip() for row in all_questions if row["split"] == 1}
    drawn = {shot.query.removeprefix("Question: ") for seed in range(20) for shot in stratified(wanted, 5, seed)}
    assert drawn and not drawn & tested


@pytest.mark.parametrize("attribute", ["static_or_dynamic", "domain"])
def test_no_label_is_missing_whatever_the_seed(attribute: str, cache: Path, tmp_path: Path) -> None:
    """As many questions as the real part, a label as rare as one in a hundred."""
    labels = [*(["real-time", "static"] * 690)[:1371]] if attribute == "static_or_dynamic" else None
    names = LABELS["domain"]
    rows = [
        {
            "query": f"question {i}?", "answer": "a", "split": 0, "interaction_id": f"{i}",
            "domain": names[0] if i % 100 else names[i // 100 % 5],
            "static_or_dynamic": labels[i] if labels else "static",
        }
        for i in range(1371)
    ]  # fmt: skip
    pool = demonstrations_of(OFFICIAL, attribute, corpora(write(tmp_path / "crag.jsonl", rows))[0].corpus)
    assert set(pool) == set(LABELS[attribute]) and sum(map(len, pool.values())) == 1371
    for seed in range(200):
        counts = Counter(shot.answer for shot in stratified(pool, 5, seed))
        assert set(counts) == set(pool) and max(counts.values()) - min(counts.values()) <= 1


class Static:
    """Calls every question static; keeps its prompts."""

    fingerprint, batch = "static", 8

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def generate(self, prompts: Sequence[str], decoding: Any, draws: Any) -> list[str]:
        self.prompts += prompts
        return ["static" if prompt.endswith("dynamic:") else "Paris" for prompt in prompts]

    def loglikelihood(self, pairs: Any) -> Any:
        raise AssertionError

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def room(self, max_tokens: int) -> int:
        return 3_000


SHORT = {"table_extractor": False, "calculator": False, "reasoning": False, "knowledge_extractor": False, "samples": 1}


def test_the_predictor_shows_them_and_never_the_question_itself(records: Path, cache: Path) -> None:
    pytest.importorskip("blingfire")
    pytest.importorskip("resiliparse")
    asked = corpora(records)
    model = Static()
    results = run(crag_hybrid, asked, generator=model, demonstrations_file=OFFICIAL, **SHORT)  # type: ignore[arg-type]
    assert [trace.failure for _, trace in results] == [None] * 10
    validation = {query.text for query in corpora(records, split=0)}
    shown = [prompt for prompt in model.prompts if prompt.endswith("dynamic:")]
    for query, prompt in zip(asked, sorted(shown, key=lambda text: order(text, asked)), strict=True):
        *examples, last = [line.removeprefix("Question: ") for line in prompt.splitlines() if "Question: " in line]
        assert last == query.text and set(examples) == validation - {query.text}
        assert "Asked on" not in prompt  # as in the paper's prompt, appendix D.1


def order(prompt: str, asked: Sequence[Query]) -> int:
    """Place of the question that a prompt asks: its last one."""
    last = [line.removeprefix("Question: ") for line in prompt.splitlines() if "Question: " in line][-1]
    return [query.text for query in asked].index(last)


def test_what_has_no_validation_part_says_so(cache: Path, tmp_path: Path) -> None:
    rows = [{"query": f"q{i}?", "answer": "a", "split": 1, "domain": "open"} for i in range(4)]
    (first, *_) = corpora(write(tmp_path / "crag.jsonl", rows))
    with pytest.raises(UserError, match=r"demonstrations_file=official: crag_task1/\w+ has 0 labels of domain"):
        demonstrations_of(OFFICIAL, "domain", first.corpus)
    for corpus in ("ruleqa_i/abc", None):
        with pytest.raises(UserError, match=r"demonstrations_file=official takes CRAG's validation part"):
            demonstrations_of(OFFICIAL, "domain", corpus)
    model = Static()
    with pytest.raises(UserError, match="has 0 labels"):
        run(crag_hybrid, [first], generator=model, demonstrations_file=OFFICIAL, **SHORT)  # type: ignore[arg-type]
    assert not model.prompts
