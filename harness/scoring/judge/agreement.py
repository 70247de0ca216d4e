"""``lm-eval-rag judge-check``: a judge's agreement with people's labels, and its bias."""

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
from lm_eval_rag.harness.scoring.judge.pinned import commands
from lm_eval_rag.harness.scoring.truncate import WHOLE, tokenizer_cut, words_cut
from lm_eval_rag.harness.scoring.verdict import Verdict

VERDICTS = ("correct", "missing", "wrong")
Z = 1.959963984540054  # for a 95 % interval
EPILOG = (
    f"FILE: {FORMAT} Labels: perfect, acceptable, missing, incorrect, or correct and wrong. "
    'Optional: "source", whose answers are reported as a group.'
)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a judge with people's labels.

    Args:
        n: Answers with a verdict.
        unscored: Answers on which the judge failed; the other fields leave them out.
        confusion: "label, verdict" -> count; both are in ``VERDICTS``.
        agreement: Share of verdicts equal to the label; None without verdicts.
        low: Lower end of Wilson's 95 % interval of the agreement.
        high: Upper end of that interval.
        kappa: Cohen's kappa; None if the agreement expected by chance is 1.
        bias: Share called correct by the judge minus the share called correct by people; above 0 it is lenient.
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
    """Compare a judge with people's labels; print the agreement and, with --json, write it to a file.

    Returns:
        0; 2 if the file or the judge cannot be used.
    """
    parser = argparse.ArgumentParser("lm-eval-rag judge-check", description=judge_check_main.__doc__, epilog=EPILOG)
    parser.add_argument("file", metavar="FILE", help="labelled answers, one JSON object per line")
    parser.add_argument(
        "--judge", default="rules", help="rules, open (open weights, pinned), or an lm_eval model (default: rules)"
    )
    parser.add_argument("--judge_args", default="", help="arguments of that model, such as model=gpt-4o-mini")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json for truncation to 75 tokens (default: 75 words)")
    parser.add_argument("--whole", action="store_true", help="do not truncate predictions or apply CRAG's rules")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write all numbers and disagreements to OUT")
    parser.add_argument("--commands", action="store_true", help="print the commands for all kinds of judges, run none")
    options = parser.parse_args(argv)
    if options.commands:
        sys.stdout.write(commands(options.file))
        return 0
    try:
        labelled = read_labels(options.file)
        cut = WHOLE if options.whole else tokenizer_cut(options.tokenizer) if options.tokenizer else words_cut()
        judge_options = _options(options.judge_args)
        panel = Panel(judges_of({"judge": options.judge, **judge_options}), cut, not options.whole)
        if not panel.judges:
            raise UserError("--judge off is no judge. Give rules or the name of a model.")
        result = check(labelled, panel)
        if options.json is not None:
            content: dict[str, Any] = {name: asdict(agreement) for name, agreement in result.groups.items()}
            content |= {"disagreements": result.disagreements}
            options.json.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except (UserError, OSError) as error:
        sys.stderr.write(f"lm-eval-rag: {error}\n")
        return 2
    sys.stdout.write(render(result, panel))
    return 0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The agreement on ``all`` answers and on each non-empty group of answers, and every disagreement."""

    groups: dict[str, Agreement]
    disagreements: list[dict[str, Any]]


def check(labelled: Sequence[Labelled], panel: Panel) -> CheckResult:
    """Judge every labelled answer and compare verdict and label.

    The groups are: answers decided by the ``judge`` (the specification decides the others), answers to an
    ``invalid question``, which has a gold answer that contains "invalid", and the answers of each ``source``.
    """
    responses = {answer: Response(answer.question, answer.answers, answer.prediction) for answer in labelled}
    verdicts = panel.verdicts(list(responses.values()))
    pairs = [(answer, verdicts[responses[answer]]) for answer in labelled]
    groups = {
        "all": pairs,
        "judge": [pair for pair in pairs if pair[1].rule == "judge"],
        "invalid question": [pair for pair in pairs if any(INVALID in a.lower() for a in pair[0].answers)],
    }
    for source in sorted({answer.source for answer in labelled} - {""}):
        groups[f"source: {source}"] = [pair for pair in pairs if pair[0].source == source]
    return CheckResult(
        {name: compare(group) for name, group in groups.items() if group},
        [
            {**asdict(answer), "verdict": verdict_word(verdict), "why": f"{verdict.rule}: {verdict.why}".rstrip(": ")}
            for answer, verdict in pairs
            if verdict.correct is not None and verdict_word(verdict) != label_word(answer)
        ],
    )


def label_word(answer: Labelled) -> str:
    """The label as one of ``VERDICTS``."""
    return "missing" if answer.label == "missing" else "correct" if answer.correct else "wrong"


def verdict_word(verdict: Verdict) -> str:
    """The verdict as one of ``VERDICTS``; a tie of two judges is wrong."""
    return "missing" if verdict.missing else "correct" if (verdict.correct or 0) > 0.5 else "wrong"


def compare(pairs: Iterable[tuple[Labelled, Verdict]]) -> Agreement:
    """Confusion, agreement and kappa (Cohen 1960) of labels and verdicts."""
    all_pairs = list(pairs)
    judged = [(answer, verdict) for answer, verdict in all_pairs if verdict.correct is not None]
    scored = [(label_word(answer), verdict_word(verdict)) for answer, verdict in judged]
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
    """Wilson's 95 % score interval (1927) of a proportion; (0, 1) for n = 0."""
    if n == 0:
        return 0.0, 1.0
    share, square = hits / n, Z * Z / n
    middle, half = share + square / 2, Z * math.sqrt(share * (1 - share) / n + square / (4 * n))
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


def render(result: CheckResult, panel: Panel) -> str:
    """The result as plain text."""
    names = " and ".join(judge.name for judge in panel.judges)
    parts = [f"judge: {names}; predictions cut: {panel.cut.name}"]
    parts += [_group(name, agreement) for name, agreement in result.groups.items()]
    if "invalid question" not in result.groups:
        parts.append("there is no answer to an invalid question: the bias on these is unknown")
    return "\n\n".join(parts) + "\n"


def _group(name: str, agreement: Agreement) -> str:
    head = "".join(f"{verdict:>10}" for verdict in VERDICTS)
    lines = [f"{name}: {agreement.n} answers" + (f", and {agreement.unscored} unscored" if agreement.unscored else "")]
    lines += [f"  {'label / verdict':<16}{head}"]
    lines += [
        f"  {label:<16}" + "".join(f"{agreement.confusion[f'{label}, {verdict}']:>10}" for verdict in VERDICTS)
        for label in VERDICTS
    ]
    kappa = "not defined" if agreement.kappa is None else f"{agreement.kappa:.3f}"
    if agreement.agreement is not None and agreement.bias is not None:
        lines += [
            f"  agreement {100 * agreement.agreement:.1f} % [{100 * agreement.low:.1f}, {100 * agreement.high:.1f}], "
            f"kappa {kappa}, called correct {100 * agreement.bias:+.1f} points relative to the labels"
        ]
    return "\n".join(lines)


def _options(text: str) -> dict[str, Any]:
    from lm_eval.utils import handle_arg_string  # numbers, True and False, as lm_eval reads its own arguments

    pairs = [part.partition("=") for part in text.split(",") if part]
    if any(not mark for _, mark, _ in pairs):
        raise UserError(f"--judge_args {text!r} cannot be read. Write name=value,name=value.")
    return {f"judge_{name.strip()}": handle_arg_string(value) for name, _, value in pairs}
