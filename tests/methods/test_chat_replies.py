"""How the replies of chat models are read: Markdown, remarks on the answer, and what they write before it."""

from __future__ import annotations

import pytest

from lm_eval_rag.methods.reasoning.judgements import first_label

VALUES, CLEAR = ("sure", "likely", "impossible"), ("clear", "incomplete", "ambiguous")


@pytest.mark.parametrize(
    ("reply", "labels", "label"),
    [
        ("I'm not sure.", VALUES, None),
        ("It isn’t likely", VALUES, None),
        ("That is **not** very likely.", VALUES, None),
        ("Not impossible, but likely.", VALUES, "likely"),
        ("The question is not clear", CLEAR, None),
        ("It isn't clear, it is ambiguous.", CLEAR, "ambiguous"),
        ("not incomplete but ambiguous", CLEAR, "ambiguous"),
        ("It cannot be clear", CLEAR, None),
        ("No, I do not think so.", ("yes", "no"), "no"),
        ("I do not think so, no.", ("yes", "no"), "no"),
        ("Not yes: no", ("yes", "no"), "no"),
    ],
)
def test_negated_labels_do_not_count(reply, labels, label):
    assert first_label(reply, labels) == label
