"""The demo's table and sentences, of runs whose scores are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_eval_rag._demo import METHODS, garbled_answers, interpretation, score_table
from lm_eval_rag.cli import main
from lm_eval_rag.harness.report.run_files import TaskRun

N = 40


def run(method, right, found, answer="Vale", text="Ada was born in Vale."):
    """A run of which the first ``right`` answers are right; the first ``found`` questions have a hit."""
    samples = []
    for i in range(N):
        passages = [{"text": text}] * (14 if method == "rule_vote" else 1)
        record = {"prompt_tokens": 90, "completion_tokens": 10, "passages": passages}
        scores = {"em": float(i < right), "token_f1": float(i < right)}
        scores |= {"recall@10": float(i < found)} if method != "link_vote" else {}  # which retrieves nothing
        doc = {"id": f"q{i}", "_rag": record}
        samples.append(
            {"doc_id": i, "doc": doc, "filter": "none", "filtered_resps": [answer], "metrics": list(scores), **scores}
        )
    return TaskRun(method, "ruleqa_demo", Path("results.json"), {}, tuple(samples), len(samples))


@pytest.fixture
def runs():
    rights = {"link_vote": 12, "copy_vote": 4, "rule_vote": 30, "rulerag_ft_extractive": 22}
    return {name: run(name, rights.get(name, 10), 38 if name == "rule_vote" else 20) for name in METHODS}


def test_trivial_baselines_first_and_four_columns_with_intervals(runs):
    head, ruler, *rows = score_table(runs).splitlines()
    assert head.split() == ["em", "token_f1", "recall@10", "tokens", "a", "question"]
    assert [row.split()[0] for row in rows] == list(METHODS) and len(ruler.split()) == 5
    assert list(METHODS[:2]) == ["link_vote", "copy_vote"], "what every method must beat"
    assert "30.0 [" in rows[0] and "75.0 [" in rows[2] and "25.0 [" in rows[3] and rows[2].endswith(" 100")
    assert rows[0].split()[-2:] == ["-", "100"], "no recall of a look-up"


def test_the_sentences_follow_the_numbers(runs):
    text = " ".join(interpretation(runs).split())
    assert (
        "+65.0 [50.0, 80.0] em (significant) over copy_vote, a vote without rules (14 and 1 documents a question)"
        in text
    )
    assert "0.0 recall@10 (not significant) and 0.0 em (not significant); over link_vote" in text
    assert "-5.0 [-12.5, 0.0] em (not significant)." in text, "10 right against 12"
    assert "(rulerag_ft_extractive), it has +30.0 [" in text and "em (significant) over standard_rag." in text
    assert "garbles" not in text, "all wrong answers stand in the passages"
    garbling = {**runs, "rulerag_ft": run("rulerag_ft", 10, 39, answer="Vlae")}
    assert garbled_answers(garbling["rulerag_ft"]) == (30, 30)
    assert "30 of its 30 wrong answers stand in no passage" in interpretation(garbling)


def test_bad_input_of_the_demo(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for arguments, words in ((["--limit", "0"], "limit"), (["--out", str(tmp_path / "file" / "x")], "file")):
        assert main(["demo", *arguments]) == 2
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1


def test_the_demo_runs(tmp_path, capsys):
    assert main(["demo", "--limit", "6", "--out", str(tmp_path / "demo")]) == 0
    out, err = capsys.readouterr()
    assert "it/s" not in err and "fatal" not in err
    assert all(method in out for method in METHODS) and str(tmp_path / "demo" / "demo.html") in out
    assert (tmp_path / "demo" / "demo.html").stat().st_size > 10_000
    assert (tmp_path / "demo" / "log.txt").is_file()
