"""What the arguments of a model say: the method with its parameters, the generator, the retriever, the journal."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.backends.page_reading import Reading
from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.contract import check_method
from lm_eval_rag.harness.core.journal import Journal, digest
from lm_eval_rag.harness.core.parameters import bind, check, deciding, defaults, preset_of
from lm_eval_rag.harness.core.prompts import read_prompt_file
from lm_eval_rag.harness.documents.intake import as_corpus
from lm_eval_rag.harness.generators.fit import check_version
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import EMBEDDED, TINY, ModelSpec
from lm_eval_rag.harness.kg import KnowledgeGraph, open_graph
from lm_eval_rag.harness.plugin.answer_likelihood import with_likelihood
from lm_eval_rag.harness.plugin.shared_arguments import OWN
from lm_eval_rag.harness.plugin.trace_file import beside_samples
from lm_eval_rag.harness.retrieval import RETRIEVERS
from lm_eval_rag.harness.web.extract import EXTRACTORS
from lm_eval_rag.harness.web.reader import DEFAULT

log = logging.getLogger(__name__)
OURS = tuple(OWN)
TEXTS = ("generator", "retriever", "corpus", "journal", "kg", "extractor", "trace")  # those of OURS that are texts
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
        kg: The knowledge graph in place of the tasks' own, or None; a task without one stays without.
        window: The most questions in flight; None for the default.
        trace: A file for every step of every question; None writes none.
        perplexity: Whether the log-probability of each answer is asked for.
        prepare_max_calls: The most calls of the method's preparation; None for the default.
    """

    name: str
    method: Callable[..., Any]
    parameters: Mapping[str, Any]
    generator: LMGenerator
    corpora: Corpora
    max_prompt_tokens: int | None = None
    journal: str | None = None
    kg: KnowledgeGraph | None = None
    window: int | None = None
    trace: str | None = None
    perplexity: bool = False
    prepare_max_calls: int | None = None

    @property
    def fingerprint(self) -> str:
        """Hash of all that the answers depend on, but for the tasks' corpora, which have fingerprints of their own."""
        identity = self.identity()
        return digest({**identity, "parameters": deciding(self.method, identity["parameters"])})

    def identity(self) -> dict[str, Any]:
        """What the fingerprint is of, and the parameters that change no answer."""
        given = self.corpora.given
        return {
            "method": self.name,
            "parameters": {**defaults(self.method), **self.parameters},
            "files": self._files,
            "generator": self.generator.fingerprint,
            "retriever": [self.corpora.retriever, dict(self.corpora.options)],
            "corpus": given.fingerprint if given else None,
            "kg": self.kg.fingerprint if self.kg else None,
            "extractor": self.corpora.reading.extractor,
            "max_prompt_tokens": self.max_prompt_tokens,
            "versions": {name: version(name) for name in ("lm-eval-rag", "lm_eval")},
        }

    def bound(self, **others: Any) -> Callable[..., Any]:
        """The method with its parameters, and ``others`` for those that were not given."""
        method = bind(self.method, {**others, **self.parameters})
        return with_likelihood(method) if self.perplexity else method

    def journal_path(self, rank: int) -> Path | None:
        """The journal's file, one a rank; None when it is off."""
        if self.journal == "off":
            return None
        return _of_rank(Path(self.journal or cache_dir() / "journal" / f"{self.fingerprint[:16]}.sqlite"), rank)

    def trace_path(self, rank: int) -> Path | None:
        """The file of the trace, one a rank; None where none is wanted."""
        path = Path(self.trace) if self.trace else beside_samples.get()
        return _of_rank(path, rank) if path else None

    def open_journal(self, rank: int = 0) -> Journal:
        """The journal, opened."""
        return Journal(self.journal_path(rank), self.fingerprint)

    @cached_property
    def _files(self) -> dict[str, str]:
        """Content hash of each file that a parameter names, as ``FILE`` or ``FILE.py:NAME``."""
        texts = {key: value for key, value in self.parameters.items() if isinstance(value, str)}
        named = {key: Path(re.sub(r"(?<=\.py):\w+$", "", value)) for key, value in texts.items()}
        return {key: digest(path.read_bytes().hex()) for key, path in named.items() if path.is_file()}


