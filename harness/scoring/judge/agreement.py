"""``lm-eval-rag judge-check``: how far a judge agrees with people on labelled answers, and where it leans."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.scoring.crag import INVALID
from lm_eval_rag.harness.scoring.judge.choose import judges_of
from lm_eval_rag.harness.scoring.judge.labels import FORMAT, Labelled, read_labels
from lm_eval_rag.harness.scoring.judge.panel import Panel, Response
from lm_eval_rag.harness.scoring.truncate import WHOLE, tokenizer_cut, words_cut
from lm_eval_rag.harness.scoring.verdict import Verdict

VERDICTS = ("correct", "missing", "wrong")
Z = 1.959963984540054  # of a 95 % interval
EPILOG = f"FILE: {FORMAT} Labels: perfect, acceptable, missing, incorrect, or correct and wrong."


@dataclass(frozen=True, slots=True)
class Agreement:
    """Judge against people on some answers.

    Args:
        n: Answers with a verdict.
        unscored: Answers on which the judge failed; they are in no other number here.
        confusion: "label, verdict" -> number; both are of ``VERDICTS``.
        agreement: Share of the verdicts that are the label; None where there are none.
        low: Lower end of Wilson's 95 % interval of it.
        high: Upper end.
        kappa: Cohen's; None where chance alone would agree fully.
        bias: Share that the judge calls correct less the share that people do: above 0 it is lenient.
    """

    n: int
    unscored: int
    confusion: dict[str, int]
    agreement: float | None
    low: float
    high: float
    kappa: float | None
    bias: float | None


def judge_check_main(argv: Sequence[str]) -> int:
    """Measure a judge against labelled answers; prints how it did, and writes it as JSON where asked.

    Returns:
        0; 2 when the file or the judge cannot be used.
    """
    parser = argparse.ArgumentParser("lm-eval-rag judge-check", description=judge_check_main.__doc__, epilog=EPILOG)
    parser.add_argument("file", metavar="FILE", help="labelled answers, one JSON object a line")
    parser.add_argument("--judge", default="rules", help="rules, or a model as lm_eval names it (default: rules)")
    parser.add_argument("--judge_args", default="", help="its arguments, such as model=gpt-4o-mini")
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json for the cut to 75 tokens; words by default")
    parser.add_argument("--whole", action="store_true", help="look at whole predictions, and leave out CRAG's rules")
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="write all numbers and every disagreement into OUT too"
    )
    given = parser.parse_args(argv)
    try:
        labelled = read_labels(given.file)
        cut = WHOLE if given.whole else tokenizer_cut(given.tokenizer) if given.tokenizer else words_cut()
        options = _options(given.judge_args)
        panel = Panel(judges_of({"judge": given.judge, **options}), cut, not given.whole)
        if not panel.judges:
            raise UserError("--judge off judges nothing: name rules or a model.")
        found = check(labelled, panel)
        if given.json is not None:
            content = {name: asdict(one) for name, one in found.groups.items()} | {"disagreements": found.disagreements}
            given.json.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except (UserError, OSError) as error:
        sys.stderr.write(f"lm-eval-rag: {error}\n")
        return 2
    sys.stdout.write(render(found, panel))
    return 0


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of it: agreement on ``all`` answers, and on parts of them that there are any of."""

    groups: dict[str, Agreement]
    disagreements: list[dict[str, Any]]


def check(labelled: Sequence[Labelled], panel: Panel) -> Checked:
    """Judge every labelled answer and compare.

    The parts are: answers that the ``judge`` itself decided (the specification settles the others), and answers to an
    ``invalid question``: an accepted answer says "invalid".
    """
    responses = {one: Response(one.question, one.answers, one.prediction) for one in labelled}
    verdicts = panel.verdicts(list(responses.values()))
    pairs = [(one, verdicts[responses[one]]) for one in labelled]
    parts = {
        "all": pairs,
        "judge": [pair for pair in pairs if pair[1].rule == "judge"],
        "invalid question": [pair for pair in pairs if any(INVALID in a.lower() for a in pair[0].answers)],
    }
    return Checked(
        {name: compare(part) for name, part in parts.items() if part},
        [
            {**asdict(one), "verdict": said(verdict), "why": f"{verdict.rule}: {verdict.why}".rstrip(": ")}
            for one, verdict in pairs
            if verdict.correct is not None and said(verdict) != meant(one)
        ],
    )


def meant(one: Labelled) -> str:
    """The label as a verdict."""
    return "missing" if one.label == "missing" else "correct" if one.correct else "wrong"


def said(verdict: Verdict) -> str:
    """The verdict in a word; judges that are split evenly say wrong."""
    return "missing" if verdict.missing else "correct" if (verdict.correct or 0) > 0.5 else "wrong"


def compare(pairs: Iterable[tuple[Labelled, Verdict]]) -> Agreement:
    """Confusion, agreement and kappa (Cohen 1960) of labels and verdicts."""
    all_pairs = list(pairs)
    scored = [(meant(one), said(verdict)) for one, verdict in all_pairs if verdict.correct is not None]
    n, counts = len(scored), Counter(scored)
    same = sum(counts[name, name] for name in VERDICTS)
    rows, columns = Counter(label for label, _ in scored), Counter(verdict for _, verdict in scored)
    chance = sum(rows[name] * columns[name] for name in VERDICTS) / n**2 if n else 1.0
    share = same / n if n else None
    return Agreement(
        n=n,
        unscored=len(all_pairs) - n,
        confusion={f"{label}, {verdict}": counts[label, verdict] for label in VERDICTS for verdict in VERDICTS},
        agreement=share,
        **dict(zip(("low", "high"), wilson(same, n), strict=True)),
        kappa=None if share is None or chance == 1 else (share - chance) / (1 - chance),
        bias=(columns["correct"] - rows["correct"]) / n if n else None,
    )


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Wilson's score interval (1927) of a share, 95 %; (0, 1) of nothing."""
    if n == 0:
        return 0.0, 1.0
    share, square = hits / n, Z * Z / n
    middle, half = share + square / 2, Z * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


def render(found: Checked, panel: Panel) -> str:
    """As plain text."""
    names = " and ".join(judge.name for judge in panel.judges)
    parts = [f"judge: {names}; predictions cut: {panel.cut.name}"]
    parts += [_group(name, one) for name, one in found.groups.items()]
    if "invalid question" not in found.groups:
        parts.append("no answer here is to an invalid question: its bias is not known")
    return "\n\n".join(parts) + "\n"


def _group(name: str, one: Agreement) -> str:
    head = "".join(f"{verdict:>10}" for verdict in VERDICTS)
    lines = [f"{name}: {one.n} answers" + (f", and {one.unscored} unscored" if one.unscored else "")]
    lines += [f"  {'label / verdict':<16}{head}"]
    lines += [
        f"  {label:<16}" + "".join(f"{one.confusion[f'{label}, {verdict}']:>10}" for verdict in VERDICTS)
        for label in VERDICTS
    ]
    kappa = "not defined" if one.kappa is None else f"{one.kappa:.3f}"
    if one.agreement is not None and one.bias is not None:
        lines += [
            f"  agreement {100 * one.agreement:.1f} % [{100 * one.low:.1f}, {100 * one.high:.1f}], kappa {kappa}, "
            f"called correct {100 * one.bias:+.1f} points beside the labels"
        ]
    return "\n".join(lines)


def _options(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if any(not mark for _, mark, _ in pairs):
        raise UserError(f"--judge_args {text!r} is not understood: write name=value,name=value.")
    return {f"judge_{name.strip()}": value for name, _, value in pairs}
