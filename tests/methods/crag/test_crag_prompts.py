"""How the prompts are laid out, whatever the module."""

import bz2
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.generators.chat import as_chat
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.kg.calling import read_calls
from lm_eval_rag.methods.crag.crag_prompts import call_examples, own_examples, prompt, question_text
from lm_eval_rag.methods.crag.demonstrations import read_demonstrations, stratified

FORMS = ("knowledge", "reasoning", "reasoning_false_premise")
OTHERS = ("baseline", "refined", "refined_false_premise", "calculator", "fields", "calls", "rerank", "verify")
ASKED = "Question: who?"


@pytest.mark.parametrize("name", (*FORMS, *OTHERS))
def test_empty_lines_part_instruction_references_and_question(name: str) -> None:
    alone = prompt(name, ASKED, prompt_file=None).render()
    shown = prompt(name, ASKED, (Passage("a", "Text: so"), Passage("b", "Text: and so")), prompt_file=None).render()
    assert f"\n\n{ASKED}\n" in alone and "References:\n" not in alone
    assert f"\n\nReferences:\nText: so\nText: and so\n\n{ASKED}\n" in shown
    assert "\n\n\n" not in alone + shown


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_named_again_at_the_end(name: str) -> None:
    """References of any length stand between the form and the reply."""
    text = prompt(name, ASKED, (Passage("a", "Text: so"),), prompt_file=None).render()
    assert text.index("===START===\n") < text.index("References:") < text.rindex("from ===START=== to ===END===.")


def test_demonstrations_look_like_the_question() -> None:
    shots = stratified(own_examples("domain", None), 2, 0)
    text = prompt("domain", ASKED, shots=shots, prompt_file=None).render()
    assert text.count("\n\nQuestion: ") == 3 and text.count("\nDomain:") == 3


@pytest.mark.parametrize("attribute", ["static_or_dynamic", "domain"])
def test_no_seed_misses_a_label(attribute: str) -> None:
    """At random, 177 of 200 seeds missed one."""
    pool = own_examples(attribute, None)
    drawn = [stratified(pool, 5, seed) for seed in range(200)]
    counts = [Counter(shot.answer for shot in shots) for shots in drawn]
    assert all(set(count) == set(pool) and max(count.values()) - min(count.values()) <= 1 for count in counts)
    assert len(set(drawn)) > 20  # seeds differ
    assert stratified(pool, 5, 3) == stratified(pool, 5, 3)
    assert len(stratified(pool, 99, 0)) == sum(map(len, pool.values())) and stratified(pool, 0, 0) == ()
    first = next(iter(pool.values()))[0]
    assert all(first not in shot.query for shot in stratified(pool, 99, 0, without=first.upper()))


def test_demonstrations_of_the_validation_part(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"query": f"q{i}", "static_or_dynamic": rate, "domain": "open", "split": i % 2}
        for i, rate in enumerate(["static", "static", "real-time", "slow-changing", "fast-changing", "static"])
    ]
    plain, packed = tmp_path / "crag.jsonl", tmp_path / "crag.jsonl.bz2"
    plain.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    packed.write_bytes(bz2.compress(plain.read_bytes()))
    for file in (plain, packed):
        assert read_demonstrations(str(file), "static_or_dynamic") == {"static": ["q0"], "dynamic": ["q2", "q4"]}
    slow = [{**row, "query": "slow", "split": 0} for row in rows if row["static_or_dynamic"] == "slow-changing"]
    more = tmp_path / "more.jsonl"
    more.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *slow]), "utf-8")
    assert read_demonstrations(str(more), "static_or_dynamic")["dynamic"] == ["q2", "q4", "slow"]
    static = read_demonstrations(str(more), "static_or_dynamic", "static")
    assert static == {"static": ["q0", "slow"], "dynamic": ["q2", "q4"]}
    with pytest.raises(UserError, match="has 1 labels of domain in its validation part"):
        read_demonstrations(str(plain), "domain")
    with pytest.raises(UserError, match="cannot be read"):
        read_demonstrations(str(tmp_path / "none"), "domain")
    plain.write_text("[1]\n", "utf-8")
    with pytest.raises(UserError, match="line 1: not a JSON object"):
        read_demonstrations(str(plain), "question_type")


def test_worked_examples_of_calls_can_be_run() -> None:
    everything = {name for shot in call_examples(_All(), None) for name in _functions(shot.answer)}
    assert len(everything) >= 4
    for shot in call_examples(_All(), None):
        calls = read_calls(shot.answer)
        assert not calls.refused and len(calls.calls) == len(_functions(shot.answer))
    kept = call_examples({"music_get_members"}, None)
    assert {name for shot in kept for name in _functions(shot.answer)} == {"music_get_members"}


class _All:
    def __contains__(self, name: object) -> bool:
        return True


def _functions(reply: str) -> list[str]:
    return [call["function_name"] for call in json.loads(reply)]


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        ("2024-03-11T08:30:00-07:00", "Asked on: 2024-03-11T08:30:00-07:00 (Monday)\nQuestion: who?"),
        ("2024-02-29", "Asked on: 2024-02-29 (Thursday)\nQuestion: who?"),
        ("last spring", "Asked on: last spring\nQuestion: who?"), (None, "Question: who?"),
    ],
)  # fmt: skip
def test_a_question_has_its_time_and_weekday(time: str | None, shown: str) -> None:
    assert question_text(Query("q", "who?", time)) == shown


class Template:
    """A model that shows what its chat template gets."""

    def apply_chat_template(self, messages: list[dict[str, str]]) -> str:
        return json.dumps(messages)


def test_system_and_user_message_are_apart_and_the_rules_come_twice() -> None:
    shots = stratified(own_examples("domain", None), 5, 0)
    text = prompt("domain", ASKED, shots=shots, prompt_file=None).render()
    messages = json.loads(as_chat(Template(), ModelSpec("hf", {"pretrained": "x"}), text, None))
    assert [message["role"] for message in messages] == ["system", "user"]
    system, user = (message["content"] for message in messages)
    assert "Tell which domain" in system and all(shot.query in system for shot in shots) and ASKED not in system
    assert user.startswith(ASKED) and user.endswith("\nDomain:") and "Remember the rule" in user
    assert text == f"{system}\n\n{user}"
    run_system, alone = "Be brief.", prompt("baseline", ASKED, prompt_file=None).render()
    messages = json.loads(as_chat(Template(), ModelSpec("hf", {"pretrained": "x"}), text, run_system))
    assert messages[0]["content"] == f"{run_system}\n\n{system}"
    messages = json.loads(as_chat(Template(), ModelSpec("hf", {"pretrained": "x"}), alone, None))
    assert [message["role"] for message in messages] == ["user"]  # the official baselines
