"""CRAG's scores: conformance vectors, the order of the specification, the cut, formulas, and a run through lm_eval."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import install_line
from lm_eval_rag.harness.core.record import RagText
from lm_eval_rag.harness.plugin.task import RagTask
from lm_eval_rag.harness.report.rescore_cli import rescore_main
from lm_eval_rag.harness.scoring import score
from lm_eval_rag.harness.scoring.crag import open_answers, plain, settle
from lm_eval_rag.harness.scoring.judge import RulesJudge
from lm_eval_rag.harness.scoring.judge.panel import Panel, Response, verdict_faults
from lm_eval_rag.harness.scoring.truncate import WHOLE, tokenizer_cut, words_cut
from lm_eval_rag.harness.scoring.verdict import VERDICT, Verdict

VECTORS = json.loads(Path(__file__).with_name("crag_vectors.json").read_text(encoding="utf-8"))
PANEL = Panel((RulesJudge(),), words_cut(), True)


def word(verdict: Verdict) -> str:
    return "missing" if verdict.missing else "correct" if verdict.correct == 1 else "wrong"


def test_there_are_enough_vectors_of_every_rule() -> None:
    vectors = VECTORS["vectors"]
    assert len(vectors) >= 120 and len({v["id"] for v in vectors}) == len(vectors)
    assert {v["specification"] for v in vectors} == {"correct", "missing", "wrong", "judge"}
    assert all(v["specification"] in ("judge", v["rules_judge"]) or refuses_invalid(v) for v in vectors)
    assert sum(map(refuses_invalid, vectors)) >= 2


def refuses_invalid(vector: dict[str, Any]) -> bool:
    """Whether a refusal of an invalid question is wrong by the specification and missing by the rules."""
    return (vector["specification"], vector["rules_judge"], vector["answers"]) == (
        "wrong",
        "missing",
        ["invalid question"],
    )


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda v: v["id"])
def test_vector(vector: dict[str, Any]) -> None:
    response = Response(vector["question"], tuple(vector["answers"]), vector["prediction"])
    verdict = PANEL.verdicts([response])[response]
    assert word(verdict) == vector["rules_judge"], (vector["rule"], verdict)
    assert (verdict.rule in ("judge", "refusal")) == (vector["specification"] == "judge" or refuses_invalid(vector))
    doc = {"query": vector["question"], "answers": vector["answers"], VERDICT: verdict.record()}
    assert verdict_faults(json.loads(json.dumps(doc)), vector["prediction"]) == []


@pytest.mark.parametrize("total", VECTORS["scores"], ids=str)
def test_mean_of_scores_is_the_formula(total: dict[str, float]) -> None:
    """(2 correct + missing) / n - 1, from single verdicts; a half is two judges who disagree."""
    n, right, missing = int(total["n"]), total["correct"], int(total["missing"])
    marks = [1.0] * math.floor(right) + [0.5] * int(2 * (right % 1))
    verdicts = [Verdict("missing", 0.0)] * missing + [Verdict("judge", mark) for mark in marks]
    verdicts += [Verdict("judge", 0.0)] * (n - len(verdicts))
    scores = [score({"answers": ["x"], VERDICT: v.record()}, "y", None) for v in verdicts]
    assert sum(s["crag_score"] for s in scores) / n == pytest.approx(total["score"])
    assert (2 * right + missing) / n - 1 == pytest.approx(total["score"])
    for s in scores:
        assert s["crag_correct"] + s["crag_missing"] + s["crag_hallucination"] == pytest.approx(1.0)


@pytest.mark.parametrize("human", VECTORS["human"], ids=str)
def test_human_scale(human: dict[str, Any]) -> None:
    assert score({"answers": ["x"], "_label": human["label"]}, "y", None)["crag_human"] == human["score"]
    assert "crag_human" not in score({"answers": ["x"]}, "y", None)


def test_unjudged_is_unscored_and_never_wrong() -> None:
    failed = Verdict("judge", None, judges=("gpt",), why="no verdict")
    scores = score({"answers": ["x"], VERDICT: failed.record()}, "y", {"seconds": 1.0})
    assert not {"crag_correct", "crag_missing", "crag_hallucination", "crag_score", "acc_lm"} & set(scores)
    assert scores["em"] == 0.0


@pytest.mark.parametrize(
    ("judges", "wanted"), [(("rules",), None), (("gpt",), 0.5), (("gpt", "rules"), None), (("gpt", "llama"), 0.5)]
)
def test_acc_lm_is_for_models_alone(judges: tuple[str, ...], wanted: float | None) -> None:
    doc = {"answers": ["x"], VERDICT: Verdict("judge", 0.5, judges=judges).record()}
    assert score(doc, "y", None).get("acc_lm") == wanted
    missing = {"answers": ["x"], VERDICT: Verdict("missing", 0.0, judges=judges).record()}
    assert score(missing, "", None).get("acc_lm") == (None if wanted is None else 0.0)
    assert "acc_lm" not in score({"answers": ["x"]}, "x", None)


@pytest.mark.parametrize(("seconds", "wanted"), [(0.0, 1.0), (30.0, 1.0), (30.1, 0.0), (None, None)])
def test_time_limit(seconds: float | None, wanted: float | None) -> None:
    record = {} if seconds is None else {"seconds": seconds}
    verdict = Verdict("exact", 1.0, crag=True)
    assert score({"answers": ["x"], VERDICT: verdict.record()}, "x", record).get("within_30s") == wanted
    assert "within_30s" not in score({"answers": ["x"]}, "x", record)


def restated(answers: list[str], given: str, crag: bool) -> str:
    """The specification once more, without a cut, as nested questions."""
    low = given.lower().replace("’", "'")
    if "i don't know" in low or not given.strip():
        return "missing"
    if any(given.lower().split() == answer.lower().split() for answer in answers):
        return "correct"
    for answer in answers if crag else ():
        if "invalid" in low and "invalid" in answer.lower():
            return "correct"
    if crag and all(("invalid" in low) != ("invalid" in answer.lower()) for answer in answers):
        return "wrong"
    return "judge"


def test_specification_is_its_restatement() -> None:
    texts = [
        "Paris",
        "paris ",
        "invalid question",
        "Invalid: no such city",
        "I don't know",
        "Lyon",
        "",
        "I DON’T know, invalid",
    ]
    seen = set()
    for n, crag in itertools.product((1, 2), (True, False)):
        for *answers, given in itertools.product(texts[:4], *[texts[:4]] * (n - 1), texts):
            verdict = settle(answers, given, crag=crag)
            wanted = restated(answers, given, crag)
            assert ("judge" if verdict is None else word(verdict)) == wanted, (answers, given, crag)
            seen.add(wanted)
    assert seen == {"missing", "correct", "wrong", "judge"}
    assert settle(["Paris"], "Paris", abstained=True) == Verdict("missing", 0.0)


@pytest.mark.parametrize(
    ("answers", "prediction", "options", "wanted"),
    [
        (["Paris"], " \n", {}, Verdict("missing", 0.0)),
        (["Lyon", "Paris"], "PARIS", {}, Verdict("exact", 1.0)),
        (["invalid question"], "Invalid: no such film", {}, Verdict("both invalid", 1.0)),
        (["Lyon", "invalid question"], "an INVALID question", {}, Verdict("both invalid", 1.0)),
        (["Paris"], "invalid question", {}, Verdict("one invalid", 0.0)),
        (["INVALID question"], "Paris", {}, Verdict("one invalid", 0.0)),
        (["invalid question", "Lyon"], "Paris", {}, None),
        (["Paris"], "invalid question", {"crag": False}, None),
        (["Paris, France"], "Paris", {}, None),
        (["Paris, France"], "paris,", {"was_cut": True}, Verdict("exact", 1.0)),
        (["France"], "Paris", {"was_cut": True}, None),
        (["Paris"], "Paris", {"abstained": True}, Verdict("missing", 0.0)),
    ],
)
def test_the_rule_that_decides_is_named(
    answers: list[str], prediction: str, options: dict[str, bool], wanted: Verdict | None
) -> None:
    assert settle(answers, prediction, **options) == wanted


REFUSAL_OF_INVALID = [
    "I do not know.",
    "The references do not contain this information.",
    "I'm sorry, I can't find this.",
    "Not enough information.",
]


@pytest.mark.parametrize("prediction", REFUSAL_OF_INVALID)
def test_a_refusal_of_an_invalid_question_is_missing_for_the_rules_and_wrong_for_a_model(prediction: str) -> None:
    """The public script calls it wrong before it asks the model; so does a panel with a model in it."""

    class Model:
        name = fingerprint = "model"

        def opinions(self, items: list[Any]) -> list[Any]:
            raise AssertionError("the specification decides")

    invalid, mixed = ("invalid question",), ("invalid question", "Lyon")
    assert settle(invalid, prediction) == Verdict("one invalid", 0.0)
    assert settle(invalid, prediction, refusals=True) == Verdict("refusal", 0.0)
    assert settle(invalid, "In 2011", refusals=True) == Verdict("one invalid", 0.0)
    assert settle(invalid, f"{prediction} It is invalid.", refusals=True) == Verdict("both invalid", 1.0)
    assert settle(("Lyon",), f"{prediction} It is invalid.", refusals=True) == Verdict("one invalid", 0.0)
    assert settle(mixed, prediction, refusals=True) is None and settle(invalid, prediction, crag=False) is None
    for judges, wanted in (
        ((RulesJudge(),), ("refusal", True)),
        ((Model(),), ("one invalid", False)),
        ((RulesJudge(), Model()), ("one invalid", False)),
    ):
        response = Response("When?", invalid, prediction)
        verdict = Panel(judges, words_cut(), True).verdicts([response])[response]  # type: ignore[arg-type]
        assert (verdict.rule, verdict.missing) == wanted
        doc = {"query": "When?", "answers": list(invalid), VERDICT: verdict.record()}
        assert verdict_faults(doc, prediction) == []
        assert score(doc, prediction, None)["crag_score"] == (0.0 if verdict.missing else -1.0)


def test_a_judge_sees_no_invalid_answer_unless_the_word_has_no_meaning() -> None:
    answers = ["Lyon", "Invalid question", "Teth"]
    assert open_answers(answers) == open_answers(answers, crag=True) == ("Lyon", "Teth")
    assert open_answers(answers, crag=False) == tuple(answers)


def test_plain_is_lower_case_with_single_spaces() -> None:
    assert plain("  New\tYORK \n city") == "new york city" and plain("STRASSE") != plain("straße")


def unit_ends(text: str) -> list[int]:
    """Where each unit ends: a run of letters, digits and _ is one, every other character but white space is one."""
    ends: list[int] = []
    for i, char in enumerate(text):
        if char.isalnum() or char == "_":
            if i and (text[i - 1].isalnum() or text[i - 1] == "_"):
                ends.pop()
            ends.append(i + 1)
        elif not char.isspace():
            ends.append(i + 1)
    return ends


def test_words_cut_keeps_the_first_words_and_punctuation_marks() -> None:
    rng = random.Random(0)
    cut_texts = 0
    for _ in range(500):
        text = "".join(rng.choice("ab1é_ $$..,'’\n\t🦙") for _ in range(rng.randint(0, 60)))
        limit = rng.randint(1, 12)
        ends = unit_ends(text)
        kept = words_cut(limit)(text)
        assert kept == (text if len(ends) <= limit else text[: ends[limit - 1]]), (text, limit)
        assert words_cut(limit)(kept) == kept
        cut_texts += kept != text
    assert cut_texts > 200
    assert WHOLE("a b c") == "a b c"


@pytest.mark.parametrize(
    ("limit", "text", "kept"),
    [
        (3, "one two, three four", "one two,"),
        (4, "wait... what", "wait..."),
        (3, "wait... what", "wait.."),
        (2, "?!?! no", "?!"),
        (2, "$4.50", "$4"),
        (3, "one two three \n", "one two three \n"),
    ],
)
def test_every_punctuation_mark_is_one_of_the_words(limit: int, text: str, kept: str) -> None:
    assert words_cut(limit)(text) == kept
    assert words_cut(limit).name == f"words {limit}"


def test_llama_cut_on_the_real_tokenizer(mirror: Path | None) -> None:
    if mirror is None or not (mirror / "crag/tokenizer/tokenizer.json").is_file():
        pytest.skip("needs the mirror's crag/tokenizer")
    tokenizers = pytest.importorskip("tokenizers")
    file = mirror / "crag/tokenizer/tokenizer.json"
    cut, peer = tokenizer_cut(file), tokenizers.Tokenizer.from_file(str(file))
    assert cut.name == "tokenizer.json 8eea70c4 75"
    rng = random.Random(1)
    vocabulary = ["Redfern", "the", "2023-10-20,", "$26.72", "naïve", "I", "don't", "know", "东京", "-", "\n"]
    for _ in range(60):
        text = " ".join(rng.choice(vocabulary) for _ in range(rng.randint(1, 120)))
        ids = peer.encode(text, add_special_tokens=False).ids
        kept = cut(text)
        assert text.startswith(kept) and (len(ids) > 75 or kept == text)
        if len(ids) > 75:
            assert peer.decode(ids[:75]).strip("�") in (kept, kept.strip(), kept[:-1])
    assert cut("🦙" * 40).startswith("🦙" * 15)


def words_tokenizer(folder: Path) -> Path:
    """A tokenizer file: words are tokens, and a special token begins every text."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<s>": 0, "a": 1, "?": 2}, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    file = folder / "words.json"
    tokenizer.save(str(file))
    return file


