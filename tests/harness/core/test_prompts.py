"""Prompts: the five parts, what is left out, order, shots, and prompt files that are refused."""

import pickle
from copy import deepcopy
from dataclasses import replace

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.prompts import Messages, Prompt, Shot, Template, load_template
from lm_eval_rag.harness.core.types import Passage, Rule
from lm_eval_rag.methods.prompts import template

PLAIN = Template("v", "I", "IR", "IC", "D\n{documents}", "R\n{rules}", "Q {query}", "A")
PASSAGES = tuple(Passage(f"d{i}", f"doc {i}") for i in range(3))
RULES = (Rule("h", "b"),)


def test_the_five_parts_in_the_papers_order():
    text = Prompt(PLAIN, "q?", PASSAGES, RULES).render()
    assert text == "IR\nD\ndoc 0\ndoc 1\ndoc 2\nR\n[Entity1, b, Entity2] leads to [Entity1, h, Entity2]\nQ q?\nA"


def test_what_is_missing_is_left_out_whole():
    assert Prompt(PLAIN, "q?").render() == "IC\nQ q?\nA"
    assert Prompt(PLAIN, "q?", PASSAGES[:1]).render() == "I\nD\ndoc 0\nQ q?\nA"
    assert Prompt(PLAIN, "q?", PASSAGES).render(0) == Prompt(PLAIN, "q?").render().replace("IC", "I")


def test_keep_drops_the_lowest_ranked_wherever_they_stand():
    assert "doc 0\ndoc 1\nQ" in Prompt(PLAIN, "q?", PASSAGES).render(2)
    assert "doc 1\ndoc 0\nQ" in Prompt(PLAIN, "q?", PASSAGES, order="best_last").render(2)


def test_shots_stand_in_front_with_their_answers():
    text = Prompt(PLAIN, "q?", shots=(Shot("s?", "yes", PASSAGES[:1]),)).render()
    assert text == "I\nD\ndoc 0\nQ s?\nA yes\n\nQ q?\nA"


@pytest.mark.parametrize("reasoning", ["Ann met Bob. ", " Ann met Bob.", "Ann met Bob."])
def test_reasoning_so_far_stands_after_the_cue_where_the_model_goes_on(reasoning):
    shots = (Shot("s?", "yes", PASSAGES[:1]),)
    before = Prompt(PLAIN, "q?", PASSAGES, RULES, shots)
    begun = Prompt(PLAIN, "q?", PASSAGES, RULES, shots, reasoning=reasoning)
    assert begun.render() == before.render() + " Ann met Bob."
    assert begun.render(1) == before.render(1) + " Ann met Bob."  # documents are dropped, what was said is not
    assert Prompt(PLAIN, "q?", PASSAGES, RULES, shots, reasoning=" ").render() == before.render()


def test_a_reply_that_is_begun_stands_where_the_model_goes_on():
    shots = (Shot("s?", "yes", PASSAGES[:1]),)
    before = Prompt(PLAIN, "q?", PASSAGES, RULES, shots)
    prompt = Prompt(PLAIN, "q?", PASSAGES, RULES, shots, begun="Ann met Bob. ").render()
    assert isinstance(prompt, Messages) and not isinstance(before.render(), Messages)
    assert prompt == f"{before.render()} Ann met Bob. "  # as it is, after a space
    assert (prompt.system, prompt.user, prompt.begun) == ("", before.render(), "Ann met Bob. ")
    assert replace(before, begun="x").render(1) == f"{before.render(1)} x"  # documents are dropped, it is not
    cue = replace(PLAIN, answer="")  # its text ends in a line break
    assert Prompt(cue, "q?", begun="<a>").render() == "IC\nQ q?\n<a>"


def test_a_reply_that_is_begun_is_apart_from_both_messages():
    prompt = Prompt(PLAIN, "q?", shots=(Shot("s?", "yes"),), begun="So", apart=True).render()
    assert isinstance(prompt, Messages) and prompt == "IC\nQ s?\nA yes\n\nQ q?\nA So"
    assert (prompt.system, prompt.user, prompt.begun) == ("IC\nQ s?\nA yes", "Q q?\nA", "So")
    assert prompt.user_and_begun == "Q q?\nA So"


