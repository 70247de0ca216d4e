"""Every official score of evidence exists in a run that predicts evidence, and counts what the gold sentences say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest

from lm_eval_rag.harness.core.record import record
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.data.sources import UnavailableError
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.plugin.model import model_class
from lm_eval_rag.harness.scoring import score
from lm_eval_rag.leaderboards.submissions.answer_key import answer_key
from lm_eval_rag.leaderboards.submissions.form import Prediction
from lm_eval_rag.methods.standard_rag import standard_rag
from lm_eval_rag.tasks.reasoning_demo.build import build as build_demo
from lm_eval_rag.tasks.wikipedia.build import build

SP = {f"sp_{part}" for part in ("em", "precision", "recall", "f1")}
JOINT = {f"joint_{part}" for part in ("em", "precision", "recall", "f1")}
FEVER = {"fever_score", "fever_precision", "fever_recall", "fever_f1"}
SCORES = {"hotpotqa_200": SP | JOINT, "musique_train_100": {"support_f1"}, "fever_345": FEVER}
LIMITED = 30  # questions of a task


class Constant:
    """Says the same to each prompt."""

    fingerprint, batch = "constant", 64

    def __init__(self, reply: str) -> None:
        self.reply = reply

    def generate(self, prompts: list[str], decoding: Any, draws: list[int]) -> list[str]:
        return [self.reply] * len(prompts)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def room(self, max_tokens: int) -> int | None:
        return None


def answered(rows: list[dict[str, Any]], how: str, reply: str = "SUPPORTS", **parameters: Any) -> list[Any]:
    """(answer, trace) of each question."""
    queries = [Query(row["id"], row["query"], corpus=row["corpus"], answer_form="short") for row in rows]
    return run(standard_rag, queries, generator=Constant(reply), evidence=how, **parameters)


def scored(rows: list[dict[str, Any]], how: str, reply: str = "SUPPORTS", **parameters: Any) -> list[dict[str, Any]]:
    """The scores of each question."""
    answers = answered(rows, how, reply, **parameters)
    return [score(row, answer.text, record(answer, trace)) for row, (answer, trace) in zip(rows, answers, strict=True)]


def sentences_of(answer: Any, row: dict[str, Any], cache: Path) -> list[tuple[str, int]]:
    """All sentences of the retrieved passages that are not blank, in order, as the built file has them."""
    table = pl.read_parquet(cache / row["corpus"].partition("#")[0] / "corpus.parquet")
    split = dict(zip(table["id"], table["sentences"].to_list(), strict=True))
    return [(p.id, i) for p in answer.passages for i, text in enumerate(split[p.id] or ["whole"]) if text.strip()]


@pytest.fixture(scope="module", params=sorted(SCORES))
def task(request: pytest.FixtureRequest, mirror: Path | None, cache: Path, once: Callable[..., Any]) -> Any:
    """(task, its first questions)."""
    name = request.param
    try:
        folder = cache / once(f"wikipedia-{name}", partial(build, name))
    except UnavailableError as error:
        pytest.skip(f"needs files that only a mirror has: {error}")
    return name, pl.read_parquet(folder / "queries.parquet").to_dicts()[:LIMITED]


@pytest.mark.parametrize("how", ["retrieved", "similar", "cite"])
def test_scores_of_evidence_exist_for_every_question(task: Any, how: str) -> None:
    name, rows = task
    for scores in scored(rows, how, "SUPPORTS\nEvidence: 1, 2"):
        assert SCORES[name] <= {key for key, value in scores.items() if value is not None}
    for scores in scored(rows, "none"):
        assert not SCORES[name] & {key for key, value in scores.items() if value is not None}


def test_chosen_evidence_is_of_the_retrieved_passages(task: Any, cache: Path) -> None:
    name, rows = task
    names = {how: [answer.evidence for answer, _ in answered(rows[:10], how)] for how in ("retrieved", "similar")}
    for row, (answer, _), first, similar in zip(rows, answered(rows[:10], "none"), *names.values(), strict=False):
        listed = sentences_of(answer, row, cache)
        assert list(first) == listed[:5] and set(similar) <= set(listed) and len(similar) == 5
    key = {"hotpotqa_200": "sp_f1", "musique_train_100": "support_f1", "fever_345": "fever_recall"}[name]
    for how in names:
        assert 0.1 < fmean(scores[key] for scores in scored(rows, how, evidence_limit=2)) <= 1


def test_gold_numbers_that_are_cited_have_full_marks(task: Any, cache: Path) -> None:
    """Over each question's own passages all gold sentences are in the prompt, so their numbers can be named."""
    if task[0] != "hotpotqa_200":
        pytest.skip("its sentences are whole passages")
    folder = cache / build("hotpotqa_200", corpus="own")
    for row in pl.read_parquet(folder / "queries.parquet").to_dicts()[:4]:
        ((plain, _),) = answered([row], "none", k=20)
        listed = sentences_of(plain, row, cache)
        numbers = [str(listed.index((fact["passage"], fact["sentence"])) + 1) for fact in row["facts"]]
        for cited, whole in ((numbers, True), (numbers[:-1], False)):
            reply = f"{row['answers'][0]}\nEvidence: {', '.join(cited)}"
            (scores,) = scored([row], "cite", reply, k=20, documents=20, evidence_limit=10)
            assert scores["sp_em"] == scores["joint_em"] == whole and scores["sp_precision"] == 1
            assert (scores["joint_f1"] == scores["sp_f1"] == 1) == whole


