"""Tables of cards."""

from lm_eval_rag.harness.common.card_table import card_table


def test_a_table_has_a_line_for_each_row_and_escapes_bars() -> None:
    lines = card_table(("a", "b"), [(1, "x|y"), (None, "")]).split("\n")
    assert lines == ["| a | b |", "| --- | --- |", r"| 1 | x\|y |", "| None |  |"]