def test_a_blank_instruction_is_left_out():
    bare = replace(PLAIN, instruction="", instruction_rules="", instruction_closed="")
    assert Prompt(bare, "q?").render() == "Q q?\nA" and Prompt(bare, "q?", PASSAGES[:1]).render() == "D\ndoc 0\nQ q?\nA"


def test_prompts_that_checkpoints_were_tuned_on_are_as_they_were():
    """The bytes that tiny_rgft was tuned on (prompt version ruleqa-1, commit 1411a01)."""
    prompt = Prompt(template(), "what does Ann praise ?", PASSAGES[:2], RULES, (Shot("s?", "Bob", PASSAGES[:1]),))
    assert prompt.render() == (
        "Read the documents, follow the rules and answer the question with the name of one entity.\n"
        "Documents:\ndoc 0\nQuestion: s?\nAnswer: Bob\n\n"
        "Documents:\ndoc 0\ndoc 1\nRules:\n[Entity1, b, Entity2] leads to [Entity1, h, Entity2]\n"
        "Question: what does Ann praise ?\nAnswer:"
    )


def test_a_file_may_leave_out_what_it_does_not_change(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text('instruction = "Look."\nanswer = "So:"\n')
    changed = load_template(path, PLAIN)
    assert replace(changed, version="v", instruction="I", answer="A") == PLAIN
    assert (changed.instruction, changed.answer) == ("Look.", "So:")
    with pytest.raises(UserError, match=r"must hold.*missing or no text: version, instruction_rules"):
        load_template(path)
    assert template(str(path)).query == template().query


def test_changed_parts_have_a_version_of_their_own(tmp_path):
    """Else a checkpoint that was tuned on our prompts would be given others unnoticed."""

    def version(text):
        (tmp_path / "p.toml").write_text(text)
        return load_template(tmp_path / "p.toml", PLAIN).version

    assert version("") == version('answer = "A"') == "v"
    first, second = version('answer = "So:"'), version('answer = "Thus:"')
    assert first != second and first.startswith("v+") and second.startswith("v+") and first == version('answer = "So:"')
    assert version('answer = "So:"\nversion = "mine"') == "mine"


def test_ours_loads_and_names_its_version():
    assert template().version == "ruleqa-1"


@pytest.mark.parametrize("base", [None, PLAIN])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": "no field"}, r"'query': needs the field \{query\} and no other; found none"),
        ({"rules": "{rules} {more}"}, r"found \['more', 'rules'\]"),
        ({"documents": "{documents"}, "Write a literal brace twice"),
        ({"extra": "x"}, "not known: extra"),
    ],
)
def test_a_bad_prompt_file_is_refused(tmp_path, change, message, base):
    parts = {name: getattr(PLAIN, name) for name in PLAIN.__slots__} | change
    path = tmp_path / "p.toml"
    path.write_text("\n".join(f"{name} = '''{text}'''" for name, text in parts.items() if text is not None))
    with pytest.raises(UserError, match=message):
        load_template(path, base)


def test_a_part_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text("answer = 3")
    with pytest.raises(UserError, match=r"may hold the texts version, .*missing or no text: answer; not known: none"):
        load_template(path, PLAIN)


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        load_template(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("= =")
    with pytest.raises(UserError, match="is not a TOML text"):
        load_template(tmp_path / "bad.toml")
    with pytest.raises(UserError, match="cannot be read"):
        load_template(tmp_path)


def test_the_messages_of_a_chat_are_copied_whole():
    prompt = Messages("You are brief.", "Who?")
    for copied in (deepcopy(prompt), pickle.loads(pickle.dumps(prompt))):
        assert isinstance(copied, Messages)
        assert (str(copied), copied.system, copied.user) == ("You are brief.\n\nWho?", "You are brief.", "Who?")
    begun = Messages("", "Who?", "It was ", " ")
    for copied in (deepcopy(begun), pickle.loads(pickle.dumps(begun))):
        parts = (str(copied), copied.system, copied.user, copied.begun, copied.user_and_begun)
        assert parts == ("Who? It was ", "", "Who?", "It was ", "Who? It was ")
