"""Every method of several steps beside ``standard_rag`` at the same cost, on one task with one generator.

    python scripts/bench_methods.py --task reasoning_demo --limit 200 --out runs/demo
    python scripts/bench_methods.py --task hotpotqa_200 --limit 50 --out runs/smollm2 --places 8 --arguments \\
        generator=local-completions,gen_model=PATH,gen_base_url=http://127.0.0.1:8000/v1/completions,gen_num_concurrent=8

Each row is one run of ``lm_eval``; a row whose results are in ``--out`` is not run again, and one that was interrupted
goes on from its journal. The first table has scores with 95 % intervals and what a question costs: calls of the
model (a sample or a log-probability each), tokens read and written, passages retrieved, and seconds of the run.
"Model s" is the time of the replies, also of those that an earlier run asked for and the journal kept; "s a question"
is that of the run by the clock, empty if the journal had replies. Occupancy is the share of the ``--places`` of a
server that was busy, from the seconds of the replies; it means something only in a fresh ``LM_EVAL_RAG_CACHE``.

After the methods come trivial answers without a model: the best constant (for all questions, and for each type, chosen
on the gold answers, which favours them), and the first passage of the first method that retrieves for every question:
its title (the first line), its text, and that of all (``em_contains`` favours such long answers; that is why they are
here). A method below them has shown nothing.

The second table compares each method with the best of ``standard_rag`` among those of its settings that cost no more
calls, no more tokens, or no more passages. Settings: 1 to 20 passages; one answer, or a vote of 5, 10 or 20; and one
answer after a chain of thought, so that reasoning alone is no advantage. The best is chosen by the same questions,
which favours ``standard_rag``. ``--settings 1x1 2x5 5x1cot`` takes some of them alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.plugin.model import PREPARATION
from lm_eval_rag.harness.plugin.trace_file import read_trace
from lm_eval_rag.harness.report.run_files import TaskRun, read_runs
from lm_eval_rag.harness.report.stats import interval, paired
from lm_eval_rag.harness.scoring import score
from lm_eval_rag.harness.scoring.normalise import normalise

METHODS = (
    "standard_prompting", "standard_rag", "iter_retgen", "ircot", "search_agent", "think_then_act", "self_rag",
    "verify_and_edit", "chain_of_knowledge", "tree_of_thoughts", "raptor", "graphrag", "crp_rag",
)  # fmt: skip
PASSAGES = (1, 2, 5, 10, 20)
SETTINGS = (  # passages, samples, style of the answer
    *product(PASSAGES, (1, 5, 10, 20), ("free",)),
    *product(PASSAGES, (1,), ("cot",)),
)
Means = Mapping[str, float]


@dataclass(frozen=True)
class Row:
    """One finished run.

    Args:
        name: Of the method or setting.
        run: What lm_eval wrote.
        trace: Every step of every question.
        seconds: Of the run without imports, by the clock.
    """

    name: str
    run: TaskRun
    trace: Sequence[Mapping[str, Any]]
    seconds: float

    @cached_property
    def questions(self) -> list[Sequence[Mapping[str, Any]]]:
        """The steps of every question, without the preparation of a corpus, whose steps have lines of their own."""
        return [line["steps"] for line in self.trace if line["task"] != PREPARATION]

    @cached_property
    def busy(self) -> float:
        """Seconds of all calls that were made in this run, those of a preparation included."""
        steps = (step for line in self.trace for step in line["steps"] if step["ask"] in ("Generate", "Loglikelihood"))
        return sum(step.get("seconds", 0.0) for step in steps if not step.get("journalled"))

    @cached_property
    def cost(self) -> Means:
        """Means of a question."""
        steps = self.questions
        asked = [[step for step in one if step["ask"] in ("Generate", "Loglikelihood")] for one in steps]
        return {
            "calls": mean([sum(max(1, len(step.get("finishes", ()))) for step in one) for one in asked]),
            "read": mean([sum(step.get("prompt_tokens", 0) for step in one) for one in asked]),
            "written": mean([sum(step.get("completion_tokens", 0) for step in one) for one in asked]),
            "tokens": mean(
                [sum(s.get("prompt_tokens", 0) + s.get("completion_tokens", 0) for s in one) for one in asked]
            ),
            "passages": mean([sum(step.get("found", 0) for step in one) for one in steps]),
            "model": mean([sum(step.get("seconds", 0.0) for step in one) for one in asked]),
            "journalled": mean([sum(bool(step.get("journalled")) for step in one) for one in asked]),
        }

    def values(self, metric: str) -> list[float]:
        """The scores of the questions in the order of their ids."""
        scores = self.run.scores.get(metric, {})
        return [scores[id] for id in sorted(scores)]


def mean(values: Sequence[float]) -> float:
    """The mean of at least one number."""
    return sum(values) / len(values)


def setting(text: str) -> tuple[int, int, str]:
    """(passages, samples, style of the answer) of such as ``2x5`` or ``5x1cot``."""
    k, _, samples = text.partition("x")
    return int(k), int(samples.removesuffix("cot")), "cot" if samples.endswith("cot") else "free"


def main() -> None:
    """Run what has not been run, and print two tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--task", required=True)
    parser.add_argument("--limit", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--arguments", default="", help="model arguments of all rows, such as the generator")
    parser.add_argument("--metadata", help="of lm_eval, such as the corpus")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--places", type=int, default=0, help="requests that the server answers at once")
    parser.add_argument("--metric", default="em")
    parser.add_argument(
        "--settings", type=setting, nargs="+", default=SETTINGS, help="passages x samples, such as 2x5 or 5x1cot"
    )
    parser.add_argument("--alone", action="store_true", help="no comparison with standard_rag of the same cost")
    options = parser.parse_args()
    import_module("lm_eval.models.huggingface")  # what the first row would count as its seconds
    rows = [row for name in options.methods.split(",") if (row := run(name, name, "", options))]
    print(measured(rows, options))
    print(trivial(rows, options))
    if options.alone:
        return
    settings = [row for one in options.settings if (row := run(*asked(*one), options))]
    print(compared(rows, settings, options.metric))


def asked(k: int, samples: int, style: str) -> tuple[str, str, str]:
    """The row of a setting: its name, the method, its arguments."""
    own = f"k={k},documents={k},samples={samples}"
    if style == "free":
        return f"k={k}, {samples} samples", "standard_rag", own
    return f"k={k}, {samples} samples, {style}", "standard_rag", f"{own},answer_style={style}"


def run(name: str, method: str, own: str, options: argparse.Namespace) -> Row | None:
    """One row, run if it has not been; None if it failed, after its last line was shown."""
    folder = options.out / name.replace(", ", "-").replace(" ", "")
    arguments = ",".join(filter(None, [own, options.arguments, f"trace={folder / 'trace.jsonl.gz'}"]))
    took = folder / "seconds"
    if not took.is_file():
        (folder / "trace.jsonl.gz").unlink(missing_ok=True)
        command = ["lm_eval", "--tasks", options.task, "--model", method, "--model_args", arguments]
        command += ["--limit", str(options.limit), "--output_path", str(folder), "--log_samples"]
        command += ["--metadata", options.metadata] if options.metadata else []
        began = time.perf_counter()
        status = lm_eval(command)
        seconds = time.perf_counter() - began
        print(f"{name}: status {status}, {seconds:.0f} s", file=sys.stderr, flush=True)
        if status not in (0, 3):  # 3: some questions are unscored
            return None
        took.write_text(f"{seconds:.1f}")
    (read,) = read_runs([folder])
    return Row(name, read, read_trace(folder / "trace.jsonl.gz"), float(took.read_text()))


def lm_eval(command: list[str]) -> int:
    """The command line in this process, since its imports take seconds; its tables are not shown."""
    from lm_eval.__main__ import cli_evaluate

    sys.argv = command
    try:
        with redirect_stdout(StringIO()):
            cli_evaluate()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def measured(rows: Sequence[Row], options: argparse.Namespace) -> str:
    """Scores and costs of all methods."""
    columns: dict[str, Callable[[Row], str]] = {
        "method": lambda row: f"`{row.name}`",
        **{metric: lambda row, metric=metric: percent(row.values(metric)) for metric in shown(options)},
        "recall@5": lambda row: percent(row.values("recall@5")),
        "calls": lambda row: f"{row.cost['calls']:.1f}",
        "tokens read": lambda row: f"{row.cost['read']:,.0f}",
        "written": lambda row: f"{row.cost['written']:,.0f}",
        "passages": lambda row: f"{row.cost['passages']:.1f}",
        "model s": lambda row: f"{row.cost['model']:.2f}",
        "s a question": lambda row: "" if row.cost["journalled"] else f"{row.seconds / len(row.questions):.2f}",
    }
    if options.places:
        columns["occupancy"] = lambda row: f"{100 * row.busy / row.seconds / options.places:.0f} %"
    return table(list(columns), [[cell(row) for cell in columns.values()] for row in rows])


def trivial(rows: Sequence[Row], options: argparse.Namespace) -> str:
    """The scores of answers that need no model, for the questions of the first row that retrieves for each."""
    read = ([sample["doc"] for sample in row.run.samples] for row in rows)
    docs = next((docs for docs in read if all(doc["_rag"]["passages"] for doc in docs)), None)
    if docs is None:
        return "No trivial answers: none of these methods retrieves passages for every question.\n"
    golds = [{normalise(answer) for answer in doc["answers"]} for doc in docs]
    common = Counter(answer for gold in golds for answer in gold)
    of_type = Counter((doc.get("type"), answer) for doc, gold in zip(docs, golds, strict=True) for answer in gold)
    ranked = [key for key, _ in of_type.most_common()]
    best = {kind: next(answer for one, answer in ranked if one == kind) for kind, _ in ranked}
    texts = [[passage["text"] for passage in doc["_rag"]["passages"]] for doc in docs]
    answers = {
        "best constant": [common.most_common(1)[0][0]] * len(docs),
        "best constant of the type": [best[doc.get("type")] for doc in docs],
        "title of the first passage": [first.partition("\n")[0] for first, *_ in texts],
        "the first passage": [first for first, *_ in texts],
        "all passages": ["\n".join(some) for some in texts],
    }
    lines = []
    for name, given in answers.items():
        scores = [score(doc, answer, None) for doc, answer in zip(docs, given, strict=True)]
        lines.append([name, *(percent([one[metric] for one in scores if metric in one]) for metric in shown(options))])
    return table(["trivial answer", *shown(options)], lines)


def shown(options: argparse.Namespace) -> tuple[str, ...]:
    """The answer scores of the tables."""
    return tuple(dict.fromkeys((options.metric, "token_f1")))


def compared(rows: Sequence[Row], settings: Sequence[Row], metric: str) -> str:
    """Each method minus the best setting of ``standard_rag`` at its cost."""
    lines = []
    for row in rows:
        cells = []
        for budget in ("calls", "tokens", "passages"):
            allowed = [other for other in settings if other.cost[budget] <= row.cost[budget] * (1 + 1e-9)]
            best = max(allowed, key=lambda other: mean(other.values(metric)), default=None)
            cells.append("none is as cheap" if best is None else difference(row, best, metric))
        lines.append([f"`{row.name}`", *cells])
    return table(["method minus the best `standard_rag`", "at its calls", "at its tokens", "at its passages"], lines)


def difference(row: Row, best: Row, metric: str) -> str:
    """The paired difference in percent over what both scored, with its interval, p value and the setting."""
    first, second = row.run.scores.get(metric, {}), best.run.scores.get(metric, {})
    both = sorted(first.keys() & second.keys())
    found = paired([first[id] for id in both], [second[id] for id in both])
    low, high = (found.interval.mean if end is None else end for end in (found.interval.low, found.interval.high))
    return f"{100 * found.interval.mean:+.1f} [{100 * low:.1f}, {100 * high:.1f}], p {found.p:.2g} ({best.name})" + (
        f", {len(both)} questions" if len(both) < len(second) else ""
    )


def percent(values: Sequence[float]) -> str:
    """A mean in percent with its interval; empty without scores."""
    if not values:
        return ""
    found = interval(values)
    bounds = "" if found.low is None or found.high is None else f" [{100 * found.low:.1f}, {100 * found.high:.1f}]"
    return f"{100 * mean(values):.1f}{bounds}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    ruler = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ruler, *rows)) + "\n"


if __name__ == "__main__":
    main()
