"""What a table to reproduce is made of: rows (method, arguments, training), claims and plots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.reproduce.verdicts import MARGIN

KINDS_OF_TRAINING = ("retriever", "generator")
MEAN, BEST = OF = ("mean", "best")  # what several lines ``worse`` are to a claim
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """One training step, ready to run.

    Args:
        what: ``retriever`` or ``generator``.
        options: Those of ``lm-eval-rag train``, names without dashes; a value may be the checkpoint of another step.
        bank: ``2/4`` trains on the second of four disjoint parts of the rule bank; "" on all of it.
    """

    what: str
    options: tuple[tuple[str, Any], ...]
    bank: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One method with its arguments, run on several tasks.

    Args:
        name: Unique: the name of the line, and the seed.
        line: Name of the line of the page; rows with other seeds share it.
        label: Text of the line on the page.
        model: Name of the method; "" for a line that shows only published numbers.
        arguments: As in ``--model_args``; texts may hold ``{task}`` and ``@NAME``.
        tasks: Names of the tasks.
        sample: Task -> number of questions, sampled with seed 0; other tasks are run in full.
        first: Only the first questions of each task (``--limit``); None for all.
        corpora: Task -> the corpus that it is asked over, where it offers several (``--metadata``).
        include_path: Folder of tasks of one's own (``--include_path``), beside the table's file; "" for none.
        metadata: More of ``--metadata``, such as the judge.
        gen_kwargs: ``--gen_kwargs``, such as ``max_gen_toks``.
        system: ``--system_instruction``; "" for none.
        chat: Whether prompts use the generator's chat template (``--apply_chat_template``).
        differs: How the row departs from the setting of its published numbers, so that it cannot check them; "" if it
            does not.
        needs: What the row needs beyond the install, such as a GPU; such a row is run only when it is named.
        before: Commands to run before it, such as a download; they are printed with its command, and not run.
        published: What identifies its numbers in the paper: ``method``, and ``retriever``, ``generator``, ``note``;
            ``table`` and ``task`` where they are not those of the page and the run.
        published_questions: Task -> number of questions of the published run, where it is known.
        series: Name of the curve that it is a point of, or "".
        x: Its place on the curve.
        bank: The part of the rule bank that it was trained on, such as ``2/4``, or "".
        steps: The training steps of the table by name, unresolved.
        variables: Values of its placeholders.
    """

    name: str
    line: str
    label: str
    model: str
    arguments: Values
    tasks: tuple[str, ...]
    sample: Mapping[str, int] = field(default_factory=dict)
    first: int | None = None
    corpora: Mapping[str, str] = field(default_factory=dict)
    include_path: str = ""
    metadata: Values = field(default_factory=dict)
    gen_kwargs: Values = field(default_factory=dict)
    system: str = ""
    chat: bool = False
    differs: str = ""
    needs: str = ""
    before: tuple[str, ...] = ()
    published: Mapping[str, str] = field(default_factory=dict)
    published_questions: Mapping[str, int] = field(default_factory=dict)
    series: str = ""
    x: float | None = None
    bank: str = ""
    steps: Mapping[str, Values] = field(default_factory=dict)
    variables: Values = field(default_factory=dict)

    def arguments_for(self, task: str) -> dict[str, Any]:
        """The arguments on one task; a checkpoint that must be trained is a :class:`TrainingStep`."""
        variables = {**self.variables, "task": task}
        return {key: self._resolved(value, variables) for key, value in self.arguments.items()}

    def _resolved(self, value: Any, variables: Values) -> Any:
        value = fill(value, variables, self.name)
        if not (isinstance(value, str) and value.startswith("@")):
            return value
        if value[1:] not in self.steps:
            raise unknown(f"training step in row {self.name!r}:", value[1:], self.steps)
        step = dict(self.steps[value[1:]])
        what, bank = step.pop("what", ""), fill(step.pop("bank", ""), variables, self.name)
        if what not in KINDS_OF_TRAINING:
            raise unknown(f"'what' in training step {value[1:]!r}:", str(what), KINDS_OF_TRAINING)
        options = sorted((key, self._resolved(option, variables)) for key, option in step.items())
        return TrainingStep(what, tuple((key, tuple(v) if isinstance(v, list) else v) for key, v in options), bank)


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper that rows can test: the lines ``better`` score higher than the lines ``worse``.

    Args:
        text: The claim.
        better: Names of lines; a question's score is their mean.
        worse: The same, or what ``of`` says.
        metrics: Scores that it is tested on.
        paper: Where the paper says so, and by how much.
        controls: Name of a control -> lines that ``better`` must also beat if the rules are the reason.
        bounds: Name of an upper bound -> lines shown for comparison, not tested.
        tasks: Tasks; () for all on which both have been run.
        slice: Only questions of this slice; "" for all.
        bank: ``own``: a row counts on questions about the rules it was trained on; ``other``: on all other questions.
        of: ``best`` compares with the line of ``worse`` that has the highest mean on the task, ``mean`` with the mean
            of all. The best is chosen on the same questions, which is to the disadvantage of ``better``.
    """

    text: str
    better: tuple[str, ...]
    worse: tuple[str, ...]
    metrics: tuple[str, ...]
    paper: str = ""
    controls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tasks: tuple[str, ...] = ()
    slice: str = ""
    bank: str = ""
    of: str = MEAN


@dataclass(frozen=True, slots=True)
class Plot:
    """Curves over the rows that have ``x``, or (kind ``banks``) gains over ``baseline`` by training and test rules.

    Args:
        metric: Name of a score; ``{x}`` in it is the point's x.
        relative: Whether values are shown in percent of the curve's best.
        log: Whether the x axis is logarithmic.
    """

    title: str
    metric: str
    kind: str = "curve"
    baseline: str = ""
    x_label: str = ""
    relative: bool = False
    log: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A whole file.

    Args:
        name: Name of the file, without suffix.
        title: Title of the page.
        source: Table or figure of the paper, as in the published CSV.
        notes: How our measurement differs from the paper's.
        running: What to know before rows are run that need more than the install; ``--dry-run`` prints it.
        metrics: Scores shown, one table each.
        rows: All rows, in order.
        claims: What is tested.
        plots: What is drawn.
        subset: ``degenerated`` counts only questions that the best rule rewrites into one about stated facts; "" all.
        share_calls: Whether rows reuse each other's finished calls (see :mod:`.sharing`).
        file: The file as it was named on the command line; "" for a table of the package.
        verdicts: Whether each row ends in a verdict: does it reproduce its published numbers (see :mod:`.verdicts`).
        margin: How far apart a published number and ours may be that count as close, in points.
        max_steps: Number of steps after which training ends in a trial; None for a whole training.
    """

    name: str
    title: str
    source: str = ""
    notes: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    claims: tuple[Claim, ...] = ()
    plots: tuple[Plot, ...] = ()
    subset: str = ""
    share_calls: bool = False
    verdicts: bool = False
    margin: float = MARGIN
    file: str = ""
    running: tuple[str, ...] = ()
    max_steps: int | None = None

    @property
    def compared(self) -> bool:
        """Whether it has published numbers beside ours."""
        return bool(self.source) or any(row.published for row in self.rows)

    def lines(self) -> dict[str, tuple[Row, ...]]:
        """Line -> its rows, which differ only in the seed."""
        names = dict.fromkeys(row.line for row in self.rows)
        return {name: tuple(row for row in self.rows if row.line == name) for name in names}


def fill(value: Any, variables: Values, where: str) -> Any:
    """``value`` with its placeholders replaced; a text that is one placeholder becomes the value itself, of any type.

    Raises:
        UserError: A placeholder has no value; the message starts with ``where``.
    """
    if isinstance(value, Mapping):
        return {key: fill(one, variables, where) for key, one in value.items()}
    if isinstance(value, list):
        return [fill(one, variables, where) for one in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    if value[1:-1] in variables and value == f"{{{value[1:-1]}}}":
        return variables[value[1:-1]]
    try:
        return value.format(**variables)
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(variables) or "none"
        raise UserError(f"{where}: {value!r} has a placeholder without a value ({error}); known: {known}.") from None