def test_a_tokenizers_cut_keeps_a_prefix_without_counting_special_tokens(tmp_path: Path) -> None:
    file = words_tokenizer(tmp_path)
    cut, name = tokenizer_cut(file, 2), hashlib.sha256(file.read_bytes()).hexdigest()[:8]
    assert (cut.name, tokenizer_cut(file).name) == (f"words.json {name} 2", f"words.json {name} 75")
    assert [cut(text) for text in ("a b c", "a b  ", "", "a", "aa bb\ncc dd")] == ["a b", "a b  ", "", "a", "aa bb"]
    assert tokenizer_cut(file)("a " * 76) == ("a " * 75)[:-1] and tokenizer_cut(file)("a " * 75) == "a " * 75


@pytest.mark.parametrize("by_tokens", [True, False])
def test_the_limit_of_a_cut_is_1_or_more(tmp_path: Path, by_tokens: bool) -> None:
    with pytest.raises(UserError, match=r"^limit=0 is not allowed"):
        tokenizer_cut(words_tokenizer(tmp_path), 0) if by_tokens else words_cut(0)
    assert (tokenizer_cut(words_tokenizer(tmp_path), 1) if by_tokens else words_cut(1))("a a") == "a"


def test_bad_tokenizers_and_none_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokenizers")
    file = tmp_path / "t.json"
    with pytest.raises(UserError, match=rf"^The tokenizer {file} cannot be read: No such file or directory\.$"):
        tokenizer_cut(file)
    for content in (b"{}", b"\xff"):
        file.write_bytes(content)
        with pytest.raises(UserError, match=rf"^{file} is not a tokenizer\.json: .+\.$"):
            tokenizer_cut(file)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    says = "Truncating predictions to 9 tokens of t.json needs the package tokenizers. Install it with "
    with pytest.raises(UserError, match=f"^{re.escape(says)}`{re.escape(install_line('hf'))}`\\.$"):
        tokenizer_cut(file, 9)