def read_arguments(name: str, method: Callable[..., Any], given: Mapping[str, Any]) -> Setup:
    """Read ``--model_args`` and what lm_eval adds to them.

    Raises:
        UserError: A method that breaks its contract, an unknown argument, a value of another type or out of range, or a
            file that is missing.
    """
    check_method(method)
    given = _joined(given)
    _check_texts(given)
    given = {**_local(given), **given}
    given = {**preset_of(method, given), **given}
    generation = {key[4:]: value for key, value in given.items() if key.startswith("gen_")}
    retrieval = {key[10:]: value for key, value in given.items() if key.startswith("retriever_")}
    rest = {key: value for key, value in given.items() if not key.startswith(("gen_", "retriever_"))}
    seed = at_least("seed", rest.get("seed", 0), 0)
    own = {key: value for key, value in rest.items() if key not in (*OURS, *LM_EVALS)}
    if "seed" in rest and "seed" in defaults(method):
        own["seed"] = seed
    bind(method, own, (*OURS, "gen_*", "retriever_*"))
    retriever = rest.get("retriever", "bm25")
    if retriever not in RETRIEVERS:
        raise unknown("retriever", retriever, RETRIEVERS)
    for limit, lowest in (("max_prompt_tokens", 1), ("window", 1), ("prepare_max_calls", 0)):
        if rest.get(limit) is not None:
            at_least(limit, rest[limit], lowest)
    generator = rest.get("generator", TINY)
    spec = ModelSpec(generator, generation, _batch_size(generator, rest.get("batch_size")), rest.get("device"))
    spec.check()
    if "generator" in getattr(method, "runs_with", {}):  # it does nothing without one
        spec.check_packages()
    own |= _omitted(method, own, spec)
    if own.get("prompt_file") and own.get("answer_style", "free") == "free":  # other styles are other versions
        _check_prompts(own["prompt_file"], spec.note.prompt if spec.note else None)
    corpus = as_corpus(rest.get("corpus"))
    return Setup(
        name=name,
        method=method,
        parameters=own,
        generator=LMGenerator(spec, chat=_chat(rest.get("chat"), spec), seed=seed),
        corpora=Corpora(retriever, retrieval, corpus, Reading(_extractor(rest.get("extractor", DEFAULT)))),
        max_prompt_tokens=rest.get("max_prompt_tokens"),
        journal=rest.get("journal"),
        kg=open_graph(rest["kg"]) if rest.get("kg") else None,
        window=rest.get("window"),
        trace=rest.get("trace"),
        perplexity=_yes_or_no("perplexity", rest.get("perplexity", False)),
        prepare_max_calls=rest.get("prepare_max_calls"),
    )


def _joined(given: Mapping[str, Any]) -> dict[str, Any]:
    """``gen_base_url=URL,URL`` whole again: lm_eval's reader of texts splits at commas."""
    urls = [key for key, value in given.items() if key.startswith(("http://", "https://")) and value in ("", None)]
    rest = {key: value for key, value in given.items() if key not in urls}
    if urls and isinstance(rest.get("gen_base_url"), str):
        rest["gen_base_url"] = ",".join([rest["gen_base_url"], *urls])
        return rest
    return dict(given)


def _check_texts(given: Mapping[str, Any]) -> None:
    """Raise a UserError for an argument of ours that is no text or empty, and for lm_eval's ``--trust_remote_code``."""
    for name in TEXTS:
        check(name, given.get(name), str | None)
        if given.get(name) == "":
            raise UserError(f"{name}= is empty: give it a value, or leave it out for the default.")
    if "trust_remote_code" in given:
        raise UserError(
            "--trust_remote_code is refused: a method loads no code. If the checkpoint of the generator brings its own "
            "code and you trust it, give --model_args gen_trust_remote_code=True."
        )


def _check_prompts(path: str, tuned: str | None) -> None:
    """Raise unless the file can be read, and its version, where it names one, is that which the generator knows."""
    version = read_prompt_file(path).get("version")
    if isinstance(version, str):
        check_version(version, tuned)


def _of_rank(path: Path, rank: int) -> Path:
    return path.with_name(f"{path.stem}.rank{rank}{path.suffix}") if rank else path


def _yes_or_no(name: str, given: Any) -> bool:
    check(name, given, bool)
    return bool(given)


def _chat(given: Any, spec: ModelSpec) -> bool | None:
    check("chat", given, bool | None)
    if given is False and spec.is_chat_api:
        raise UserError(f"chat=False is not possible with generator={spec.name}, which takes messages. Leave it out.")
    return cast("bool | None", given)


def _extractor(name: str) -> str:
    if name not in EXTRACTORS:
        raise unknown("extractor", name, EXTRACTORS)
    return name


def _local(given: Mapping[str, Any]) -> dict[str, str]:
    """A checkpoint that is given without ``generator=`` is one for lm_eval's ``hf``."""
    return {"generator": "hf"} if {"gen_pretrained", "gen_peft"} & set(given) else {}


def _omitted(method: Callable[..., Any], own: Mapping[str, Any], spec: ModelSpec) -> dict[str, int]:
    """A generator that was tuned without rules (SSFT) is given none, unless the user says otherwise."""
    if spec.note is None or spec.note.mode != "ssft" or "n_rules" not in defaults(method):
        return {}
    if own.get("guide") == "retrieval":  # its prompt has no rule
        return {}
    if own.get("n_rules", 0):
        log.warning("The generator was tuned without rules (ssft); n_rules=%s gives it some.", own["n_rules"])
    return {} if "n_rules" in own else {"n_rules": 0}


def _batch_size(generator: str, given: int | str | None) -> int | str | None:
    """What ``--batch_size`` says; embedded generators override batch size 1, lm_eval's default, and vLLM does too.

    ``auto`` is the default for the embedded generators; for others lm_eval finds the largest that fits.
    """
    if isinstance(given, str) and given.lstrip("-").isdigit():
        given = int(given)
    automatic = isinstance(given, str) and re.fullmatch(r"auto(:\d+)?", given) is not None
    if not automatic and given is not None and (isinstance(given, str) or given < 1):
        raise UserError(f"--batch_size {given} is not allowed: give a whole number of 1 or more, or auto.")
    if automatic:
        return None if generator in EMBEDDED else given
    if given in (None, 1):
        return None if generator in EMBEDDED else "auto" if generator == "vllm" else 1
    return given
