"""How far the numbers of an entry were checked: self-reported, re-scored, re-run; corpora of the submitter's own."""

from __future__ import annotations

import json

import pytest

from lm_eval_rag.cli import main
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.leaderboards.submissions.claims import claims_in, read_claim
from lm_eval_rag.leaderboards.submissions.form import Prediction
from lm_eval_rag.leaderboards.submissions.reading import RefusedError
from lm_eval_rag.leaderboards.submissions.tiers import RERUNS, read_reruns, tier_of
from lm_eval_rag.leaderboards.submissions.verifying import budget_of, verify
from tests.leaderboards.conftest import TASK

CLAIM = {
    "name": "A paper's row",
    "team": "its authors",
    "method": "a_method",
    "source": "https://example.org/paper",
    "scores": {TASK: {"em": 0.4, "crag_score": -0.2}},
}


def claim(folder, **changes):
    folder.mkdir(parents=True)
    (folder / "claim.json").write_text(json.dumps({**CLAIM, **changes}))
    return folder


def verdict(capsys, *arguments):
    status = main(["verify", *map(str, arguments)])
    return status, json.loads(capsys.readouterr().out)


# --- self-reported


def test_a_claim_is_self_reported_and_nothing_is_recomputed(tmp_path, capsys):
    status, content = verdict(capsys, claim(tmp_path / "paper"))
    assert status == 0 and content["tier"] == "self-reported"
    assert content["tasks"][TASK] == {"claimed": CLAIM["scores"][TASK]}
    assert "never ranked" in content["reason"]
    assert list(claims_in(tmp_path)) == ["paper"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scores": {TASK: {"em": 40.0}}}, "lies between 0.0 and 1.0"),
        ({"scores": {TASK: {"crag_score": -1.5}}}, "lies between -1.0 and 1.0"),
        ({"scores": {TASK: {"perplexity": 0.5}}}, "lies between 1.0 and inf"),
        ({"scores": {TASK: {"bleu": 0.4}}}, "no metric"),
        ({"scores": {"hellaswag": {"em": 0.4}}}, "no task 'hellaswag'"),
        ({"scores": {}}, "scores"),
        ({"scores": {TASK: {}}}, "scores"),
        ({"scores": {TASK: {"em": "0.4"}}}, "em"),
        ({"source": "javascript:alert(1)"}, "source"),
        ({"tier": "re-run"}, "no such key"),
    ],
)
def test_a_claim_that_cannot_be_is_refused(changes, words, tmp_path):
    with pytest.raises(RefusedError, match=words):
        read_claim(claim(tmp_path / "paper", **changes))
    assert claims_in(tmp_path) == {}


def test_a_claim_beside_predictions_or_through_a_link_is_refused(write, tmp_path, capsys):
    path = write()
    (path / "claim.json").write_text(json.dumps(CLAIM))
    assert "beside claim.json" in verdict(capsys, path)[1]["reason"]
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "claim.json").symlink_to(path / "claim.json")
    assert "no plain file" in verdict(capsys, tmp_path / "linked")[1]["reason"]


# --- re-scored and re-run


@pytest.fixture
def entry(run_of_vote, tmp_path):
    folder = tmp_path / "board" / "vote"
    folder.parent.mkdir()
    assert main(["submit", str(run_of_vote), "--name", "Vote", "--team", "t", "--out", str(folder)]) == 0
    return folder


def test_a_rerun_is_recorded_beside_the_entry(entry, run_of_vote, capsys):
    capsys.readouterr()
    assert tier_of(entry, [TASK], read_reruns(entry.parent)) == "re-scored"
    assert verdict(capsys, entry)[1]["tier"] == "re-scored"
    status, content = verdict(capsys, entry, "--rerun", run_of_vote, "--by", "a maintainer")
    assert status == 0 and content["tier"] == "re-run"
    records = read_reruns(entry.parent)
    assert records["vote"].by == "a maintainer" and records["vote"].tasks[TASK].same == 1.0
    assert records["vote"].tasks[TASK].entry == records["vote"].tasks[TASK].rerun
    assert tier_of(entry, [TASK], records) == "re-run"
    assert tier_of(entry, [TASK, "ruleqa_i"], records) == "re-scored", "the record does not cover the other task"
    card = entry / "submission.json"
    card.write_text(card.read_text().replace('"Vote"', '"Vote 2"'))
    assert tier_of(entry, [TASK], records) == "re-scored", "the entry has changed since"


def test_another_result_is_no_rerun(entry, run_of_vote, capsys):
    file = entry / "predictions" / f"{TASK}.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps({**line, "answer": "nobody"}) + "\n" for line in lines))
    assert main(["verify", str(entry), "--rerun", str(run_of_vote), "--by", "m"]) == 2
    assert "in the re-run" in capsys.readouterr().err
    assert not (entry.parent / RERUNS).exists()