ROWS = [
    {"id": "c0", "query": "Which film won?", "answers": ["The Glass Harbour"], "gives": "It was The Glass Harbour."},
    {"id": "c1", "query": "How many?", "answers": ["23", "25"], "gives": "twenty-five"},
    {"id": "c2", "query": "When?", "answers": ["invalid question"], "gives": "In 2011"},
    {"id": "c3", "query": "Who?", "answers": ["Ada Quill"], "gives": "I don't know"},
    {"id": "c4", "query": "Where?", "answers": ["Teth"], "gives": "so " * 75 + "I don't know"},
]


class CragLike(RagTask):
    """A task as CRAG's are: judged by default, predictions cut."""

    judge = "rules"
    crag = True

    def cut(self) -> Any:
        return words_cut()

    def download(self, *args: Any, **kwargs: Any) -> None:
        from datasets import Dataset

        self.dataset = {"test": Dataset.from_list([{**row, "corpus": None} for row in ROWS])}


def run(folder: Path, metadata: Mapping[str, Any], *, plain: bool = False, **options: Any) -> dict[str, Any]:
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Model(LM):  # type: ignore[misc]
        def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
            texts = [request.doc["gives"] for request in requests]
            return texts if plain else [RagText(text, {"answer": text, "seconds": 2.0}) for text in texts]

        def loglikelihood(self, requests: list[Any]) -> Any:
            raise AssertionError

        loglikelihood_rolling = loglikelihood

    config = {
        "task": "crag_like",
        "test_split": "test",
        "doc_to_text": "{{query}}",
        "doc_to_target": "{{answers[0]}}",
        "output_type": "generate_until",
        "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": 100},
        "metadata": {"version": 1, **metadata},
    }
    tracker = EvaluationTracker(output_path=str(folder))
    tracker.general_config_tracker.model_name_sanitized = "m"
    manager = TaskManager(include_defaults=False)
    found = simple_evaluate(model=Model(), tasks=[CragLike(config=config)], task_manager=manager, **options)
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    tracker.save_results_samples(task_name="crag_like", samples=samples["crag_like"])
    return {"results": found["results"]["crag_like"], "samples": samples["crag_like"], "configs": found["configs"]}


