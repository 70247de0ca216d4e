"""A language model as judge: one prompt per item, a reply in JSON; replies are kept in the journal.

The prediction is untrusted text. It cannot end its JSON string, because brackets of chat markers are escaped too. Its
text cannot be taken for the verdict, because a verdict must repeat a check value, which is a hash of judge and item. A
prediction may still persuade the model of a wrong verdict; judge-check measures how reliable a judge is.
"""

from __future__ import annotations

import asyncio
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
from lm_eval_rag.harness.core.loop import run_async
from lm_eval_rag.harness.core.progress import Bar
from lm_eval_rag.harness.generators.base import Decoding, Generator, Stream
from lm_eval_rag.harness.generators.batched import stream_of
from lm_eval_rag.harness.generators.fit import fit
from lm_eval_rag.harness.generators.memory import make_room
from lm_eval_rag.harness.scoring.judge import Item, Opinion

DECODING = Decoding(max_tokens=200, stop=(), temperature=0.0)
SHOWN = 120  # characters of a reply in an error message
VALUES = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
_VERDICT = re.compile(r"""["']correct["']\s*:\s*["']?(true|false|1|0)["']?\s*(?=[,}])""", re.IGNORECASE)
_END = re.compile(r",?\s*\}[\s`]*")
_REASON = re.compile(r"""["']reason["']\s*:\s*["'](.*)["']\s*[,}]""", re.DOTALL)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


# what is judged -> the file of its prompt, and what the fields of an item are called there
PROMPTS = {
    "answer": ("prompt.toml", ("question", "reference_answers", "response")),
    "rationale": ("rationale_prompt.toml", ("question", "documents", "rationale")),
}


@cache
def _template(subject: str = "answer") -> dict[str, str]:
    template: dict[str, str] = tomllib.loads((files(__package__) / PROMPTS[subject][0]).read_text(encoding="utf-8"))
    return template


@dataclass(frozen=True)
class ModelJudge:
    """A model with our judge prompt.

    Args:
        name: The model's name, as recorded.
        generator: The model.
        path: Journal of the verdicts; None for no journal.
        subject: What is judged, a name in :data:`PROMPTS`.
    """

    name: str
    generator: Generator
    path: Path | None = None
    subject: str = "answer"

    @property
    def fingerprint(self) -> str:
        """Depends on the model, the prompt and the limit of tokens."""
        return digest([self.generator.fingerprint, _template(self.subject), DECODING.max_tokens])

    def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
        """One opinion per item, in order; earlier replies come from the journal.

        If the server refuses a request, the remaining items get a CallError and the run continues, because its answers
        may have cost hours. A second run judges only the missing items.
        """
        return run_async(_Session(self).opinions(items))


class _Session:
    """One judge at work: its journal, its stream, and why it stopped asking, if it did."""

    def __init__(self, judge: ModelJudge) -> None:
        self.judge, self.mark = judge, judge.fingerprint
        self.stream: Stream | None = None  # opened with the first item that the journal lacks
        self.tasks: list[asyncio.Task[Opinion | CallError]] = []
        self.refusal: UserError | None = None

    async def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
        """The opinion on each item; every one is stored when it arrives."""
        self.bar = Bar(len(items), f"judge {self.judge.name}")
        self.journal = Journal(self.judge.path, self.mark)
        try:
            self.tasks = [asyncio.create_task(self._opinion(item)) for item in items]
            results = await asyncio.gather(*self.tasks, return_exceptions=True)
        finally:
            if self.stream is not None:
                await self.stream.close()
            self.journal.close()
            self.bar.close()
        return [self._outcome(result) for result in results]

    def _outcome(self, result: Opinion | BaseException) -> Opinion | CallError:
        if isinstance(result, Opinion | CallError):
            return result
        if self.refusal is None:
            raise result
        return CallError(str(self.refusal))

    async def _opinion(self, item: Item) -> Opinion | CallError:
        call = Call(self.mark, [item.question, list(item.answers), item.prediction])
        try:
            reply = await self.journal.call(call, lambda: self._ask(item, call.key[:8]))
        except UserError as error:
            self.refusal = error
            for task in self.tasks:
                task.cancel()
            raise
        self.bar.update(1, 0, ())
        return Opinion(*reply.value) if isinstance(reply, Reply) else reply

    def _open(self) -> Stream:
        """The judge's stream; its model is loaded here, in the generator's place where both want a GPU."""
        if self.stream is None:
            make_room(self.judge.generator)
            self.stream = stream_of(self.judge.generator)
        return self.stream

    async def _ask(self, item: Item, check: str) -> tuple[tuple[float, str], float] | CallError:
        stream = self._open()
        fitted = fit(prompt(item, check, self.judge.subject), self.judge.generator, DECODING.max_tokens)
        if isinstance(fitted, CallError):
            return fitted
        completion = await stream.generate(fitted.text, DECODING, 0)
        if isinstance(completion, CallError):
            return completion
        verdict = read_reply(completion.text, check)
        return verdict if isinstance(verdict, CallError) else (verdict, completion.seconds)


