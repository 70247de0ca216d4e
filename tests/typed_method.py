"""A method of one's own as type checkers see it: ``make check`` runs mypy on this file."""

from typing import assert_type

from lm_eval_rag import Answer, Passage, Plan, Positive, Prompt, Query, generate, retrieve, run, template, together


def two_questions(query: Query, *, k: Positive = 5) -> Plan[Answer]:
    """Retrieve twice, answer once."""
    lists = yield from together(retrieve(text, k) for text in (query.text, query.text.lower()))
    assert_type(lists, tuple[tuple[Passage, ...], ...])
    text = yield from generate(Prompt(template(), query.text, lists[0]))
    return Answer(text, lists[0])


def main() -> None:
    """Run it."""
    ((answer, trace),) = run(two_questions, ["who?"], corpus=[Passage("a", "b")])
    assert_type(answer.text, str)
    assert_type(trace.failure, str | None)
