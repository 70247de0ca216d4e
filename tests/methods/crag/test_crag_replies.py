"""What models wrap around a short reply is taken off."""

import pytest

from lm_eval_rag.methods.crag.replies import code_line, one_line


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ("1994", "1994"),
        ("\n  1994. \nIt came out then.", "1994."),
        ("The answer is:\n\n1994", "1994"),
        ("Sure!\nThe answer is: 1994", "Sure!"),
        ("Notes:\nAnswer:\n- 1994\n- 1995", "- 1994"),
        ("The answer is:", "The answer is:"),
        (" \n", ""),
    ],
)
def test_one_line(reply: str, line: str) -> None:
    assert one_line(reply) == line


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ("2017 - 2004", "2017 - 2004"),
        ("```python\nyears = 2017 - 2004\n```", "2017 - 2004"),
        ("The expression is:\n\n`2017 - 2004`", "2017 - 2004"),
        (">>> print(2017 - 2004)", "2017 - 2004"),
        ("None is needed:", ""),
        ("", ""),
    ],
)
def test_code_line(reply: str, line: str) -> None:
    assert code_line(reply) == line
