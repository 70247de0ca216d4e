"""``lm-eval-rag report`` on runs that lm_eval itself wrote: what it says against numpy, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.cells import cell
from lm_eval_rag.harness.report.content import build
from lm_eval_rag.harness.report.document import document
from lm_eval_rag.harness.report.filtering import only_where
from lm_eval_rag.harness.report.report_cli import report_main
from lm_eval_rag.harness.report.report_tables import grids_of
from lm_eval_rag.harness.report.report_text import render
from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.report.stats import Interval, interval, paired
from lm_eval_rag.harness.report.table import printable, table
from lm_eval_rag.harness.scoring.verdict import VERDICT, Verdict

Make = Callable[..., Path]
PUBLISHED = Path(__file__).parents[3] / "leaderboards" / "published"


@pytest.fixture(scope="module")
def runs(make_run: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three methods and a stock model on the same 120 questions; some questions of one method failed."""
    folder = tmp_path_factory.mktemp("runs")
    closed = {"passages": None, "calls": {"Generate": 1}}
    make_run(folder / "a", model="standard_prompting", n=120, right=0.05, edit=lambda _, record: record.update(closed))
    make_run(folder / "b", model="standard_rag", n=120, right=0.3, seed=1)
    make_run(folder / "c", model="rulerag_icl", n=120, right=0.6, seed=2, failing=0.05)
    make_run(folder / "d", model="hf", n=120, right=0.1, seed=3, stock=True)
    return folder


