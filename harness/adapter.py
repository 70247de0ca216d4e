"""A method as an lm_eval model: ``lm_eval --model rulerag_icl --model_args k=10,generator=hf,gen_pretrained=...``.

The model's arguments are the method's keyword parameters, and beside them: ``generator`` (``tiny``, or any lm_eval
model, whose own arguments are written ``gen_*``), ``retriever`` (with ``retriever_*``), ``corpus`` (a JSON-lines file
in place of the task's own), ``journal`` (``off`` or a file), ``max_prompt_tokens``, ``seed``. lm_eval's context is not
used: a method builds its prompt from the document's question, so that it can budget passages.
"""

from __future__ import annotations

import json
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lm_eval.api.model import LM

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.corpus import corpus_from_jsonl
from lm_eval_rag.harness.errors import UserError, at_least, unknown
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.build import TINY, ModelSpec
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.journal import Journal, digest
from lm_eval_rag.harness.parameters import bind, defaults
from lm_eval_rag.harness.paths import cache_dir
from lm_eval_rag.harness.prompts import load_template
from lm_eval_rag.harness.record import RagText, record
from lm_eval_rag.harness.retrieval import RETRIEVERS
from lm_eval_rag.harness.run import Engine
from lm_eval_rag.harness.types import Query, Trace

log = logging.getLogger(__name__)
OTHERS = ("generator", "gen_*", "retriever", "retriever_*", "corpus", "journal", "max_prompt_tokens", "seed")
MAX_GEN_TOKS = 256  # lm_eval's own, for tasks that say nothing
unscored: list[str] = []  # ids of the questions that failed in this process; the command line's exit code tells of them


