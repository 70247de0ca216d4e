"""A language model as judge: one prompt per item, a reply in JSON; replies are kept in the journal.

The prediction is untrusted text. It cannot end its JSON string, because brackets of chat markers are escaped too. Its
text cannot be taken for the verdict, because a verdict must repeat a check value, which is a hash of judge and item. A
prediction may still persuade the model of a wrong verdict; judge-check measures how reliable a judge is.
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
SHOWN = 120  # characters of a reply in an error message
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


@cache
def _template() -> dict[str, str]:
    template: dict[str, str] = tomllib.loads((files(__package__) / "prompt.toml").read_text(encoding="utf-8"))
    return template


@dataclass(frozen=True)
class ModelJudge:
    """A model with our judge prompt.

    Args:
        name: The model's name, as recorded.
        generator: The model.
        path: Journal of the verdicts; None for no journal.
    """

    name: str
    generator: Generator
    path: Path | None = None

    @property
    def fingerprint(self) -> str:
        """Depends on the model, the prompt and the limit of tokens."""
        return digest([self.generator.fingerprint, _template(), DECODING.max_tokens])

    def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
        """One opinion per item, in order; earlier replies come from the journal.

        If the server refuses a request, the remaining items get a CallError and the run continues, because its answers
        may have cost hours. A second run judges only the missing items.
        """
        opinions: list[Opinion | CallError] = []
        journal, batch = Journal(self.path, self.fingerprint), self.generator.batch
        bar = Bar(len(items), f"judge {self.name}")
        try:
            for start in range(0, len(items), batch):
                chunk = items[start : start + batch]
                try:
                    opinions += self._serve(chunk, journal)
                except UserError as error:
                    return opinions + [CallError(str(error))] * (len(items) - start)
                bar.update(len(chunk), 0, ())
        finally:
            bar.close()
            journal.close()
        return opinions

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
        sent = [i for i, prompt_or_error in enumerate(fitted) if isinstance(prompt_or_error, Fitted)]
        texts = [prompt_or_error.text for prompt_or_error in fitted if isinstance(prompt_or_error, Fitted)]
        replies = (
            dict(zip(sent, self.generator.generate(texts, DECODING, [0] * len(texts)), strict=True)) if sent else {}
        )
        verdicts: list[tuple[float, str] | CallError] = []
        for i, prompt_or_error in enumerate(fitted):
            reply = prompt_or_error if isinstance(prompt_or_error, CallError) else replies[i]
            verdicts.append(reply if isinstance(reply, CallError) else read_reply(reply, checks[i]))
        return verdicts


def prompt(item: Item, check: str) -> str:
    """The prompt for one item.

    Args:
        check: Check value that the verdict must repeat.
    """
    data = {"question": item.question, "reference_answers": list(item.answers), "response": item.prediction}
    return _template()["text"].strip().replace("{check}", check).replace("{data}", quoted(data))


def quoted(data: dict[str, Any]) -> str:
    """JSON with chat markers, line breaks and direction marks escaped, so that no string can end early."""

    def safe(value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(safe, value))}]"
        text = json.dumps(value, ensure_ascii=False)
        return "".join(c if c == " " or (c.isprintable() and c not in "<>[]{}") else _escaped(c) for c in text)

    return "{" + ", ".join(f'"{key}": {safe(value)}' for key, value in data.items()) + "}"


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1] if ord(char) > 127 else f"\\u{ord(char):04x}"


def read_reply(reply: str, check: str) -> tuple[float, str] | CallError:
    """(1 or 0, the reason) from a model's reply; a CallError unless it contains one verdict with the check value.

    The JSON object may be bare, fenced, quoted as a string, after a <think> block, or within other text. Objects
    without the check value, such as a repeated prediction, are ignored.
    """
    objects = [found for text in _readings(reply) for found in _objects(text)]
    verdicts = {repr(found.get("correct")): found for found in objects if found.get("check") == check}
    (verdict,) = verdicts.values() if len(verdicts) == 1 else ({},)
    if not isinstance(verdict.get("correct"), bool):
        return CallError(f"the judge's reply contains no verdict: {reply.strip()[:SHOWN]!r}")
    return float(verdict["correct"]), str(verdict.get("reason", ""))


def _readings(reply: str) -> Iterator[str]:
    """The reply and, if it is one quoted string, the content of that string."""
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
    """The outermost JSON objects of a text; an object with a repeated key is left out."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeated_keys)
    start = text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            end = start + 1
        except RecursionError:  # a thousand levels deep: not a verdict, and slow to try at every level
            return
        else:
            if isinstance(value, dict):
                yield value
        start = text.find("{", end)


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any] | None:
    return dict(pairs) if len({key for key, _ in pairs}) == len(pairs) else None