def prompt(item: Item, check: str, subject: str = "answer") -> str:
    """The prompt for one item.

    Args:
        check: Check value that the verdict must repeat.
        subject: What is judged, a name in :data:`PROMPTS`.
    """
    data = dict(zip(PROMPTS[subject][1], (item.question, list(item.answers), item.prediction), strict=True))
    return _template(subject)["text"].strip().replace("{check}", check).replace("{data}", quoted(data))


def quoted(data: dict[str, Any]) -> str:
    """JSON with chat markers, line breaks and direction marks escaped, so that no string can end early."""

    def safe(value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(safe, value))}]"
        text = json.dumps(value, ensure_ascii=False)
        return "".join(c if c.isprintable() and c not in "<>[]{}" else _escaped(c) for c in text)

    return "{" + ", ".join(f'"{key}": {safe(value)}' for key, value in data.items()) + "}"


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1] if ord(char) > 127 else f"\\u{ord(char):04x}"


def read_reply(reply: str, check: str) -> tuple[float, str] | CallError:
    """(1 or 0, the reason) from a model's reply; a CallError if it contains no verdict with the check value.

    The JSON object may be bare, fenced, quoted as a string, after a <think> block, or within other text; of several the
    last counts. Objects without the check value, such as a repeated prediction, are ignored. The verdict may be quoted,
    or 1 or 0. What is no JSON is read by :func:`_not_json`.
    """
    verdicts = [verdict for text in _readings(reply) if (verdict := _verdict(text, check))]
    if not verdicts:
        return CallError(f"the judge's reply contains no verdict: {reply.strip()[:SHOWN]!r}")
    return verdicts[-1]


def _verdict(text: str, check: str) -> tuple[float, str] | None:
    objects = [(value, end) for value, end in _objects(text) if value.get("check") == check]
    last, end = objects[-1] if objects else ({}, 0)
    later = _not_json(text[end:], check)
    correct = VALUES.get(str(last.get("correct")).strip().lower())
    return later or (None if correct is None else (correct, str(last.get("reason", ""))))


def _not_json(text: str, check: str) -> tuple[float, str] | None:
    """The verdict of an object that is no JSON: quotes in the reason, Python's quotes or words, a comma too many.

    The reason may repeat the prediction, which may hold a verdict of its own. So the judge's verdict stands directly
    after the check value, or else it ends the object and the reply; and no other verdict after the check value differs.
    """
    starts = list(re.finditer(rf"""["']check["']\s*:\s*["']?{re.escape(check)}["']?\s*,\s*""", text))
    rest = text[starts[-1].end() :] if starts else ""
    verdicts = list(_VERDICT.finditer(rest))
    values = {VALUES[verdict[1].lower()] for verdict in verdicts}
    if len(values) != 1 or not (verdicts[0].start() == 0 or _END.fullmatch(rest, verdicts[-1].end())):
        return None
    reason = _REASON.search(rest)
    return values.pop(), reason[1] if reason else ""


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


def _objects(text: str) -> Iterator[tuple[dict[str, Any], int]]:
    """The outermost JSON objects of a text, and where each ends; an object with a repeated key is left out."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeated_keys, strict=False)  # line breaks in a string
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
                yield value, end
        start = text.find("{", end)


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any] | None:
    return dict(pairs) if len({key for key, _ in pairs}) == len(pairs) else None
