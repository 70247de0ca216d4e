"""What a user reads of judges: errors, the help and the report of judge-check; and what is chosen by which argument."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.scoring.judge import Item, Opinion, RulesJudge
from lm_eval_rag.harness.scoring.judge.agreement import (
    EPILOG,
    Agreement,
    CheckResult,
    check,
    judge_check_main,
    render,
    verdict_word,
)
from lm_eval_rag.harness.scoring.judge.choose import judges_of
from lm_eval_rag.harness.scoring.judge.labels import FORMAT, Labelled, read_labels
from lm_eval_rag.harness.scoring.judge.llm import DECODING, ModelJudge, _template, prompt, quoted, read_reply
from lm_eval_rag.harness.scoring.judge.panel import Panel, Response, verdict_faults
from lm_eval_rag.harness.scoring.truncate import WHOLE, Cut, words_cut
from lm_eval_rag.harness.scoring.verdict import VERDICT, Verdict

API = "local-completions"


# --- labels


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, r"none\.jsonl cannot be read: .*No such file.*\. "),
        (b"\xff\xfe", r"none\.jsonl cannot be read: 'utf-8' codec .*\. "),
        (b" \n\n", r"none\.jsonl contains no labelled answers\. "),
        (b"\n\n{", r"none\.jsonl, line 3 is not JSON \(.*\)\. "),
        (b"[1]", r"none\.jsonl, line 1 is not a JSON object\. "),
        *(
            (json.dumps({**{"question": "q", "answers": ["a"], "prediction": "p"}, key: value}).encode(),
             r"none\.jsonl, line 1 lacks a question, a prediction or a list of answers\. ")
            for key, value in (("question", None), ("prediction", 3), ("answers", "a"), ("answers", []))
        ),
    ],
)  # fmt: skip
def test_a_bad_file_of_labels_is_named_with_the_line_and_the_format(
    tmp_path: Path, text: bytes | None, says: str
) -> None:
    file = tmp_path / "none.jsonl"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(UserError, match=f"^{re.escape(str(tmp_path))}/{says}{re.escape(FORMAT)}$"):
        read_labels(file)


def test_an_unknown_label_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "l.jsonl"
    file.write_text('\n{"question": "q", "answers": ["a"], "prediction": "p", "label": "Perfekt"}')
    with pytest.raises(UserError, match=rf"^Unknown label 'perfekt'\..* In {re.escape(str(file))}, line 2\.$"):
        read_labels(str(file))


def test_labels_in_any_case_and_answers_of_any_type(tmp_path: Path) -> None:
    file = tmp_path / "l.jsonl"
    row = {"question": "Où?", "answers": ["é", 3], "prediction": "東京", "label": "Acceptable"}
    file.write_bytes(json.dumps(row, ensure_ascii=False).encode())
    assert read_labels(file) == [Labelled("Où?", ("é", "3"), "東京", "acceptable")]


# --- the choice of judges


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"second_judge": "rules"}, "second_judge=rules needs a first judge. Set judge= too."),
        ({"judge": "rules",
        "second_judge": "rules"}, "judge and second_judge are both rules. Name two different judges."),
        ({"judge": "rules", "judge_b": 1, "judge_a": 2}, "judge=rules takes no arguments. Remove judge_a."),
        (
            {"judge": "tiny", "judge_model": "m", "second_judge": "rules", "second_judge_x": 1},
            "second_judge=rules takes no arguments. Remove second_judge_x.",
        ),
        (
            {"judge": API, "judge_token": "x"},
            "judge_token is refused, because metadata are written to the results file. Set the key in the environment.",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_choice_is_one_message(metadata: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(says)}$"):
        judges_of(metadata)


def test_a_model_that_is_unknown_is_told_of_the_judge_that_needs_none() -> None:
    with pytest.raises(UserError, match=r"^judge=gpt-5: Unknown .* \(judge=rules needs no model\.\)$"):
        judges_of({"judge": "gpt-5"})


def generator(judge: Any) -> LMGenerator:
    assert isinstance(judge, ModelJudge) and isinstance(judge.generator, LMGenerator)
    return judge.generator


def test_arguments_go_to_the_judge_that_they_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    for name in ("RANK", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    first, second = judges_of({
        "judge": API, "judge_model": "m", "judge_base_url": "http://u", "judge_chat": False, "judge_batch_size": 3,
        "judge_device": "cpu", "second_judge": "tiny", "other": 1,
    })  # fmt: skip
    spec = generator(first).spec
    assert (spec.name, dict(spec.arguments), spec.batch_size, spec.device) == (
        API, {"model": "m", "base_url": "http://u"}, 3, "cpu",
    )  # fmt: skip
    assert (first.name, second.name) == (f"{API} m", "tiny") and generator(first).asked_chat is False
    spec = generator(second).spec
    assert (spec.name, dict(spec.arguments), spec.batch_size, spec.device) == ("tiny", {}, 1, None)
    assert generator(second).asked_chat is None
    assert first.path == tmp_path / "journal" / f"judge-{first.fingerprint[:16]}.sqlite"  # type: ignore[attr-defined]
    for rank, end in (("0", ""), ("2", ".rank2")):
        monkeypatch.setenv("RANK", rank)
        (alone,) = judges_of({"judge": "tiny", "judge_pretrained": "p"})
        assert alone.name == "tiny p"
        assert alone.path == tmp_path / "journal" / f"judge-{alone.fingerprint[:16]}{end}.sqlite"  # type: ignore[attr-defined]


def test_the_default_is_that_of_the_first_judge() -> None:
    assert judges_of({}) == judges_of(None, "off") == judges_of({"judge": "off"}, "rules") == ()
    assert judges_of({}, "rules") == (RulesJudge(),) and RulesJudge().name == "rules"


# --- judge-check


def agreement(**changes: Any) -> Agreement:
    counts = {f"{a}, {b}": 0 for a in ("correct", "missing", "wrong") for b in ("correct", "missing", "wrong")}
    fields = {
        "n": 12, "unscored": 0, "confusion": {**counts, "correct, correct": 7, "wrong, missing": 5},
        "agreement": 7 / 12, "low": 0.25, "high": 0.8421, "kappa": 1 / 3, "bias": -0.125,
    }  # fmt: skip
    return Agreement(**{**fields, **changes})


def test_the_report_is_a_table_for_each_group() -> None:
    failed = agreement(n=0, unscored=3, confusion=dict.fromkeys(agreement().confusion, 0), agreement=None, bias=None)
    result = CheckResult({"all": agreement(unscored=3), "judge": agreement(kappa=None, bias=0.5)}, [])
    assert (
        render(result, Panel((RulesJudge(), RulesJudge("two")), words_cut(9)))
        == """\
