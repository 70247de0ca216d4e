"""A language model as the judge: one prompt an item, a reply in JSON, both kept in the journal.

What a prediction cannot do: leave its place (it is a JSON string, in which the brackets of chat markers are escaped
too), or have its own text taken for the verdict (a verdict must repeat a check value made from a hash of judge and
item, which no prediction can hold). A model that is talked into a wrong verdict is not prevented: judge-check measures
judges.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.journal import Call, Journal, Reply, digest
from lm_eval_rag.harness.core.progress import Bar
from lm_eval_rag.harness.generators.base import Decoding, Generator
from lm_eval_rag.harness.generators.fit import Fitted, fit
from lm_eval_rag.harness.scoring.judge import Item, Opinion

DECODING = Decoding(max_tokens=200, stop=(), temperature=0.0)
SHOWN = 120  # characters of a reply that a message repeats
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


@cache
def _template() -> dict[str, str]:
    found: dict[str, str] = tomllib.loads((files(__package__) / "prompt.toml").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True)
class ModelJudge:
    """A model behind our prompt.

    Args:
        name: The model's name, as recorded.
        generator: What is asked.
        path: The verdicts' journal; None keeps none.
    """

    name: str
    generator: Generator
    path: Path | None = None

    @property
    def fingerprint(self) -> str:
        """The model's, and the prompt's wording."""
        return digest([self.generator.fingerprint, _template(), DECODING.max_tokens])

    def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
        """One a item, in order; from the journal where it was asked before.

        A server that refuses us leaves the rest without opinion rather than ending the run: its answers may have cost
        hours. The same run again asks only what is missing.
        """
        found: list[Opinion | CallError] = []
        journal, batch = Journal(self.path, self.fingerprint), self.generator.batch
        bar = Bar(len(items), f"judge {self.name}")
        try:
            for start in range(0, len(items), batch):
                part = items[start : start + batch]
                try:
                    found += self._serve(part, journal)
                except UserError as error:
                    return found + [CallError(str(error))] * (len(items) - start)
                bar.update(len(part), 0, ())
        finally:
            bar.close()
            journal.close()
        return found

    def _serve(self, items: Sequence[Item], journal: Journal) -> list[Opinion | CallError]:
        mark = self.fingerprint
        calls = [Call(mark, [item.question, list(item.answers), item.prediction]) for item in items]

        def compute(positions: list[int]) -> list[Any]:
            return self._ask([items[i] for i in positions], [calls[i].key[:8] for i in positions])

        replies = journal.serve(calls, compute, len(items))
        return [Opinion(*reply.value) if isinstance(reply, Reply) else reply for reply in replies]

    def _ask(self, items: Sequence[Item], checks: Sequence[str]) -> list[tuple[float, str] | CallError]:
        fitted = [
            fit(prompt(item, check), self.generator, DECODING.max_tokens)
            for item, check in zip(items, checks, strict=True)
        ]
        sent = [i for i, one in enumerate(fitted) if isinstance(one, Fitted)]
        texts = [one.text for one in fitted if isinstance(one, Fitted)]
        replies = (
            dict(zip(sent, self.generator.generate(texts, DECODING, [0] * len(texts)), strict=True)) if sent else {}
        )
        found: list[tuple[float, str] | CallError] = []
        for i, one in enumerate(fitted):
            reply = one if isinstance(one, CallError) else replies[i]
            found.append(reply if isinstance(reply, CallError) else read_reply(reply, checks[i]))
        return found


def prompt(item: Item, check: str) -> str:
    """What the model is sent.

    Args:
        check: What its verdict must repeat.
    """
    data = {"question": item.question, "reference_answers": list(item.answers), "response": item.prediction}
    return _template()["text"].strip().replace("{check}", check).replace("{data}", quoted(data))


def quoted(data: dict[str, Any]) -> str:
    """JSON in which no string can be read as anything but a string: chat markers, line and direction marks escaped."""

    def safe(value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(safe, value))}]"
        text = json.dumps(value, ensure_ascii=False)
        return "".join(c if c == " " or (c.isprintable() and c not in "<>[]{}") else _escaped(c) for c in text)

    return "{" + ", ".join(f'"{key}": {safe(value)}' for key, value in data.items()) + "}"


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1] if ord(char) > 127 else f"\\u{ord(char):04x}"


def read_reply(reply: str, check: str) -> tuple[float, str] | CallError:
    """(1 or 0, the reason) from a model's reply; a CallError unless it holds one verdict with the check value.

    The object may be bare, fenced, quoted as a string, after a <think> block, or amid other words; what lacks the check
    value, such as a repeated prediction, is not looked at.
    """
    told = [found for text in _readings(reply) for found in _objects(text) if found.get("check") == check]
    verdicts = {repr(found.get("correct")): found for found in told}
    (verdict,) = verdicts.values() if len(verdicts) == 1 else ({},)
    if not isinstance(verdict.get("correct"), bool):
        return CallError(f"the judge's reply holds no verdict: {reply.strip()[:SHOWN]!r}")
    return float(verdict["correct"]), str(verdict.get("reason", ""))


def _readings(reply: str) -> Iterator[str]:
    """The reply, and what it says if it is one quoted string."""
    bare = _THOUGHT.sub("", reply).strip()
    yield bare
    if bare.startswith('"'):
        try:
            inner = json.loads(bare)
        except json.JSONDecodeError:
            return
        if isinstance(inner, str):
            yield inner


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a text that lie in no other one; one that names a key twice is none."""
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    start = text.find("{")
    while start >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            end = start + 1
        except RecursionError:  # a thousand levels deep: no verdict, and slow to try at every level
            return
        else:
            if isinstance(found, dict):
                yield found
        start = text.find("{", end)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any] | None:
    return dict(pairs) if len({key for key, _ in pairs}) == len(pairs) else None
