"""``lm-eval-rag judge-check``: its numbers against scipy, a restated kappa and counting; its files and errors."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.scoring.judge import Item, Opinion, RulesJudge
from lm_eval_rag.harness.scoring.judge.agreement import check, compare, judge_check_main, wilson
from lm_eval_rag.harness.scoring.judge.labels import LABELS, Labelled, read_labels
from lm_eval_rag.harness.scoring.judge.panel import Panel
from lm_eval_rag.harness.scoring.truncate import words_cut
from lm_eval_rag.harness.scoring.verdict import Verdict

scipy_stats = pytest.importorskip("scipy.stats")
ROWS = [
    ("Which film won?", ["Redfern"], "It was Redfern", "perfect"),
    ("Which film won?", ["Redfern"], "Night Mail", "incorrect"),
    ("Which film won?", ["Redfern"], "the one by Holt about the fern", "acceptable"),
    ("Which film won?", ["Redfern"], "I don't know", "missing"),
    ("Which film won?", ["Redfern"], "Redfern", False),
    ("When did it win?", ["invalid question"], "It never won.", "correct"),
    ("When did it win?", ["invalid question"], "invalid question", True),
]


def write(path: Path, rows: list[Any]) -> Path:
    keys = ("question", "answers", "prediction", "label")
    path.write_text("\n".join(json.dumps(dict(zip(keys, row, strict=True))) for row in rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (5, 5), (3, 7), (500, 1000), (1, 1)])
def test_wilson_is_scipys(hits: int, n: int) -> None:
    theirs = scipy_stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert wilson(0, 0) == (0.0, 1.0)


def kappa(pairs: list[tuple[str, str]]) -> float:
    """(observed - expected) / (1 - expected), expected over all pairings of a label with a verdict."""
    n = len(pairs)
    observed = sum(a == b for a, b in pairs) / n
    expected = sum(a == b for a, _ in pairs for _, b in pairs) / n**2
    return (observed - expected) / (1 - expected)


def test_numbers_on_random_pairs() -> None:
    rng = random.Random(0)
    for _ in range(50):
        pairs, words = [], []
        for _ in range(rng.randint(5, 60)):
            label, right = (
                rng.choice(["perfect", "acceptable", "missing", "incorrect"]),
                rng.choice([0.0, 1.0, 0.5, None]),
            )
            verdict = Verdict("missing", 0.0) if rng.random() < 0.2 else Verdict("judge", right)
            pairs.append((Labelled("q", ("a",), "p", label), verdict))
            if verdict.correct is not None:
                meant = {"missing": "missing", "incorrect": "wrong"}.get(label, "correct")
                words.append((meant, "missing" if verdict.missing else "correct" if right == 1.0 else "wrong"))
        found = compare(pairs)
        assert (found.n, found.unscored) == (len(words), len(pairs) - len(words))
        assert sum(found.confusion.values()) == found.n
        assert all(found.confusion[f"{a}, {b}"] == words.count((a, b)) for a, b in words)
        assert found.agreement == pytest.approx(sum(a == b for a, b in words) / len(words))
        assert found.kappa == pytest.approx(kappa(words))
        called, labelled = (sum(pair[i] == "correct" for pair in words) for i in (1, 0))
        assert found.bias == pytest.approx((called - labelled) / len(words))


def test_kappa_is_not_defined_where_chance_agrees_fully() -> None:
    one = (Labelled("q", ("a",), "a", "perfect"), Verdict("exact", 1.0))
    assert compare([one, one]).kappa is None
    nothing = compare([(one[0], Verdict("judge", None))])
    assert (nothing.n, nothing.unscored, nothing.agreement, nothing.kappa) == (0, 1, None, None)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "labels.jsonl", ROWS)
    assert judge_check_main([str(file), "--json", str(tmp_path / "out.json")]) == 0
    text, found = capsys.readouterr().out, json.loads((tmp_path / "out.json").read_text())
    assert "judge: rules; predictions cut: words 75" in text
    # right: 0, 1, 3, 6; the judge misses the paraphrase, is held to a wrong label, and the rule on invalid is strict
    assert found["all"]["agreement"] == pytest.approx(4 / 7) and found["all"]["n"] == 7
    assert found["judge"]["n"] == 3 and found["judge"]["agreement"] == pytest.approx(2 / 3)
    assert found["invalid question"]["n"] == 2 and found["invalid question"]["bias"] == pytest.approx(-0.5)
    assert "agreement 57.1 % [25.0, 84.2]" in text and "called correct -50.0 points" in text
    assert {row["prediction"] for row in found["disagreements"]} == {ROWS[2][2], ROWS[4][2], ROWS[5][2]}
    assert [row["why"] for row in found["disagreements"]][-1] == "one invalid"


def test_without_invalid_questions_their_bias_is_said_to_be_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge_check_main([str(write(tmp_path / "l.jsonl", ROWS[:5])), "--whole"]) == 0
    text = capsys.readouterr().out
    assert "the bias on these is unknown" in text and "cut: whole" in text


def test_each_source_is_a_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys, sources = ("question", "answers", "prediction", "label"), ["held out", "developed", "held out", None, ""]
    rows = [dict(zip(keys, row, strict=True)) for row in ROWS[:5]]
    lines = [json.dumps({**row, "source": source}) for row, source in zip(rows, sources, strict=True)]
    (tmp_path / "l.jsonl").write_text("\n".join(lines))
    assert judge_check_main([str(tmp_path / "l.jsonl"), "--json", str(tmp_path / "out.json")]) == 0
    found, text = json.loads((tmp_path / "out.json").read_text()), capsys.readouterr().out
    assert [name for name in found if name.startswith("source")] == ["source: developed", "source: held out"]
    assert found["source: held out"]["n"] == 2 and found["source: held out"]["agreement"] == 0.5
    assert found["source: developed"]["agreement"] == 1.0 and "\nsource: held out: 2 answers\n" in text


def test_a_judge_that_fails_is_counted(tmp_path: Path) -> None:
    class Half:
        name = fingerprint = "half"

        def opinions(self, items: list[Item]) -> list[Opinion | CallError]:
            return [Opinion(1.0) if i % 2 else CallError("down") for i in range(len(items))]

    labelled = [Labelled("q", ("a",), f"b{i}", "perfect") for i in range(10)]
    found = check(labelled, Panel((Half(),), words_cut()))  # type: ignore[arg-type]
    assert (found.groups["all"].n, found.groups["all"].unscored) == (5, 5)
    assert found.groups["all"].agreement == 1.0 and found.disagreements == []


def test_rules_agree_with_the_conformance_vectors() -> None:
    """The vectors are labels too: the judge that needs no model must agree with all of them."""
    content = json.loads(Path(__file__).with_name("crag_vectors.json").read_text(encoding="utf-8"))
    labelled = [
        Labelled(v["question"], tuple(v["answers"]), v["prediction"], LABELS[v["rules_judge"]])
        for v in content["vectors"]
    ]
    found = check(labelled, Panel((RulesJudge(),), words_cut()))
    assert found.groups["all"].agreement == 1.0 and found.groups["all"].kappa == 1.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read"), ("", "contains no labelled answers"), ("{", "line 1 is not JSON"),
        ("[1]", "is not a JSON object"),
        ('{"question": "q", "answers": "a", "prediction": "p", "label": "correct"}', "lacks"),
        ('{"question": "q", "answers": ["a"], "prediction": "p"}', "Unknown label 'none'"),
        ('{"question": "q", "answers": ["a"], "prediction": "p", "label": "perfekt"}', "Did you mean 'perfect'"),
    ],
)  # fmt: skip
def test_bad_files(tmp_path: Path, text: str | None, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "labels.jsonl"
    if text is not None:
        file.write_text(text)
    assert judge_check_main([str(file)]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--judge", "no_such_model"], "judge=no_such_model"),
        (["--judge", "off"], "is no judge"),
        (["--judge_args", "model"], "Write name=value"),
        (["--judge", "local-chat-completions", "--judge_args", "model=m,num_concurrent=0"], "judge_num_concurrent=0"),
        (["--tokenizer", "none.json"], "none.json cannot be read"),
        (["--json", "/no/such/folder/x.json"], "/no/such/folder"),
    ],
)
def test_bad_options(tmp_path: Path, options: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert judge_check_main([str(write(tmp_path / "l.jsonl", ROWS)), *options]) == 2
    assert says in capsys.readouterr().err


def test_labels_are_read(tmp_path: Path) -> None:
    found = read_labels(write(tmp_path / "l.jsonl", ROWS))
    assert [one.label for one in found] == [
        "perfect",
        "incorrect",
        "acceptable",
        "missing",
        "incorrect",
        "perfect",
        "perfect",
    ]
    assert [one.correct for one in found] == [True, False, True, False, False, True, True]