judge: rules and two; predictions cut: words 9

all: 12 answers, and 3 unscored
  label / verdict    correct   missing     wrong
  correct                  7         0         0
  missing                  0         0         0
  wrong                    0         5         0
  agreement 58.3 % [25.0, 84.2], kappa 0.333, called correct -12.5 points relative to the labels

judge: 12 answers
  label / verdict    correct   missing     wrong
  correct                  7         0         0
  missing                  0         0         0
  wrong                    0         5         0
  agreement 58.3 % [25.0, 84.2], kappa not defined, called correct +50.0 points relative to the labels

there is no answer to an invalid question: the bias on these is unknown
"""
    )
    text = render(CheckResult({"invalid question": failed}, []), Panel((RulesJudge(),), WHOLE))
    assert text.startswith("judge: rules; predictions cut: whole\n\ninvalid question: 0 answers, and 3 unscored\n")
    assert "agreement" not in text and "unknown" not in text and text.endswith("         0\n")


def test_words_for_verdicts_and_what_counts_as_a_disagreement() -> None:
    assert [verdict_word(Verdict("judge", share)) for share in (1.0, 0.75, 0.5, 0.0, None)] == [
        "correct", "correct", "wrong", "wrong", "wrong",
    ]  # fmt: skip
    assert verdict_word(Verdict("missing", 0.0)) == "missing"
    labelled = [
        Labelled("Who?", ("Ada",), "Ada", "incorrect"), Labelled("Who?", ("Ada",), "Bob", "acceptable"),
        Labelled("Who?", ("an INVALID question",), "Bob", "incorrect"), Labelled("Who?", ("Ada",), " ", "missing"),
    ]  # fmt: skip
    found = check(labelled, Panel((RulesJudge(),)))
    assert [(name, group.n) for name, group in found.groups.items()] == [
        ("all", 4),
        ("judge", 1),
        ("invalid question", 1),
    ]
    assert found.disagreements == [
        {"question": "Who?", "answers": ("Ada",), "prediction": "Ada", "label": "incorrect", "source": "",
         "verdict": "correct", "why": "exact"},
        {"question": "Who?", "answers": ("Ada",), "prediction": "Bob", "label": "acceptable", "source": "",
         "verdict": "wrong", "why": "judge: no rule"},
    ]  # fmt: skip


ROW = {"question": "Who?", "answers": ["invalid question"], "prediction": "Zoé, and " + "so " * 90, "label": "correct"}


def write(path: Path) -> Path:
    path.write_text(json.dumps(ROW) + "\n")
    return path


def test_all_numbers_go_to_the_json_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    assert judge_check_main([str(write(tmp_path / "l.jsonl")), "--json", str(out)]) == 0
    text = out.read_bytes().decode()
    content = json.loads(text)
    assert text == json.dumps(content, indent=2, ensure_ascii=False) + "\n" and "Zoé" in text
    assert set(content) == {"all", "invalid question", "disagreements"}
    assert content["all"]["confusion"]["correct, wrong"] == 1 and content["disagreements"][0]["why"] == "one invalid"
    assert capsys.readouterr().out.startswith("judge: rules; predictions cut: words 75\n\nall: 1 answers\n")


def test_whole_predictions_are_judged_without_crags_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    assert judge_check_main([str(write(tmp_path / "l.jsonl")), "--whole", "--json", str(out)]) == 0
    assert json.loads(out.read_text())["disagreements"][0]["why"].startswith("judge: ")
    assert "predictions cut: whole" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--judge", "off"], "--judge off is no judge. Give rules or the name of a model."),
        (["--judge_args", "model"], "--judge_args 'model' cannot be read. Write name=value,name=value."),
        (["--judge_args", "a=1,, b=2=3"], "judge=rules takes no arguments. Remove judge_a."),
        (["--judge_args", " b=2=3,"], "judge=rules takes no arguments. Remove judge_b."),
    ],
)
def test_a_bad_option_is_one_line(
    tmp_path: Path, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge_check_main([str(write(tmp_path / "l.jsonl")), *options]) == 2
    assert capsys.readouterr().err == f"lm-eval-rag: {says}\n"


def test_the_judge_and_the_tokenizer_are_those_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    def judges(metadata: dict[str, Any]) -> tuple[Any, ...]:
        asked.append(metadata)
        return (RulesJudge("named"),)

    monkeypatch.setattr("lm_eval_rag.harness.scoring.judge.agreement.judges_of", judges)
    monkeypatch.setattr(
        "lm_eval_rag.harness.scoring.judge.agreement.tokenizer_cut", lambda file: Cut(f"by {file.name}", len)
    )
    arguments = [
        "--judge",
        "hf",
        "--judge_args",
        "pretrained=p,revision=a=b,batch_size=4,chat=False",
        "--tokenizer",
        "t.json",
    ]
    assert judge_check_main([str(write(tmp_path / "l.jsonl")), *arguments]) == 0
    (metadata,) = asked
    assert metadata == {
        "judge": "hf", "judge_pretrained": "p", "judge_revision": "a=b", "judge_batch_size": 4, "judge_chat": False,
    }  # fmt: skip
    assert metadata["judge_chat"] is False  # the text "False" would be true
    assert capsys.readouterr().out.startswith("judge: named; predictions cut: by t.json\n")


def test_the_help_describes_every_option(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit):
        judge_check_main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("usage: lm-eval-rag judge-check [-h] [--judge JUDGE]")
    assert "Compare a judge with people's labels; print the agreement" in text and " ".join(EPILOG.split()) in text
    for option in (
        "FILE labelled answers, one JSON object per line",
        "--judge JUDGE rules, open (open weights, pinned), or an lm_eval model (default: rules)",
        "--judge_args JUDGE_ARGS arguments of that model, such as model=gpt-4o-mini",
        "--tokenizer TOKENIZER tokenizer.json for truncation to 75 tokens (default: 75 words)",
        "--whole do not truncate predictions or apply CRAG's rules",
        "--commands print the commands for all kinds of judges, run none",
        "--json OUT also write all numbers and disagreements to OUT",
    ):
        assert re.search(rf"(^| ){re.escape(option)}( -| options:| FILE:)", text), option


# --- the panel


class Fixed:
    """A judge with one opinion."""

    def __init__(self, name: str, opinion: Opinion | CallError) -> None:
        self.name, self.fingerprint, self.opinion, self.asked = name, name, opinion, list[Item]()

    def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
        self.asked += items
        return [self.opinion for _ in items]


def test_a_verdict_holds_all_that_led_to_it() -> None:
    yes, no = Fixed("yes", Opinion(1.0, "same")), Fixed("no", Opinion(0.0, "other"))
    panel = Panel((yes, no), words_cut(2), crag=False)
    responses = [Response("q", ("a", "invalid"), "b c d"), Response("q", ("A",), "a"), Response("q", ("x",), "a", True)]
    verdicts = panel.verdicts(responses)
    shared = {"cut": "words 2", "crag": False, "judges": ("yes", "no")}
    assert list(verdicts.values()) == [
        Verdict("exact", 1.0, 1, **shared), Verdict("missing", 0.0, 1, **shared),
        Verdict("judge", 0.5, 3, said=(1.0, 0.0), why="same; other", **shared),
    ] or verdicts == {
        responses[0]: Verdict("judge", 0.5, 3, said=(1.0, 0.0), why="same; other", **shared),
        responses[1]: Verdict("exact", 1.0, 1, **shared), responses[2]: Verdict("missing", 0.0, 1, **shared),
    }  # fmt: skip
    assert yes.asked == no.asked == [Item("q", ("a", "invalid"), "b c")]
    assert Panel((yes,)).cut is WHOLE and Panel((yes,)).crag
    cut = Panel((yes,), words_cut(1)).verdicts([Response("q", ("ab cd",), "ab xy")])
    assert [verdict.rule for verdict in cut.values()] == ["exact"]


def test_a_failed_judge_leaves_an_answer_unscored_and_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    down, late = Fixed("down", CallError("HTTP 500")), Fixed("late", CallError("timeout"))
    responses = [Response("q", ("a",), text) for text in "bcd"]
    verdicts = Panel((down, late, Fixed("yes", Opinion(1.0)))).verdicts(responses)
    assert {(v.rule, v.correct, v.said, v.why) for v in verdicts.values()} == {("judge", None, (), "HTTP 500; timeout")}
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warned == ["3 answers are unscored because a judge failed on them: HTTP 500; timeout"]
    caplog.clear()
    assert Panel((Fixed("yes", Opinion(1.0)),)).verdicts(responses[:1]) and not caplog.records


def test_judges_must_give_one_opinion_for_each_item() -> None:
    class Short(Fixed):
        def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
            return super().opinions(items)[1:]

    class Long(Fixed):
        def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
            return [*super().opinions(items), self.opinion]

    yes, short, long = (kind("", Opinion(1.0)) for kind in (Fixed, Short, Long))
    for judges in ((short,), (yes, short), (long,), (yes, long), (long, yes)):
        with pytest.raises(ValueError, match=r"shorter|longer"):
            Panel(judges).verdicts([Response("q", ("a",), "b"), Response("q", ("a",), "c")])


def faults(answer: str, abstained: bool = False, answers: Sequence[str] = ("Ada Quill",), **changes: Any) -> list[str]:
    """The faults of a correct verdict with some changes."""
    response = Response("Who?", tuple(answers), answer, abstained)
    (verdict,) = Panel((RulesJudge(),), words_cut()).verdicts([response]).values()
    record = {**verdict.record(), **changes}
    doc = {"query": "Who?", "answers": list(answers), VERDICT: record}
    return verdict_faults(doc, answer, abstained) if abstained else verdict_faults(doc, answer)


LONG = "so " * 80


@pytest.mark.parametrize(
    ("answer", "changes", "says"),
    [
        ("It was Ada Quill", {}, []), ("", {}, []), (LONG, {}, []), ("It was Bob", {"crag": False}, []),
        ("It was Ada Quill", {"kept": 3}, ["the verdict is on 3 characters, not 16",
        "the recorded opinion of the rules is 1.0, "
                                           "recomputed it is 0.0"]),
        ("It was Ada Quill", {"kept": 6, "cut": "t.json", "said": [0.0], "correct": 0.0}, []),
        ("It was Ada Quill", {"rule": "exact"}, ["the verdict is by rule 'exact', the specification says 'judge'"]),
        ("Ada Quill", {"rule": "judge"}, ["the verdict is by rule 'judge', the specification says 'exact'"]),
        ("Ada Quill", {"correct": 0.0}, ["exact is scored as 0.0"]),
        ("", {"correct": None}, ["missing is scored as None"]),
        ("Ada Quill", {"kept": 99}, ["the verdict is on 99 characters, not 9"]),
        ("It was Ada Quill", {"correct": 0.5}, ["the verdict 0.5 is not the mean of 1 judges' opinions"]),
        ("It was Ada Quill", {"said": []}, ["the verdict 1.0 is not the mean of 1 judges' opinions"]),
        ("It was Ada Quill", {"said": [1.0, 1.0]}, ["the verdict 1.0 is not the mean of 1 judges' opinions"]),
        ("It was Ada Quill", {"said": [0.0, 1.0], "judges": ["rules", "gpt"], "correct": 0.5},
         ["the recorded opinion of the rules is 0.0, recomputed it is 1.0"]),
        ("It was Ada Quill", {"said": [0.0], "judges": ["gpt"], "correct": 0.0}, []),
        ("It was Ada Quill", {"said": [], "judges": ["gpt"], "correct": None}, []),
        ("It was Ada Quill", {"said": [1.0, 0.0], "judges": ["rules", "gpt"], "correct": 0.5}, []),
        ("It was Ada Quill", {"kept": 3, "rule": "exact"}, ["the verdict is on 3 characters, not 16",
         "the verdict is by rule 'exact', the specification says 'judge'"]),
    ],
)  # fmt: skip
def test_every_fault_of_a_recorded_verdict_is_named(answer: str, changes: dict[str, Any], says: list[str]) -> None:
    assert faults(answer, **changes) == says


def test_faults_of_cut_abstained_and_unjudged_answers() -> None:
    assert faults("Ada Quill", abstained=True) == []
    assert faults("Ada Quill", abstained=True, rule="exact", correct=1.0) != []
    assert faults(LONG, answers=(LONG + "long",)) == []  # exact as far as it was kept
    assert faults("invalid", rule="judge", answers=("Ada",)) != [] == faults("invalid", answers=("Ada",))
    assert faults("Ada Quill", answers=("Bob", "Ada Quill was invalid")) == []  # an answer that no judge sees
    assert verdict_faults({"query": "q", "answers": ["a"]}, "a") == []


# --- a model's prompt and reply


def test_the_prompt_and_what_the_fingerprint_depends_on() -> None:
    text = prompt(Item('Who "was" it?', ("Ada", "A. <Quill>"), "it's {data} {check}\n"), "0a1b2c3d")
    assert text == text.strip() and text.count("0a1b2c3d") == 1 and "{check}" not in text.replace("\\u007bcheck", "")
    assert (
        '{"question": "Who \\"was\\" it?", "reference_answers": ["Ada", "A. \\u003cQuill\\u003e"], '
        '"response": "it\'s \\u007bdata\\u007d \\u007bcheck\\u007d\\n"}'
    ) in text.splitlines()
    assert set(_template()) == {"version", "text"} and (DECODING.max_tokens, DECODING.temperature) == (200, 0.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a b", '"a b"'), ("<[{}]>", '"\\u003c\\u005b\\u007b\\u007d\\u005d\\u003e"'), ("\u2028é東", '"\\u2028é東"'),
        ("\x00\x1b\t", '"\\u0000\\u001b\\t"'), ("\x7f", '"\\u007f"'), ("\u202e🦙", '"\\u202e🦙"'),
        (["a", "b<"], '["a", "b\\u003c"]'),
        ("\u00a0", '"\\u00a0"'), ("aX", '"aX"'), ("\U000e0001", '"\\udb40\\udc01"'),
    ],
)  # fmt: skip
def test_what_is_escaped_in_a_prompt(value: Any, text: str) -> None:
    assert quoted({"k": value}) == f'{{"k": {text}}}'
    assert quoted({"k": value, "l": "x"}) == f'{{"k": {text}, "l": "x"}}'


CHECK = "0a1b2c3d"


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ({"check": CHECK, "reason": "same", "correct": True}, (1.0, "same")),
        ({"check": CHECK, "correct": False}, (0.0, "")), ({"check": CHECK, "reason": 3, "correct": True}, (1.0, "3")),
    ],
)  # fmt: skip
def test_the_verdict_and_the_reason_of_a_reply(reply: dict[str, Any], wanted: tuple[float, str]) -> None:
    text = json.dumps(reply)
    for shown in (
        text,
        f" \n{text}",
        json.dumps(text),
        f"<think>a\nb</think> {text}",
        f'{{"a": {{"b": 1}}}} {text} {{"c": 2}}',
    ):
        assert read_reply(shown, CHECK) == wanted, shown


def test_a_reply_without_a_verdict_is_shown_shortened() -> None:
    failed = read_reply("  " + "x" * 300, CHECK)
    assert isinstance(failed, CallError) and str(failed) == f"the judge's reply contains no verdict: '{'x' * 120}'"
