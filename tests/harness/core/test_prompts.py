"""Prompts: the five parts, what is left out, order, shots, and prompt files that are refused."""

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.prompts import Prompt, Shot, Template, load_template
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


def test_ours_loads_and_names_its_version():
    assert template().version == "ruleqa-1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": "no field"}, r"'query': needs the field \{query\} and no other; found none"),
        ({"rules": "{rules} {more}"}, r"found \['more', 'rules'\]"),
        ({"documents": "{documents"}, "Write a literal brace twice"),
        ({"answer": None}, "missing or no text: answer"),
        ({"extra": "x"}, "not known: extra"),
    ],
)
def test_a_bad_prompt_file_is_refused(tmp_path, change, message):
    parts = {name: getattr(PLAIN, name) for name in PLAIN.__slots__} | change
    path = tmp_path / "p.toml"
    path.write_text("\n".join(f"{name} = '''{text}'''" for name, text in parts.items() if text is not None))
    with pytest.raises(UserError, match=message):
        load_template(path)


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        load_template(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("= =")
    with pytest.raises(UserError, match="is not a TOML text"):
        load_template(tmp_path / "bad.toml")