def lines_of(folder: Path) -> list[dict[str, Any]]:
    (file,) = folder.rglob("samples_*.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_means_are_lm_evals(runs: Path) -> None:
    (report,) = build(read_runs([runs]))
    assert [run.run for run in report.runs] == ["standard_prompting", "standard_rag", "rulerag_icl", "hf"]
    for run in report.runs:
        given = json.loads(Path(run.path).read_text(encoding="utf-8"))["results"]["ruleqa_i"]
        wanted = {key.removesuffix(",none"): value for key, value in given.items() if key.endswith(",none")}
        assert set(run.scores) == {name for name in wanted if not name.endswith("_stderr")}
        for name, found in run.scores.items():
            assert found.mean == pytest.approx(wanted[name], rel=1e-12)
            if found.low is not None and found.high is not None:  # 95 % is near two standard errors on each side
                assert found.high - found.low == pytest.approx(3.92 * wanted[f"{name}_stderr"], rel=0.25)


def test_unscored_are_counted_and_named(runs: Path) -> None:
    (report,) = build(read_runs([runs]))
    failed = [line["doc"]["id"] for line in lines_of(runs / "c") if line["doc"]["_rag"]["failure"]]
    assert 0 < len(failed) < 30
    found = report.runs[2]
    assert list(found.unscored) == failed and set(found.unscored.values()) == {"HTTP 500 after 3 tries"}
    assert (found.questions, found.scores["em"].n) == (120, 120 - len(failed))
    assert all(not run.unscored for run in report.runs if run.run != "rulerag_icl")


@pytest.mark.parametrize("by", ["slice", "popularity", "relation"])
def test_slices_are_means_over_their_questions(runs: Path, by: str) -> None:
    (report,) = build(read_runs([runs / "b"]), by)
    lines = lines_of(runs / "b")
    assert sum(report.sizes.values()) == 120
    for name, size in report.sizes.items():
        values = [line["em"] for line in lines if line["doc"][by] == name]
        assert len(values) == size
        assert report.runs[0].slices[name]["em"].mean == pytest.approx(np.mean(values))
    if by == "slice":
        assert list(report.sizes) == ["direct", "rule_required", "unreachable"]


def test_change_is_shown_with_the_slices(make_run: Make, tmp_path: Path) -> None:
    """Temporal sets: a look-up wins on stable questions, so every table by slice has both parts."""
    make_run(tmp_path, model="standard_rag", n=60, right=0.3)
    (file,) = tmp_path.rglob("samples_*.jsonl")
    lines = lines_of(tmp_path)
    for i, line in enumerate(lines):
        line["doc"]["change"] = "changed" if i % 3 else "stable"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (report,) = build(read_runs([tmp_path]))
    assert list(report.sizes) == ["direct", "rule_required", "unreachable", "stable", "changed"]
    assert (report.sizes["stable"], report.sizes["changed"]) == (20, 40)
    values = [line["em"] for line in lines if line["doc"]["change"] == "changed"]
    assert report.runs[0].slices["changed"]["em"].mean == pytest.approx(np.mean(values))
    assert list(build(read_runs([tmp_path]), "change")[0].sizes) == ["stable", "changed"]


def test_differences_are_paired_and_holm_is_over_all(runs: Path) -> None:
    (report,) = build(read_runs([runs]))
    first, second = ({line["doc"]["id"]: line.get("em") for line in lines_of(runs / x)} for x in "bc")
    shared = [id_ for id_ in first if first[id_] is not None and second[id_] is not None]
    found = next(
        c for c in report.comparisons if (c.first, c.second, c.metric) == ("standard_rag", "rulerag_icl", "em")
    )
    assert found.difference.interval.n == len(shared) < 120
    assert found.difference.interval.mean == pytest.approx(np.mean([second[i] - first[i] for i in shared]))
    assert found.difference.test == "mcnemar"
    pairs = {(c.first, c.second) for c in report.comparisons}
    assert len(pairs) == 6
    raw = sorted(c.difference.p for c in report.comparisons)
    assert min(c.p_holm for c in report.comparisons) == pytest.approx(min(1.0, raw[0] * len(raw)))
    assert all(c.p_holm >= c.difference.p for c in report.comparisons)


def test_cost_is_from_the_records(runs: Path) -> None:
    (report,) = build(read_runs([runs]))
    records = [line["doc"]["_rag"] for line in lines_of(runs / "b")]
    cost = report.runs[1].cost
    assert cost is not None
    assert cost.prompt_tokens == sum(record["prompt_tokens"] for record in records)
    assert cost.calls == {"Generate": 120, "Retrieve": 360}
    seconds = [record["seconds"] for record in records]
    assert cost.seconds_p50 == np.quantile(seconds, 0.5, method="inverted_cdf")
    assert cost.seconds_p95 == np.quantile(seconds, 0.95, method="inverted_cdf")
    assert report.runs[3].cost is None  # a stock model leaves no record


def test_text_and_json(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_main([str(runs), "--json", str(tmp_path / "report.json")], PUBLISHED) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 120
    for wanted in (
        "rule_required",
        "rulerag_icl - standard_rag",
        "RuleRAG, table 2",
        "LLAMA2_7B",
        "corrected for the 25 tests",
    ):
        assert wanted in " ".join(text.split())
    assert "! RuleRAG: the text calls RuleQA-I the hardest for every generator" in text
    assert "RuleRAG's released code takes as the answer the first known entity" in text
    (task,) = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["tasks"]
    em = task["runs"][1]["scores"]["em"]
    assert f"{100 * em['mean']:.1f} [{100 * em['low']:.1f}, {100 * em['high']:.1f}]" in text
    assert task["published"][0]["ours"] == "standard_prompting"
    assert "em" in {one["metric"] for one in task["published"]} <= {"em", "recall@10"}  # T-F1 is not token_f1
    assert report_main([str(runs / "b")]) == 0
    assert "LLAMA2" not in capsys.readouterr().out


def test_the_same_report_twice(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = set()
    for seed in ("0", "0", "1"):
        report_main([str(runs), "--seed", seed])
        texts.add(capsys.readouterr().out)
    assert len(texts) == 2


def test_no_published_numbers_beside_another_task(make_run: Make, tmp_path: Path, capsys: Any) -> None:
    """Harder or renamed questions are not the paper's."""
    make_run(tmp_path, task="ruleqa_i_hard", n=20)
    report_main([str(tmp_path)], PUBLISHED)
    assert "RuleRAG" not in capsys.readouterr().out


def test_answers_cannot_reach_the_terminal(make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\r\nrm"

    def edit(doc: dict[str, Any], record: dict[str, Any]) -> None:
        record.update(answer=evil, failure=evil if doc["id"] == "q0000" else None, calls={evil: 1})
        doc["slice"] = evil  # of the model's copy: must not matter

    make_run(tmp_path, n=20, edit=edit, arguments={"note": evil})
    make_run(tmp_path, n=20, arguments={"note": "plain"})
    report_main([str(tmp_path)])
    out = capsys.readouterr().out
    assert "\\x1b]0;owned" in out
    assert all(c.isprintable() or c == "\n" for c in out)


def test_printable_escapes() -> None:
    assert printable("a\tb\x1b\u202e\ud800é") == "a\\tb\\x1b\\u202e\\ud800é"
    assert table(["", "n"], [["a\nb", "1"], ["c", "22"]]) == "       n\n----  --\na\\nb   1\nc     22"


def test_the_style_of_answers_is_always_told(make_run: Make, tmp_path: Path) -> None:
    """Also where no other run of the method is there to differ from it."""
    make_run(tmp_path / "a", model="rulerag_icl", arguments={"answer_style": "short", "k": 5})
    make_run(tmp_path / "b", model="standard_rag", arguments={"k": 5})
    runs = read_runs([tmp_path])
    assert [run.label for run in runs] == ["rulerag_icl answer_style=short", "standard_rag"]
    text = render(document(build(runs)))
    assert text.count("rulerag_icl answer_style=short") >= 4  # in every table
    assert {"em", "em_contains"} <= set(text.split())


def test_labels_tell_runs_of_one_method_apart(make_run: Make, tmp_path: Path) -> None:
    make_run(tmp_path / "a", n=8, arguments={"k": 10, "rules": "selected", "journal": "/x", "path": "1"})
    make_run(tmp_path / "b", n=8, arguments={"k": 10, "rules": "random", "journal": "/y", "path": "2"})
    make_run(tmp_path / "c", n=8, arguments={"k": 10, "rules": "random"})
    labels = [run.label for run in read_runs([tmp_path])]
    assert labels == ["rulerag_icl rules=selected", "rulerag_icl rules=random", "rulerag_icl rules=random #2"]


def test_newer_of_two_equal_runs_counts(make_run: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_run(tmp_path, n=8, right=0.0)
    make_run(tmp_path, n=9, right=1.0)
    (run,) = read_runs([tmp_path])
    assert len(run.questions) == 9
    assert "newer run" in caplog.text
    older = min(tmp_path.rglob("results_*.json"))
    assert [len(run.questions) for run in read_runs([older])] == [8]


def test_a_results_file_of_ones_own_name(make_run: Make, tmp_path: Path) -> None:
    """As ``--output_path mine.json`` names it."""
    (results,) = make_run(tmp_path, n=8).rglob("results_*.json")
    own = results.rename(results.with_name(results.name.replace("results_", "mine_")))
    assert len(read_runs([own])[0].samples) == len(read_runs([tmp_path])[0].samples) == 8


def test_all_questions_failed(make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "a", n=8, failing=1.0)
    make_run(tmp_path / "b", n=8, model="standard_rag")
    assert report_main([str(tmp_path)]) == 0
    assert "unscored in rulerag_icl: q0000 (HTTP 500 after 3 tries); q0001" in capsys.readouterr().out


def broken(folder: Path, how: str) -> None:
    """Spoil a run."""
    (results,), (samples,) = folder.rglob("results_*.json"), folder.rglob("samples_*.jsonl")
    text = samples.read_text(encoding="utf-8")
    content = json.loads(results.read_text(encoding="utf-8"))
    if how == "no samples":
        samples.unlink()
    elif how == "cut in a line":
        samples.write_text(text[:-100], encoding="utf-8")
    elif how == "cut between lines":
        samples.write_text("".join(text.splitlines(keepends=True)[:-2]), encoding="utf-8")
    elif how == "a line twice":
        samples.write_text(text + text.splitlines()[0] + "\n", encoding="utf-8")
    elif how == "not text":
        samples.write_bytes(b"\xff\xfe\x00" * 20)
    elif how == "not samples":
        samples.write_text('{"a": 1}\n' * 8, encoding="utf-8")
    elif how == "results cut":
        results.write_text(results.read_text(encoding="utf-8")[:200], encoding="utf-8")
    elif how == "another format":
        del content["n-samples"]
        results.write_text(json.dumps(content), encoding="utf-8")
    elif how == "no date":
        results.rename(results.with_name("results.json"))


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("no samples", "were not logged"),
        ("cut in a line", "was truncated"),
        ("cut between lines", "is truncated"),
        ("a line twice", "is repeated"),
        ("not text", "is not JSON"),
        ("not samples", "lacks doc_id"),
        ("results cut", "is not JSON"),
        ("another format", "lacks n-samples"),
        ("no date", "contains no results"),
    ],
)
def test_broken_runs(make_run: Make, tmp_path: Path, how: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path, n=8)
    broken(tmp_path, how)
    capsys.readouterr()
    assert report_main([str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert says in captured.err and captured.err.startswith("lm-eval-rag: ") and captured.out == ""


def test_other_bad_input(make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "a", n=8)
    make_run(tmp_path / "b", n=8, version=2.0)
    make_run(tmp_path / "c", n=8, corpus="made_up/1")
    make_run(tmp_path / "d", n=8, predict_only=True)
    (tmp_path / "empty").mkdir()
    for given, says in [
        ([tmp_path / "nowhere"], "does not exist"),
        ([tmp_path / "empty"], "contains no results"),
        ([tmp_path / "a", tmp_path / "b"], "version"),
        ([tmp_path / "d"], "--predict_only"),
        ([tmp_path / "a", tmp_path / "c"], "asked different things"),
        ([tmp_path / "a", "--json", tmp_path / "no" / "file"], "cannot be written"),
        ([tmp_path / "a", "--seed", -5], "seed=-5 is not allowed: give a whole number of 0 or more"),
        ([tmp_path / "a", "--metrics", "em,recal@10"], "Unknown metric 'recal@10'. Did you mean 'recall@10'"),
    ]:
        assert report_main([str(one) for one in given]) == 2
        assert says in capsys.readouterr().err
    assert report_main([str(tmp_path / "a")], tmp_path / "empty") == 2
    assert "names.csv does not exist" in capsys.readouterr().err
    assert report_main([str(tmp_path / "a"), "--by", "colour"]) == 2
    assert "Unknown column of the questions 'colour'" in capsys.readouterr().err


def test_a_folder_that_a_failed_run_left_is_named_and_left_out(
    make_run: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_run(tmp_path / "a", n=8)
    (tmp_path / "failed").mkdir()
    alone, both = (len(read_runs(paths)) for paths in ([tmp_path / "a"], [tmp_path / "failed", tmp_path / "a"]))
    assert alone == both > 0
    (message,) = caplog.messages
    assert message.startswith(f"{tmp_path / 'failed'} contains no results of lm_eval")


def test_a_part_of_a_task_is_said(make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path, n=8)
    said = "only 8 of the task's 1,200 questions were asked (--limit, --samples):"
    assert report_main([str(tmp_path)]) == 0 and said not in " ".join(capsys.readouterr().out.split())
    (file,) = tmp_path.rglob("results_*.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    for counts in results["n-samples"].values():
        counts["original"] = 1200
    file.write_text(json.dumps(results), encoding="utf-8")
    assert report_main([str(tmp_path)]) == 0 and said in " ".join(capsys.readouterr().out.split())


def test_answers_that_the_rules_alone_rejected_are_counted(
    make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path, n=8)
    assert report_main([str(tmp_path)]) == 0 and "judge=rules" not in capsys.readouterr().out
    verdicts = [
        Verdict("judge", 0.0, judges=("rules",), said=(0.0,)),
        Verdict("judge", 0.0, judges=("rules",), said=(0.0,)),
        Verdict("judge", 1.0, judges=("rules",), said=(1.0,)),
        Verdict("exact", 1.0, judges=("rules",)),
        Verdict("one invalid", 0.0, judges=("rules",)),  # CRAG's rule, no judge was asked
        Verdict("refusal", 0.0, judges=("rules",), said=(0.0,)),
        Verdict("judge", 0.0, judges=("hf a",), said=(0.0,)),
        Verdict("judge", 0.5, judges=("rules", "hf a"), said=(0.0, 1.0)),
    ]
    lines = lines_of(tmp_path)
    (file,) = tmp_path.rglob("samples_*.jsonl")
    for line, verdict in zip(lines, verdicts, strict=True):
        line["doc"][VERDICT] = verdict.record()
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (report,) = build(read_runs([tmp_path]))
    assert [run.rejected for run in report.runs] == [2]
    assert report_main([str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "called wrong by judge=rules, which knows few other words for an answer" in said
    assert f"{report.runs[0].run} 2" in said
    assert f"as wrong in its public script: {report.runs[0].run} 1" in said


def test_against_compares_with_one_run_only(runs: Path) -> None:
    read = read_runs([runs])
    labels = [run.label for run in read]
    (everything,), (some,) = build(read), build(read, against=labels[1], metrics=("em",))
    assert {(c.first, c.second) for c in some.comparisons} == {(labels[1], x) for x in labels if x != labels[1]}
    assert {c.metric for c in some.comparisons} == {"em"}
    assert len({(c.first, c.second) for c in everything.comparisons}) == 6
    assert set().union(*(s for r in some.runs for s in r.slices.values())) == {"em"}
    with pytest.raises(UserError, match="Unknown run 'nobody'"):
        build(read, against="nobody")


def test_a_zero_has_no_minus() -> None:
    """Not even one that is a zero only when rounded."""
    assert cell(Interval(-0.0004, -0.001, 0.0186, 9), "em") == "0.0 [-0.1, 1.9]"
    assert cell(Interval(-0.0004, -0.0, -0.0002, 5), "em", of=9) == "0.0 [0.0, 0.0] n=5"


def test_versions_are_shown_apart_on_request(make_run: Make, tmp_path: Path) -> None:
    """Else they are refused, and both versions are named."""
    make_run(tmp_path / "a", model="standard_rag", n=8)
    make_run(tmp_path / "b", model="rule_vote", n=8, version=2.0)
    runs = read_runs([tmp_path])
    with pytest.raises(UserError, match=rf"standard_rag ran version {runs[0].version}, rule_vote version 2.0.*--apart"):
        build(runs)
    old, new = build(runs, apart=True)
    assert [old.task, new.task] == [f"ruleqa_i@{runs[0].version}", "ruleqa_i@2.0"]
    assert [len(report.runs) for report in (old, new)] == [1, 1] and not (*old.comparisons, *new.comparisons)
    assert [report.task for report in build(runs[:1], apart=True)] == ["ruleqa_i"]


def test_questions_are_clustered_as_the_task_declares(make_run: Make, tmp_path: Path) -> None:
    """The first run is older and declares nothing; the page names the keys, and ``--unclustered`` leaves them out."""
    make_run(tmp_path / "a", model="standard_prompting", n=120, right=0.3)
    make_run(tmp_path / "b", model="standard_rag", n=120, right=0.5, seed=1)
    (file,) = (tmp_path / "b").rglob("results_*.json")
    content = json.loads(file.read_text(encoding="utf-8"))
    config = content["configs"].setdefault("ruleqa_i", {})
    config["metadata"] = {**(config.get("metadata") or {}), "clusters": [["popularity", "relation"], "relation"]}
    file.write_text(json.dumps(content), encoding="utf-8")
    runs = read_runs([tmp_path])
    (report,) = build(runs)
    assert report.clusters == (("popularity", "relation"), ("relation",))
    docs = [sample["doc"] for sample in runs[1].questions.values()]
    labels = [[(doc["popularity"], doc["relation"]) for doc in docs], [doc["relation"] for doc in docs]]
    for run, scores in zip(runs, report.runs, strict=True):
        assert scores.scores["em"] == interval(list(run.scores["em"].values()), clusters=labels)
    ours, theirs = (list(run.scores["em"].values()) for run in reversed(runs))
    (em,) = (one for one in report.comparisons if one.metric == "em")
    assert em.difference == paired(ours, theirs, clusters=labels)
    assert "ruleqa_i: questions are clustered by popularity and relation; by relation." in render(document([report]))
    (plain,) = build(runs, clustered=False)
    assert plain.runs[0].scores["em"] == interval(list(runs[0].scores["em"].values()))
    assert "clustered by" not in render(document([plain]))


def test_dollars_and_preparations_are_costs_of_the_report(make_run: Make, tmp_path: Path) -> None:
    """What a question cost is summed; what was paid before the first question stands beside it, never in it."""
    make_run(tmp_path / "a", model="graphrag", n=60, edit=lambda _, record: record.update(cost=0.0015))
    make_run(tmp_path / "b", model="standard_rag", n=60, seed=1)
    (file,) = (tmp_path / "a").rglob("results_*.json")
    content = json.loads(file.read_text(encoding="utf-8"))
    account = {"calls": 1260, "prompt_tokens": 284_570, "completion_tokens": 182_609, "cost": 0.152}
    content["config"]["rag"] = {"preparations": {"graphrag": account}}
    file.write_text(json.dumps(content), encoding="utf-8")
    reports = build(read_runs([tmp_path / "a", tmp_path / "b"]))
    priced, unpriced = reports[0].runs
    assert priced.cost is not None and priced.cost.dollars == pytest.approx(60 * 0.0015)
    assert unpriced.cost is not None and unpriced.cost.dollars is None and unpriced.prepared == ()
    text = " ".join(render(document(reports)).split())
    assert "US$" in text and " 0.09 " in text
    assert "preparation of graphrag, 1,260 calls, 284,570 prompt tokens, 182,609 new tokens, US$ 0.152." in text
    assert "US$" not in render(document(build(read_runs([tmp_path / "b"]))))


def test_what_answers_note_is_counted_and_so_are_blank_ones(make_run: Make, tmp_path: Path) -> None:
    seen = count()

    def edit(doc: dict[str, Any], record: dict[str, Any]) -> None:
        i = next(seen)
        record["notes"] = ["answer unparsed", "x" * 100] if i % 3 == 0 else []
        record["answer"] = " " if i % 3 == 1 else "Bo"

    make_run(tmp_path / "a", model="ircot", n=30, edit=edit)
    make_run(tmp_path / "b", model="standard_rag", n=30, edit=lambda _, record: record.update(answer="Bo", notes=[]))
    (report,) = build(read_runs([tmp_path / "a", tmp_path / "b"]))
    assert report.runs[0].noted == {"answer unparsed": 10, "blank answer": 10, "x" * 100: 10}
    assert report.runs[1].noted == {}
    text = " ".join(render(document([report])).split())
    assert f"ircot noted: answer unparsed (10), blank answer (10), {'x' * 80} (10)." in text


def test_failed_questions_were_asked(make_run: Make, tmp_path: Path) -> None:
    """lm_eval counts scored questions only; a report says that not all were asked where a limit left some out."""
    make_run(tmp_path, model="standard_rag", n=60, failing=0.5)
    runs = read_runs([tmp_path])
    (report,) = build(runs)
    assert report.runs[0].unscored and report.runs[0].part is None
    (some,) = build(only_where(runs, "slice=direct"))
    assert some.runs[0].questions < 60 and some.runs[0].part is None


def test_slices_show_how_many_were_scored(make_run: Make, tmp_path: Path) -> None:
    make_run(tmp_path, model="standard_rag", n=60, failing=0.5)
    (report,) = build(read_runs([tmp_path]))
    (grid,) = [grid for grid in grids_of(report) if grid.title == "Scores by slice"]
    for row, (name, size) in zip(grid.rows, report.sizes.items(), strict=True):
        scored = report.runs[0].slices[name]["em"].n
        assert row[2] == str(size) and scored < size and row[3].endswith(f" n={scored}")
