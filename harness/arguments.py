"""What the arguments of a model say: the method with its parameters, the generator, the retriever, the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.corpus import corpus_from_jsonl
from lm_eval_rag.harness.errors import at_least, unknown
from lm_eval_rag.harness.generators.build import TINY, ModelSpec
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.journal import Journal, digest
from lm_eval_rag.harness.parameters import bind, defaults
from lm_eval_rag.harness.paths import cache_dir
from lm_eval_rag.harness.prompts import load_template
from lm_eval_rag.harness.retrieval import RETRIEVERS

OURS = ("generator", "retriever", "corpus", "journal", "max_prompt_tokens", "seed")
LM_EVALS = ("batch_size", "max_batch_size", "device", "path")  # lm_eval adds these by itself


@dataclass(frozen=True)
class Setup:
    """A method made ready to run, and what it runs with.

    Args:
        name: Of the method.
        method: Its generator function.
        parameters: Those of its parameters that were given.
        generator: The language model; it is built when first needed.
        corpora: The retriever, over the tasks' corpora or the one given.
        max_prompt_tokens: The most tokens of a prompt, or None.
        journal: ``off``, a path, or None for a file named after the fingerprint.
    """

    name: str
    method: Callable[..., Any]
    parameters: Mapping[str, Any]
    generator: LMGenerator
    corpora: Corpora
    max_prompt_tokens: int | None = None
    journal: str | None = None

    @property
    def fingerprint(self) -> str:
        """Hash of all that the answers depend on, but for the tasks' corpora, which have fingerprints of their own."""
        return digest(self.identity())

    def identity(self) -> dict[str, Any]:
        """What the fingerprint is of."""
        given = self.corpora.given
        return {
            "method": self.name,
            "parameters": {**defaults(self.method), **self.parameters},
            "files": self._files,
            "generator": self.generator.fingerprint,
            "retriever": [self.corpora.retriever, dict(self.corpora.options)],
            "corpus": given.fingerprint if given else None,
            "max_prompt_tokens": self.max_prompt_tokens,
            "versions": {name: version(name) for name in ("lm-eval-rag", "lm_eval")},
        }

    def bound(self, **others: Any) -> Callable[..., Any]:
        """The method with its parameters, and ``others`` for those that were not given."""
        return bind(self.method, {**others, **self.parameters})

    def journal_path(self, rank: int) -> Path | None:
        """The journal's file, one a rank; None when it is off."""
        if self.journal == "off":
            return None
        path = Path(self.journal or cache_dir() / "journal" / f"{self.fingerprint[:16]}.sqlite")
        return path.with_name(f"{path.stem}.rank{rank}{path.suffix}") if rank else path

    def open_journal(self, rank: int = 0) -> Journal:
        """The journal, opened."""
        return Journal(self.journal_path(rank), self.fingerprint)

    @cached_property
    def _files(self) -> dict[str, str]:
        """Content hash of each file that a parameter names."""
        named = {key: Path(value) for key, value in self.parameters.items() if isinstance(value, str)}
        return {key: digest(path.read_bytes().hex()) for key, path in named.items() if path.is_file()}


def read_arguments(name: str, method: Callable[..., Any], given: Mapping[str, Any]) -> Setup:
    """Read ``--model_args`` and what lm_eval adds to them.

    Raises:
        UserError: An unknown argument, a value of another type or out of range, or a file that is missing.
    """
    generation = {key[4:]: value for key, value in given.items() if key.startswith("gen_")}
    retrieval = {key[10:]: value for key, value in given.items() if key.startswith("retriever_")}
    rest = {key: value for key, value in given.items() if not key.startswith(("gen_", "retriever_"))}
    seed = at_least("seed", rest.get("seed", 0), 0)
    own = {key: value for key, value in rest.items() if key not in (*OURS, *LM_EVALS)}
    if "seed" in rest and "seed" in defaults(method):
        own["seed"] = seed
    bind(method, own, (*OURS, "gen_*", "retriever_*"))
    if own.get("prompt_file"):
        load_template(own["prompt_file"])
    retriever = rest.get("retriever", "bm25")
    if retriever not in RETRIEVERS:
        raise unknown("retriever", retriever, RETRIEVERS)
    if rest.get("max_prompt_tokens") is not None:
        at_least("max_prompt_tokens", rest["max_prompt_tokens"])
    generator = rest.get("generator", TINY)
    spec = ModelSpec(generator, generation, _batch_size(generator, rest.get("batch_size")), rest.get("device"))
    spec.check()
    corpus = corpus_from_jsonl(rest["corpus"]) if rest.get("corpus") else None
    return Setup(
        name=name,
        method=method,
        parameters=own,
        generator=LMGenerator(spec, seed=seed),
        corpora=Corpora(retriever, retrieval, corpus),
        max_prompt_tokens=rest.get("max_prompt_tokens"),
        journal=rest.get("journal"),
    )


def _batch_size(generator: str, given: int | str | None) -> int | str | None:
    """lm_eval's default is 1, which the embedded generator need not suffer."""
    if isinstance(given, str) and given.isdigit():
        given = int(given)
    return None if given in (None, 1) and generator == TINY else given or 1