@pytest.mark.usefixtures("undescribed")
@pytest.mark.parametrize("plain", [False, True])
def test_through_lm_eval(tmp_path: Path, plain: bool, capsys: pytest.CaptureFixture[str]) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_text(
        json.dumps({**{"question": "Who?", "answers": ["x"], "prediction": "I don't know"}, "label": "missing"})
    )
    found = run(tmp_path / "out", {"labels": str(labels)}, plain=plain)
    results = found["results"]
    assert results["crag_score,none"] == pytest.approx((2 * 2 + 1) / 5 - 1)
    assert results["crag_correct,none"] == pytest.approx(0.4) and results["crag_missing,none"] == pytest.approx(0.2)
    assert results["crag_score_stderr,none"] > 0
    assert results["crag_human,none"] == 0.0
    assert ("within_30s,none" in results) != plain
    assert "acc_lm,none" not in results
    rules = {sample["doc"]["id"]: sample["doc"]["_judge"]["rule"] for sample in found["samples"]}
    assert rules == {"c0": "judge", "c1": "judge", "c2": "one invalid", "c3": "missing", "c4": "judge"}
    assert found["configs"]["crag_like"]["metadata"]["judges"][0]["name"] == "rules"
    assert found["configs"]["crag_like"]["metadata"]["cut"] == "words 75"
    assert rescore_main([str(tmp_path / "out")]) == 0, capsys.readouterr().out


