"""A figure of what a method asks for, drawn from one run of it over a small world with a scripted generator."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lm_eval_rag import Passage, Query, Rule
from lm_eval_rag._register import OWN, find_method, method_of
from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.plugin.engine import run

log = logging.getLogger(__name__)

CSS = """
.md-typeset ol.asks { display: flex; flex-wrap: wrap; gap: .4rem 1.4rem; margin: 1rem 0;
  padding: 0 0 0 1.2rem; list-style: none; }
.md-typeset ol.asks li { position: relative; margin: 0; padding: .2rem .6rem; border: .05rem solid currentColor;
  border-radius: .2rem; }
.md-typeset ol.asks li + li::before { content: "→"; position: absolute; left: -1.1rem; }
"""
WORDS = {  # type of an ask -> what it is to a reader
    "Retrieve": "retrieve", "Generate": "generate", "Loglikelihood": "log-probability", "MatchRules": "match rules",
    "Lookup": "look up in the graph", "Calculate": "calculate", "Rank": "rank", "Pages": "read the pages",
    "Recognise": "recognise subject and relation", "Facts": "count facts",
    "Examples": "worked examples", "Classify": "classify", "AskSystem": "ask the system", "HasGraph": "",
    "Embed": "embed",    "HasLoglikelihood": "", "Prepared": "open what was prepared",
}  # fmt: skip
RULE = Rule(head="is a citizen of", body="was born in", support=3, body_support=3, confidence=0.9)
TOWNS = ("Vale", "Norn", "Moor", "Kell", "Alba", "Burg")
PASSAGES = [
    Passage(f"d{i}", f"Person{i} Moss was born in {town}.", fact=(f"Person{i} Moss", "was born in", town))
    for i, town in enumerate(TOWNS)
]
EXAMPLES = [(Query(f"e{i}", f"what does Person{i} Moss is a citizen of ?"), TOWNS[i]) for i in range(1, 6)]
QUESTION = "what does Person0 Moss is a citizen of ?"
REASONED = " Person0 Moss was born in Vale. So the answer is Vale."
RECORDS = (  # where a method asks for entities and relations
    " entity | Person0 Moss | person | Person0 Moss was born in Vale.\nentity | Vale | place | Vale is a town.\n"
    "relation | Person0 Moss | Vale | Person0 Moss was born in Vale. | 9\n"
)
SHOWN = 14  # steps of a figure, at most
CRAG = "crag"  # beginning of the names of methods whose questions come with pages
ARGUMENTS: dict[str, dict[str, Any]] = {"external": {"function": f"{__name__}:small_system"}}  # without it, no run
README = Path(__file__).parents[2] / "README.md"
EXAMPLE = re.compile(r"```python\n(from lm_eval_rag import Answer, .*?)```", re.DOTALL)  # README's method file
NOTE = "What one question asks for, in a run with default parameters over a small world with a scripted model."
OWN_NOTE = "The steps of the method file in README (`two_step`), over a small world with a scripted model."


class Scripted:
    """A generator that reasons in one sentence and answers; log-probabilities fall with the length."""

    fingerprint, batch = "scripted", 8

    def generate(self, prompts: list[str], decoding: Any, samples: list[int]) -> list[str]:
        """A text for every prompt."""
        return [RECORDS if prompt.endswith("ecords:") else REASONED for prompt in prompts]

    def loglikelihood(self, pairs: list[tuple[str, str]]) -> list[float]:
        """ln P of each continuation."""
        return [-0.1 * len(continuation) for _, continuation in pairs]

    def count_tokens(self, text: str) -> int:
        """Words."""
        return len(text.split())

    def room(self, max_tokens: int) -> None:
        """No limit."""
        return None


def small_system(question: str) -> str:
    """A system of the user's, for ``external``."""
    return "Vale"


def figure(name: str) -> str:
    """The steps of one question as HTML; "" where the method cannot be run here."""
    try:
        steps = _steps(name)
    except (UserError, CallError, ModuleNotFoundError) as error:
        log.info("no figure of %s: %s", name, error)
        return ""
    return chain(steps, OWN_NOTE if name == OWN else NOTE)


def _steps(name: str) -> list[str]:
    """The words of the asks of one question, in order."""
    query, corpus = Query("q", QUESTION), PASSAGES
    if name.startswith(CRAG):
        query, corpus = _crag_question(), None  # type: ignore[assignment]
    method = _example() if name == OWN else method_of(name)
    ((_, trace),) = run(
        method, [query], corpus=corpus, rules=[RULE] if corpus else (), examples=EXAMPLES, generator=Scripted(),
        **ARGUMENTS.get(name, {}),
    )  # fmt: skip
    return [WORDS.get(step.ask, step.ask) for step in trace.steps if WORDS.get(step.ask, step.ask)]


def _example() -> Callable[..., Any]:
    """The method of README, from a file as a user has it."""
    (text,) = EXAMPLE.findall(README.read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "my.py"
        file.write_text(text, encoding="utf-8")
        return find_method(f"{file}:two_step").function


def _crag_question() -> Query:
    from lm_eval_rag.tasks.crag.task import questions
    from lm_eval_rag.tasks.crag_demo.build import build

    doc = questions(build())["test"][0]
    return Query(doc["id"], doc["query"], doc["time"], doc["corpus"])


def folded(steps: list[str]) -> list[str]:
    """The steps; equal ones in a row are one text with their number, and so are pairs and triples of these texts."""
    texts, place = [], 0
    steps = [f"{word} × {times}" if times > 1 else word for word, times in counted(steps)]
    while place < len(steps):
        times, period = max((_repeats(steps, place, period), -period) for period in (2, 3))
        period = -period if times > 1 else 1
        part = " → ".join(steps[place : place + period])
        texts.append(part if times == 1 else f"({part}) × {times}")
        place += times * period
    return texts


def counted(steps: list[str]) -> list[tuple[str, int]]:
    """Each run of equal steps as the step and its length."""
    return [(word, len(list(run))) for word, run in groupby(steps)]


def _repeats(steps: list[str], place: int, period: int) -> int:
    """How often the ``period`` steps from a place on stand in a row."""
    part, times = steps[place : place + period], 1
    while part == steps[place + times * period : place + (times + 1) * period]:
        times += 1
    return times


def chain(steps: list[str], note: str = NOTE) -> str:
    """A chain of boxes as an HTML list, which wraps on a phone, and the note below it."""
    boxes = folded(steps)
    shown = [*boxes[:SHOWN], *(["..."] if len(boxes) > SHOWN else [])]
    items = "".join(f"<li>{text}</li>" for text in ("question", *shown, "answer"))
    return f'<ol class="asks">{items}</ol>\n\n*{note}*'