class RagLM(LM):  # type: ignore[misc]
    """The model class that :func:`model_class` fills with a method."""

    name = ""
    method: Callable[..., Any]

    def __init__(
        self,
        *,
        generator: str = TINY,
        retriever: str = "bm25",
        corpus: str | None = None,
        journal: str | None = None,
        max_prompt_tokens: int | None = None,
        seed: int = 0,
        batch_size: int | str | None = None,
        device: str | None = None,
        max_batch_size: int | None = None,
        path: str | None = None,
        **given: Any,
    ) -> None:
        super().__init__()
        generation = {key[4:]: value for key, value in given.items() if key.startswith("gen_")}
        retrieval = {key[10:]: value for key, value in given.items() if key.startswith("retriever_")}
        own = {k: v for k, v in given.items() if not k.startswith(("gen_", "retriever_"))}
        if retriever not in RETRIEVERS:
            raise unknown("retriever", retriever, RETRIEVERS)
        if max_prompt_tokens is not None:
            at_least("max_prompt_tokens", max_prompt_tokens)
        self.parameters = own
        self._bound = bind(type(self).method, own, OTHERS)
        if own.get("prompt_file"):
            load_template(own["prompt_file"])
        spec = ModelSpec(generator, generation, _batch_size(generator, batch_size), device)
        spec.check()
        self.generator = LMGenerator(spec, seed=seed)
        self.corpora = Corpora(retriever, retrieval, corpus_from_jsonl(corpus) if corpus else None)
        self.max_prompt_tokens = max_prompt_tokens
        self.journal_given = journal
        self.journal_path: Path | None = None
        self.counts = {"questions": 0, "unscored": 0, "calls": 0, "journalled": 0}

    @classmethod
    def create_from_arg_obj(cls, arg_dict: dict[str, Any], additional_config: dict[str, Any] | None = None) -> RagLM:
        """As lm_eval's; leaves a ``path`` in the arguments, after which lm_eval names the results folder."""
        made: RagLM = super().create_from_arg_obj(arg_dict, additional_config)
        told = "-".join(f"{key}_{value}" for key, value in sorted(arg_dict.items()) if key != "path")
        arg_dict.setdefault("path", f"{cls.name}-{told}"[:80] + f"-{made.fingerprint()[:8]}")
        return made

    def fingerprint(self) -> str:
        """Hash of all that the answers depend on, but for the corpora, which have fingerprints of their own."""
        return digest(self._identity())

    def _identity(self) -> dict[str, Any]:
        files = {key: _file_digest(value) for key, value in self.parameters.items() if _is_file(value)}
        given = self.corpora.given
        return {
            "method": self.name,
            "parameters": {**defaults(type(self).method), **self.parameters},
            "files": files,
            "generator": self.generator.fingerprint,
            "retriever": [self.corpora.retriever, dict(self.corpora.options)],
            "corpus": given.fingerprint if given else None,
            "max_prompt_tokens": self.max_prompt_tokens,
            "versions": {name: version(name) for name in ("lm-eval-rag", "lm_eval")},
        }

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """Answer every request's question; each answer carries its record."""
        queries = [_query(request) for request in requests]
        answers: dict[int, RagText] = {}
        groups: dict[str, list[int]] = defaultdict(list)
        for i, request in enumerate(requests):
            groups[json.dumps([request.args[1], request.doc.get("num_fewshot", 0)], sort_keys=True)].append(i)
        journal = self._journal()
        try:
            for key, positions in groups.items():
                options, shots = json.loads(key)
                engine = Engine(
                    self.corpora, self.generator, journal, self.max_prompt_tokens, self._gold(requests, queries)
                )
                results = engine.run(
                    self._with_shots(shots),
                    [queries[i] for i in positions],
                    decoding=_decoding(options),
                    name=self.name,
                )
                for i, (answer, trace) in zip(positions, results, strict=True):
                    self._count(queries[i], trace)
                    answers[i] = RagText(answer.text, record(answer, trace))
        finally:
            journal.close()
        return [answers[i] for i in range(len(requests))]

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Refused: a method answers questions."""
        raise UserError(
            f"{self.name} answers questions; this task asks for log-likelihoods. Take a task whose output_type is "
            "generate_until, or a stock model."
        )

    loglikelihood_rolling = loglikelihood

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """Notes that prompts go through the generator's chat template; the method's own prompt is what it is given."""
        self.generator.chat = True
        return "\n".join(message["content"] for message in chat_history)

    def chat_template(self, chat_template: bool | str = False) -> str:
        """The template is the generator's; noted here, applied there."""
        self.generator.chat = self.generator.chat or bool(chat_template)
        return ""

    @property
    def tokenizer_name(self) -> str:
        """Tells lm_eval's request cache our models apart."""
        return self.fingerprint()

    def set_cache_hook(self, cache_hook: Any) -> None:
        """Refuses ``--use_cache``, whose keys would mix models."""
        if cache_hook.dbdict is not None:
            raise UserError(
                "--use_cache is refused with this model: its keys hold no model, so answers of different methods would "
                "mix. Finished calls are kept by the journal already (journal=PATH to choose where, journal=off)."
            )

    def get_model_info(self) -> dict[str, Any]:
        """What produced the results, for the results file."""
        generates = "Generate" in self.counts or "Loglikelihood" in self.counts
        return {
            "rag": {
                **self._identity(),
                "fingerprint": self.fingerprint(),
                "generator": self.generator.spec.identity if generates else None,
                "indexes": self.corpora.identity(),
                "journal": str(self.journal_path) if self.journal_path else None,
                "counts": self.counts,
            }
        }

    def _journal(self) -> Journal:
        name = self.fingerprint()
        if self.journal_given == "off":
            return Journal(None)
        rank = int(os.environ.get("RANK", "0"))
        path = Path(self.journal_given or cache_dir() / "journal" / f"{name[:16]}.sqlite")
        self.journal_path = path.with_name(f"{path.stem}.rank{rank}{path.suffix}") if rank else path
        return Journal(self.journal_path, name)

    def _with_shots(self, shots: int) -> Callable[..., Any]:
        """The method with lm_eval's ``--num_fewshot``, unless ``shots=`` says otherwise."""
        if not shots or "shots" in self.parameters:
            return self._bound
        if "shots" not in defaults(type(self).method):
            log.warning("%s takes no worked examples; --num_fewshot %d is not used.", self.name, shots)
            return self._bound
        return partial(self._bound, shots=shots)

    def _gold(self, requests: Sequence[Any], queries: Sequence[Query]) -> Mapping[tuple[str | None, str], list[str]]:
        if self.parameters.get("rules") != "oracle":
            return {}
        return {
            (query.corpus, query.id): list(request.doc.get("answers", []))
            for query, request in zip(queries, requests, strict=True)
        }

    def _count(self, query: Query, trace: Trace) -> None:
        self.counts["questions"] += 1
        for step in trace.steps:
            self.counts[step.ask] = self.counts.get(step.ask, 0) + 1
            self.counts["calls"] += 1
            self.counts["journalled"] += step.journalled
        if trace.failure:
            self.counts["unscored"] += 1
            unscored.append(query.id)
            log.warning("Question %s stays unscored: %s", query.id, trace.failure)


def model_class(name: str, method: Callable[..., Any]) -> type[RagLM]:
    """The lm_eval model class of a method."""
    return type(name, (RagLM,), {"name": name, "method": staticmethod(method), "__doc__": method.__doc__})


def _query(request: Any) -> Query:
    """The question of a request; of a task that is not ours, its context is the question. No gold answer goes along."""
    doc = request.doc
    if "query" in doc and "id" in doc:
        return Query(str(doc["id"]), doc["query"], doc.get("time"), doc.get("corpus"))
    return Query(f"{request.task_name}/{request.doc_id}", request.args[0])


def _decoding(options: Mapping[str, Any]) -> Decoding:
    unused = sorted(set(options) - {"until", "max_gen_toks", "do_sample", "temperature"})
    if unused:
        log.warning("Generation arguments that methods do not use: %s.", ", ".join(unused))
    until = options.get("until") or ["\n"]
    return Decoding(
        max_tokens=int(options.get("max_gen_toks", MAX_GEN_TOKS)),
        stop=(until,) if isinstance(until, str) else tuple(until),
        temperature=float(options.get("temperature", 0.0)) if options.get("do_sample", True) else 0.0,
    )


def _batch_size(generator: str, given: int | str | None) -> int | str | None:
    """lm_eval's default is 1, which the embedded generator need not suffer."""
    if isinstance(given, str) and given.isdigit():
        given = int(given)
    return None if given in (None, 1) and generator == TINY else given or 1


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and Path(value).is_file()


def _file_digest(path: str) -> str:
    return digest(Path(path).read_text(encoding="utf-8", errors="replace"))