@pytest.mark.parametrize("how", ["retrieved", "similar", "cite"])
def test_scores_of_evidence_exist_on_the_embedded_task(cache: Path, how: str) -> None:
    """Questions have 2WikiMultihopQA's scores, claims FEVER's; what is joint needs triples, which nothing predicts."""
    rows = pl.read_parquet(cache / build_demo() / "queries.parquet").to_dicts()[:60]
    for row, scores in zip(rows, scored(rows, how, "SUPPORTS\nEvidence: 1"), strict=True):
        names = {key for key, value in scores.items() if value is not None}
        claim = row["scoring"] == "fever"
        expected = (FEVER if row["answers"] != ["NOT ENOUGH INFO"] else {"fever_score"}) if claim else SP
        assert names & (SP | FEVER | JOINT | {"triples_f1"}) == expected


def test_evidence_counts_on_the_embedded_task(cache: Path) -> None:
    """The precision of the first sentence is the share of questions whose first sentence is a gold one."""
    rows = pl.read_parquet(cache / build_demo() / "queries.parquet").to_dicts()
    asked = [row for row in rows if row["scoring"] == "2wiki"][:40]
    scores = scored(asked, "similar", evidence_limit=1)
    assert {one["sp_precision"] for one in scores} == {0.0, 1.0}
    for row, one in zip(asked, scores, strict=True):
        assert one["sp_recall"] == pytest.approx(one["sp_precision"] / len(row["facts"]))


def test_naming_evidence_for_one_question_alone_does_not_raise_a_score(cache: Path, undescribed: None) -> None:
    """As in the official scripts all questions count; the samples, rescored, and a submission say the same."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    rows = pl.read_parquet(cache / build_demo() / "queries.parquet").to_dicts()[:LIMITED]
    sure = next(row for row in rows if row["facts"])
    gold = tuple((fact["passage"], fact["sentence"]) for fact in sure["facts"])

    def sometimes(query: Query) -> Plan[Answer]:
        return Answer("SUPPORTS", evidence=gold if query.id == sure["id"] else None)
        yield

    def never(query: Query) -> Plan[Answer]:
        return Answer("SUPPORTS")
        yield

    def told(method: Any) -> tuple[dict[str, float], list[Any]]:
        manager = TaskManager(include_defaults=False, include_path=str(files("lm_eval_rag.tasks")))
        model = model_class(method.__name__, method)(journal="off", generator="dummy")
        results = lm_eval.simple_evaluate(
            model, tasks=["reasoning_demo"], limit=LIMITED, task_manager=manager, bootstrap_iters=0
        )
        return results["results"]["reasoning_demo"], results["samples"]["reasoning_demo"]

    means, samples = told(sometimes)
    asked = [row for row in rows if row["facts"]]
    assert len(asked) > 1 and means["sp_em,none"] == means["sp_f1,none"] == 1 / len(asked)
    claims = [row for row in rows if row["scoring"] == "fever"]
    assert ("fever_score,none" in means) == bool(claims) and "triples_f1,none" not in means
    assert [sample["doc"]["_rag"]["evidence"] for sample in samples].count([]) == len(rows) - 1
    predictions = {}
    for sample in samples:
        scores = score(sample["doc"], "SUPPORTS", sample["doc"]["_rag"])
        assert scores == {name: sample[name] for name in scores}
        id = sample["doc"]["id"]
        predictions[id] = Prediction(id=id, answer="SUPPORTS", evidence=[*gold] if id == sure["id"] else None)
    submitted = answer_key("reasoning_demo").scores(predictions, {})
    assert fmean(submitted["sp_f1"].values()) == means["sp_f1,none"] and len(submitted["sp_f1"]) == len(asked)
    assert not (SP | FEVER) & {name.partition(",")[0] for name in told(never)[0]}