def test_an_entry_cannot_hold_a_record(entry, capsys):
    (entry / RERUNS).write_text("{}")
    assert verdict(capsys, entry)[1]["accepted"] is False


def test_a_malformed_record_is_said(tmp_path):
    (tmp_path / RERUNS).write_text('{"vote": {"entry": "x"}}')
    with pytest.raises(UserError, match=r"vote\.entry"):
        read_reruns(tmp_path)


# --- corpora of the submitter's own


OWN = "0123456789abcdef"


def over(key, corpus, **more):
    return {"tasks": {TASK: {"version": key.version, "data": key.data, "corpus": corpus, "arguments": {}, **more}}}


def test_passages_of_an_own_corpus_are_accepted_without_recall(write, key, capsys):
    fields = lambda id, doc: {"retrieved": ["mine-1", "mine-2"]}  # noqa: E731
    path = write(fields=fields, **over(key, OWN))
    verified = verify(path)
    assert verified.is_foreign(TASK)
    assert not any("recall" in metric or metric == "mrr" for metric in verified.tasks[TASK].means)
    content = verdict(capsys, path)[1]
    assert content["accepted"] and content["tasks"][TASK]["corpus"] == OWN
    assert "shown apart, and its recall is not computed" in content["tasks"][TASK]["note"]


def test_the_tasks_corpus_is_looked_up_whether_or_not_it_is_named(write, key):
    fields = lambda id, doc: {"retrieved": ["mine-1"]}  # noqa: E731
    for name, changes in (("named", over(key, key.sheet.corpus)), ("not named", {})):
        with pytest.raises(RefusedError, match="does not hold"):
            verify(write(name, fields=fields, **changes))
    verified = verify(write("ours", fields=lambda id, doc: {"retrieved": ["d0001"]}, **over(key, key.sheet.corpus)))
    assert not verified.is_foreign(TASK) and "recall@1" in verified.tasks[TASK].means


def test_predictions_of_a_program_over_an_own_corpus_are_packed(key, tmp_path, capsys):
    documents = tmp_path / "documents.jsonl"
    documents.write_text('{"id": "mine-1", "text": "A text."}\n')
    lines = tmp_path / "lines.jsonl"
    lines.write_text(
        "".join(json.dumps({"id": id, "answer": "x", "retrieved": ["mine-1"]}) + "\n" for id in key.questions)
    )
    arguments = ["submit", "--from", lines, "--task", TASK, "--method", "m", "--name", "n", "--team", "t"]
    assert main([*map(str, arguments), "--corpus", str(documents), "--out", str(tmp_path / "out")]) == 0
    assert "recall is not computed" in capsys.readouterr().out
    assert verify(tmp_path / "out").is_foreign(TASK)


# --- the budget


def test_the_budget_is_the_sum_of_the_lines(write, key):
    lines = [Prediction(id=str(i), answer="", calls=i, seconds=0.5) for i in range(4)]
    assert budget_of(lines).calls == 6 and budget_of(lines).seconds == 2.0 and budget_of(lines).cost is None
    assert budget_of([*lines, Prediction(id="x", answer="")]).calls is None, "one line does not say"
    fields = lambda id, doc: {"calls": 2}  # noqa: E731
    verify(write("right", fields=fields, **over(key, None, budget={"calls": 400})))
    for name, budget in (("low", {"calls": 4}), ("invented", {"calls": 400, "cost": 0.0})):
        with pytest.raises(RefusedError, match="budget"):
            verify(write(name, fields=fields, **over(key, None, budget=budget)))


# --- what a board reads


def test_a_board_ranks_neither_own_corpora_nor_claims(write, key, entry, run_of_vote, tmp_path):
    from lm_eval_rag.leaderboards.board.entries import read_entries
    from lm_eval_rag.leaderboards.board.overall import board_of

    board = entry.parent
    assert main(["verify", str(entry), "--rerun", str(run_of_vote), "--by", "m"]) == 0
    write("Own", fields=lambda id, doc: {"retrieved": ["mine"]}, **over(key, OWN)).rename(board / "own")
    claim(board / "paper")
    entries, refused = read_entries(board)
    assert [(one.card.name, one.tier) for one in entries] == [("Own", "re-scored"), ("Vote", "re-run")]
    assert refused == []
    (task,) = board_of(entries).tasks
    kinds = {row.name: (row.kind, row.standing is not None) for row in task.rows if row.slug}
    assert kinds == {"Own": ("own corpus", False), "Vote": ("entry", True)}
