"""A figure of what a method asks for, drawn from one run of it over a small world with a scripted generator."""

from __future__ import annotations

import logging
from itertools import groupby
from typing import Any

from lm_eval_rag import Passage, Query, Rule
from lm_eval_rag._register import METHODS, method_of
from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.plugin.engine import run

WORDS = {  # type of an ask -> what it is to a reader
    "Retrieve": "retrieve", "Generate": "generate", "Loglikelihood": "log-probability", "MatchRules": "match rules",
    "Lookup": "look up in the graph", "Calculate": "calculate", "Rank": "rank", "Pages": "read the pages",
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


def figure(name: str) -> str:
    """Mermaid of the steps of one question; "" where the method cannot be run here."""
    if name not in METHODS or name == "external":
        return ""
    try:
        steps = _steps(name)
    except (UserError, CallError, ModuleNotFoundError) as error:
        logging.getLogger(__name__).info("no figure of %s: %s", name, error)
        return ""
    return mermaid(steps)


def _steps(name: str) -> list[str]:
    """The words of the asks of one question, in order."""
    query, corpus = Query("q", QUESTION), PASSAGES
    if name.startswith(CRAG):
        query, corpus = _crag_question(), None  # type: ignore[assignment]
    ((_, trace),) = run(
        method_of(name), [query], corpus=corpus, rules=[RULE] if corpus else (), examples=EXAMPLES, generator=Scripted()
    )
    return [WORDS.get(step.ask, step.ask) for step in trace.steps if WORDS.get(step.ask, step.ask)]


def _crag_question() -> Query:
    from lm_eval_rag.tasks.crag.task import questions
    from lm_eval_rag.tasks.crag_demo.build import build

    doc = questions(build())["test"][0]
    return Query(doc["id"], doc["query"], doc["time"], doc["corpus"])


def mermaid(steps: list[str]) -> str:
    """A chain of boxes; equal steps in a row are one box with their number."""
    boxes = [(word, len(list(group))) for word, group in groupby(steps)]
    shown = [f"{word} × {number}" if number > 1 else word for word, number in boxes[:SHOWN]]
    shown += ["..."] if len(boxes) > SHOWN else []
    chain = [f'    s{i}["{text}"]' for i, text in enumerate(["question", *shown, "answer"])]
    links = [f"    s{i} --> s{i + 1}" for i in range(len(chain) - 1)]
    note = "*What one question asks for, in a run with default parameters over a small world with a scripted model.*"
    return "\n".join(["```mermaid", "flowchart LR", *chain, *links, "```", "", note])