@pytest.mark.usefixtures("undescribed")
def test_changed_verdicts_do_not_pass_rescoring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, {})
    (file,) = tmp_path.rglob("samples_*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    good = {line["doc"]["id"]: line["doc"]["_judge"] for line in lines}
    changes = [
        ("c4", {"correct": 1.0, "said": [1.0]}, "recomputed it is 0.0"),
        ("c4", {"correct": 1.0}, "is not the mean"),
        ("c2", {"rule": "judge", "correct": 1.0, "said": [1.0]}, "the specification says 'one invalid'"),
        ("c3", {"correct": 1.0}, "missing is scored as 1.0"),
        ("c4", {"kept": 10_000}, "characters, not"),
    ]
    for id_, change, says in changes:
        line = next(line for line in lines if line["doc"]["id"] == id_)
        doc = {**line["doc"], "_judge": {**good[id_], **change}}
        faults = verdict_faults(doc, line["filtered_resps"][0])
        assert any(says in fault for fault in faults), (change, faults)
        written = [{**other, "doc": doc} if other is line else other for other in lines]
        file.write_text("".join(json.dumps(one) + "\n" for one in written))
        assert rescore_main([str(tmp_path)]) == 1
        assert says in capsys.readouterr().out


@pytest.mark.usefixtures("undescribed")
def test_judge_off_predict_only_and_failures(tmp_path: Path) -> None:
    off = run(tmp_path / "off", {"judge": "off"})
    assert off["results"]["crag_correct,none"] == 0.0  # exact match alone
    assert all("_judge" not in sample["doc"] for sample in off["samples"])
    only = run(tmp_path / "only", {}, predict_only=True)
    assert all("_judge" not in sample["doc"] for sample in only["samples"])
    with pytest.raises(UserError, match="second_judge"):
        run(tmp_path / "bad", {"judge": "off", "second_judge": "rules"})
