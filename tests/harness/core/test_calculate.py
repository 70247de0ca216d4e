"""Expressions: what they are worth, beside Python's own arithmetic, and 200 hostile ones that are refused."""

import operator
import random
import time
from datetime import date

import pytest

from lm_eval_rag.harness.backends.calculation import CalculateBackend
from lm_eval_rag.harness.core.asks import Calculate
from lm_eval_rag.harness.core.calculate import MAX_DEPTH, MAX_LENGTH, calculate
from lm_eval_rag.harness.core.calculate_lines import expression_in
from lm_eval_rag.harness.core.calculate_values import LARGEST, REASONS, Calculation, CalculationError, written
from lm_eval_rag.harness.core.types import Query

VALUES = [
    ("1+2*3", "7"), ("(1+2)*3", "9"), ("-2**2", "-4"), ("2**-1", "0.5"), ("2**3**2", "512"), ("7//2", "3"),
    ("-7//2", "-4"), ("-7 % 3", "2"), ("10/4", "2.5"), ("0.1+0.2", "0.3"), ("1_000*2", "2000"), (".5+1.", "1.5"),
    ("1e3", "1000"), ("1.5e-3", "0.0015"), ("+-+3", "-3"), ("max(1, 3, 2)", "3"), ("min([4, 2])", "2"),
    ("sum([0.1, 0.2, 0.3])", "0.6"), ("sum([])", "0"), ("round(2.5)", "2"), ("round(2.567, 1)", "2.6"),
    ("abs(-3)", "3"), ("len([1, 2, 'x'])", "3"), ("len('abc')", "3"), ("max('a', 'b')", "b"), ("1 < 2 < 3", "True"),
    ("3 < 2", "False"), ("1 == 1.0", "True"), ("'a' != 'b'", "True"), ("'x' if 3 > 2 else 'y'", "x"),
    ("1 if 1 > 2 else 2 if 2 > 3 else 3", "3"), ("[1, 2 + 3]", "[1, 5]"), ("(1, 2)", "[1, 2]"), ("True", "True"),
    ("date(2024, 2, 29)", "2024-02-29"), ("date('2024-02-28').year", "2024"),
    ("date(2024,3,1) - date(2024,2,1)", "29 days"), ("(1)", "1"), ("(1,)", "[1]"),
    ("(date(2024,3,1) - date(2023,3,1)).days / 366", "1"), ("date(2024,1,31) + timedelta(1)", "2024-02-01"),
    ("datetime.date(2024,1,2).month", "1"), ("datetime.datetime(2024,1,2,3,4).day", "2"),
    ("date(2024,1,1) < date(2024,1,2)", "True"), ("timedelta(10) / 4", "2 days"),
    ("abs(date(2024,1,1) - date(2024,1,3))", "2 days"), ("max([date(2024,1,1), date(2023,1,1)])", "2024-01-01"),
    ("10**30", "1" + "0" * 30), ("2 \n + 2", "4"), ("1/3", "0.333333333333"),
    ("123456789.123456789", "123456789.123"), ("date(2024, 02, 08)", "2024-02-08"), ("007 + 0.50", "7.5"),
    ("len('007')", "3"), ("0 + 00", "0"), ("10 < 9 < 'a'", "False"),
    ("int(1)", "1"), ("int(-7.9)", "-7"), ("int(7/2)", "3"), ("float(3)", "3"), ("[1][0]", "1"), ("[4, 5, 6][-1]", "6"),
    ("sorted([3, 1, 2])", "[1, 2, 3]"), ("sorted([3, 1, 2])[0]", "1"), ("max([1, 2][0], 3)", "3"),
    ("1 < 2 and 3 > 2", "True"), ("1 > 2 or 3 > 4", "False"), ("not 1 > 2", "True"), ("1 < 2 and not 2 < 1", "True"),
    ("'a' if 1 < 2 and 3 < 2 else 'b'", "b"), ("pow(2, 10)", "1024"), ("sqrt(16)", "4"),
    ("math.sqrt(2)", "1.41421356237"),
    ("mean([1, 2, 6])", "3"), ("math.floor(2.7)", "2"), ("math.ceil(2.1)", "3"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_values(expression: str, value: str) -> None:
    assert written(calculate(expression)) == value


def test_arithmetic_is_pythons() -> None:
    """Random trees, written with every bracket, reckoned here by Python's operators."""
    signs = {"+": operator.add, "-": operator.sub, "*": operator.mul, "<": operator.lt}
    rng = random.Random(0)

    def tree(depth: int) -> tuple[str, float]:
        if not depth or rng.random() < 0.2:
            number = rng.choice([rng.randint(0, 99), round(rng.random() * 9, 2)])
            return str(number), number
        sign = rng.choice("+-*")
        (left, a), (right, b) = tree(depth - 1), tree(depth - 1)
        return f"({left}{' ' * rng.randint(0, 1)}{sign} {right})", signs[sign](a, b)

    for _ in range(300):
        expression, value = tree(4)
        if len(expression) <= MAX_LENGTH:
            assert calculate(expression) == pytest.approx(value, rel=1e-12)


def test_precedence_is_pythons() -> None:
    rng = random.Random(1)
    for _ in range(300):
        parts = [str(rng.randint(1, 9))]
        for _ in range(6):
            parts += [rng.choice(["+", "-", "*", "/", "//", "%", "< ", "== ", "+-"]), str(rng.randint(1, 9))]
        expression = "".join(parts)
        assert calculate(expression) == eval(expression)  # of digits and signs alone


PYTHON = """__import__('os')|__import__('os').system('true')|open('/etc/passwd')|open('/etc/passwd').read()|exec('x=1')|eval('1')
eval|exec|globals()|locals()|vars()|dir()|type(1)|getattr(1,'real')|().__class__|().__class__.__bases__[0]
().__class__.__mro__[1].__subclasses__()|[].__class__|''.__class__|''.join(['a'])|'a'.upper()|'{0.__class__}'.format(1)|f'{1}'
(1).__class__|1 .real|1.0.real|True.real|1.__class__|max.__self__|max.__globals__|abs.__call__(1)|date.today()|date.__class__
date(2024,1,1).__class__|date(2024,1,1).isoformat()|date(2024,1,1).replace(2)|date(2024,1,1).max|date.fromtimestamp(0)
datetime.now()|datetime.datetime.now()|datetime.os.system('x')|datetime.sys|datetime|date|os|sys|os.system('x')|subprocess.run('x')
import os|import os; os.system('x')|from os import system|lambda: 1|(lambda: 1)()|lambda x: x|[x for x in [1]]|(x for x in [1])
{x: 1}|{1, 2}|{1: 2}|[1][5]|[1, 2][:1]|'abc'[0]|x|x = 1|x := 1|(x := 1)|1; 2|1 if 1|1 if True|if 1: 2|while True: 1|while 1: pass
for i in [1]: i|def f(): 1|class A: 1|return 1|yield 1|await 1|raise 1|assert 1|del x|pass|print('x'|print|input()|input('x')|exit()
quit()|help()|breakpoint()|compile('1','','eval')|memoryview(b'')|bytes(9)|bytearray(9)|object()|super()|property()|__name__
__builtins__|__builtins__['eval']|__file__|__doc__|_|__|self|None|Ellipsis|...|NotImplemented|inf|nan|float('inf')|float('nan')
int('9'*9)|int('1')|str(1)|bool(1)|complex(1,1)|1j|2+3j|0x10|0b1|0o7|1e|1e+|1__0e|..5|1..2|1.2.3|@|a@b|1 @ 2|~1|1 & 2|1 ^ 2
1 << 99|1 >> 1|not 1|1 and 2|1 or 2|1 in [1]|1 is 1|not|and|*[1]|**{}|max(*[1,2])|max(a=1)|max([1], key=abs)|sum([1], 1)
sum(1, 2)|sum('ab')|sum(['a'])|sum([[1]])|sum([True])|max()|max([])|min()|max([1], [2])|max(1, 'a')|min([1, date(2024,1,1)])|abs()
abs('a')|abs([1])|abs(1, 2)|round()|round('a')|round(1, 2, 3)|round(1.5, 0.5)|round(1.5, 99)|round(1, True)|len()|len(1)|len([1], [2])
len(date(2024,1,1))|'a' + 'b'|'a' * 3|'a' * 10**9|[0] * 10**9|[1] + [2]|[1] * 2|(1,) * 10**9|-'a'|+[1]|-[1]|--'a'|True + 1|True * 10
'a' < 1|[1] < 1|[1] < ['a']|1 < 'a'|date(2024,1,1) < 1|date(2024,1,1) + 1|1 + date(2024,1,1)|date(2024,1,1) * 2
date(2024,1,1) + date(2024,1,1)|date(2024, 13, 1)|date(2024, 2, 30)|date('nope')|date('2024-99-01')|date(2024)|date()|date(1e30, 1, 1)
date(10**9, 1, 1)|date('a', 'b', 'c')|date([1], 2, 3)|timedelta(10**12)|timedelta(1e29)|timedelta('a')|timedelta()|timedelta(days=1)
date(9999,12,31) + timedelta(1)|date(1,1,1) - timedelta(1)|timedelta(9**9) * 9**9|timedelta(1) ** 2|timedelta(1) / 0|1 / timedelta(1)
1/0|1//0|1%0|0**-1|0.0**-1|1/(1-1)|1.0/0.0|5 % 0.0|(1/3 - 1/3)**-1|(-8)**(1/3)|(-1)**0.5|(-1)**1.5|9**9**9|9**9**9**9|9**(9**9)
(9**9)**9**9|2**10**10|2**99999|2**-99999**9|10**31|-10**31|10**30*10|10**30+10**30|1e31|1e400|1e999|9e30*9|1e30**2|1e-30**-9|2.5**999
0.5**-999|(1e30)*(1e30)|sum([1e30, 1e30])|max(1e31, 1)|round(1e31)|abs(-1e31)|1+|+|-|*|/|1 +* 2|1 2|1,2|,|)|(|()+1|[|]|[1|(1|max(1
max(|max(,)|max 1|1)|(1))|[1,,2]|(,)|1 <|< 1|1 = 1|1 === 1|1 <> 2|1 ? 2 : 3|$5|5$|5%|50% * 2|#|1 # one|\\|1 \\ 2|`1`|'|"|'a|"a'|'a\\'|'''a'''
'a' 'b'|b'a'|r'a' 'b'|5 apples|five|price * 2|revenue - cost|The answer is 5|I don't know|DROP TABLE x|<script>|'; --|x.y.z|a.b()
1.days|(1).days|'a'.days|[1].year|date(2024,1,1).days|timedelta(1).year|timedelta(1).seconds|timedelta(1).total_seconds()"""  # noqa: E501
HOSTILE = [
    *(part for line in PYTHON.splitlines() for part in line.split("|")),
    "", " \n\t", "(" * 400, "[" * 400, "-" * 400 + "1", "(" * 200 + "1" + ")" * 200, "max(" * 100, "1+" * 249,
    "1**" * 166 + "1", "1" * 501, "9" * 499, "1 " * 260, "2**" * 40 + "2", "1 if True else " * 30 + "1",
    "'" + "a" * 600 + "'", "a" * 490 + "é", "1" * 490 + "é", "1_" * 240 + "é", "'a" * 200, "a.b" * 150,
    "\x00", "1\x00", "\ud800",
    "１＋１", "²", "1\u200b+1", "π", "∞", "½", "−1", "1×2", "e", "pi", "1" + "e9" * 9, "\\u0031",
]  # fmt: skip


@pytest.mark.parametrize("expression", sorted(set(HOSTILE)), ids=lambda text: ascii(text)[:40])
def test_hostile_expressions_are_refused_by_name_and_at_once(expression: str) -> None:
    began = time.process_time()
    with pytest.raises(CalculationError) as refused:
        calculate(expression)
    assert refused.value.reason in REASONS and str(refused.value).startswith(refused.value.reason)
    assert time.process_time() - began < 0.5


LINES = [
    ("5*3 = 15", "15"), ("Expression: 5*3", "15"), ("1,234-1", "1233"), ("12%", "0.12"), ("int(7.9)", "7"),
    ("sorted([3, 1])[-1]", "3"), ("1 < 2 and 2 < 3", "True"), ("total = 18 + 21", "39"), ("total = 18 + 21 = 39", "39"),
    ("5*3  # three fives", "15"), ("`5*3`", "15"), ("print(5*3)", "15"), ("$1,234.50 * 2", "2469"), ("5 × 3", "15"),
    ("10 ÷ 4", "2.5"), ("7 − 2", "5"), ("2^10", "1024"), ("50% * 200", "100"), ("200 * 15% + 1", "31"),
    ("1.5 million / 2", "750000"), ("3 billion - 500 million", "2500000000"), ("(1,234 + 766) / 2", "1000"),
    ("max(100,200)", "200"), ("max(1,234, 5,678)", "5678"), ("[10,200][1]", "200"), ("7 % 2", "1"), ("7%2", "1"),
    ("1 == 1", "True"), ("3 <= 2", "False"), ("Answer: 2 + 2", "4"), ("- Result: 2 + 2 = 4", "4"),
    ("1,234,567 > 999", "True"),
    ("10% - 3%", "0.07"), ("(50 - 40) / 40 = 25%", "0.25"), ("date('2024-02-28').year", "2024"),
    ("sum([1,234, 5,678])", "6912"), ("min(1,234, 5,678)", "1234"), ("max(9,876, 5,678)", "9876"),
    ("max(1,234, 987)", "1234"), ("max(987, 1,234)", "1234"), ("max(1, 234, 567)", "567"), ("max(1,234,567)", "567"),
    ("(2024-03-05) - (2024-03-01)", "4 days"), ("2024-03-05", "2024-03-05"), ("2024 - 03 - 05", "2016"),
    ("date(2024, 3, 5) - 2024-03-01", "4 days"), ("2000-50-25", "1925"), ("2024-10-1", "2013"),
    ("193,110,000,000 + 5,886,291,176.63", "198996291176.63"), ("15% of 200", "30"), ("12.5 % of (40 + 40)", "10"),
    ("5 x 3", "15"), ("(2 + 3) x (1 + 1)", "10"), ("2.5B / 1.2B", "2.08333333333"), ("1.5M + 300K", "1800000"),
    ("$2.5bn - $500mn", "2000000000"), ("3k * 2", "6000"), ("date(2024,1,31) + timedelta(days=1)", "2024-02-01"),
    ("1. 5*3", "15"), ("2) 5*3 = 15", "15"), ("median([3, 1, 2])", "2"), ("median([1, 2])", "1.5"), ("1.5*3", "4.5"),
    ("revenue growth = (120 - 100) / 100", "0.2"), ("100 * (1 + 5%)", "105"), ("round(3.14159, 2) = 3.14", "3.14"),
]  # fmt: skip
HARMLESS = {
    "x = 1",
    "1 = 1",
    "5%",
    "50% * 2",
    "$5",
    "1 # one",
    "−1",
    "1×2",
    "1 ^ 2",
    "`1`",
    "timedelta(days=1)",
}  # hostile notation alone


@pytest.mark.parametrize(("line", "value"), LINES)
def test_lines_of_models(line: str, value: str) -> None:
    (served,) = CalculateBackend().serve([(Query("q", ""), Calculate(line))])
    assert served.value == Calculation(expression_in(line), value)  # type: ignore[union-attr]


def test_hostile_expressions_are_refused_as_lines_too() -> None:
    read = {text for text in set(HOSTILE) if not _refused(expression_in(text))}
    assert read == HARMLESS


def _refused(text: str) -> bool:
    try:
        calculate(text)
    except CalculationError:
        return True
    return False


def test_there_are_200_of_them_and_every_reason_occurs() -> None:
    reasons = set()
    for expression in set(HOSTILE):
        with pytest.raises(CalculationError) as refused:
            calculate(expression)
        reasons.add(refused.value.reason)
    assert len(set(HOSTILE)) >= 200 and reasons == set(REASONS)


def test_bounds() -> None:
    longest = "1+" * (MAX_LENGTH // 2 - 1) + "10"
    assert len(longest) == MAX_LENGTH and calculate(longest) == MAX_LENGTH // 2 - 1 + 10
    deepest = "(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH
    assert calculate(deepest) == 1
    with pytest.raises(CalculationError, match="too deep"):
        calculate(f"({deepest})")
    assert calculate("1e30") == LARGEST


def test_random_texts_never_do_more_than_refuse() -> None:
    rng = random.Random(2)
    pieces = ["1", "9", "(", ")", "[", "]", ",", "+", "-", "*", "**", "/", "//", "%", "<", "if", "else", "max", "date",
              "'a'", ".", "days", "2024", "round", "timedelta", "1e9", " "]  # fmt: skip
    for _ in range(20_000):
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 12)))
        try:
            value = calculate(text)
        except CalculationError:
            continue
        assert isinstance(written(value), str)


def test_the_ask_is_served_with_a_value_or_a_reason() -> None:
    query = Query("q", "")
    good, bad, huge = CalculateBackend().serve([(query, Calculate(text)) for text in ("1+1", "9**9**9", "1" * 9999)])
    assert good.value == Calculation("1+1", "2") and good.step.reply == "2"
    assert bad.value == Calculation("9**9**9", refused="too large") and bad.step.reply.startswith("refused: too large")
    assert len(huge.step.request) == 1000 and huge.value.refused == "too long"
    assert date(2024, 1, 2) == calculate("date(2024, 1, 2)")
