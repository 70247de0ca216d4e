"""How the prompts are laid out, whatever the module."""

import pytest

from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.methods.crag.crag_prompts import demonstrations, prompt

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
    text = prompt("domain", ASKED, shots=demonstrations("domain", 2, 0, None), prompt_file=None).render()
    assert text.count("\n\nQuestion: ") == 3 and text.count("\nDomain:") == 3
