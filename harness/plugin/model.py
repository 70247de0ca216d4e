"""A method as an lm_eval model: ``lm_eval --model rulerag_icl --model_args k=10,generator=hf,gen_pretrained=...``.

The model's arguments are the method's keyword parameters, and beside them: ``generator`` (``tiny``, or any lm_eval
model, whose own arguments are written ``gen_*``), ``chat`` (whether prompts go through the generator's chat template;
by default they do if its tokenizer has one), ``retriever`` (with ``retriever_*``), ``corpus`` (documents in place of
the task's own: a folder or a file), ``kg`` (a knowledge graph in place of the task's own: a folder, or a server's
address), ``extractor`` (what reads web pages), ``journal`` (``off`` or a file), ``max_prompt_tokens``, ``seed``,
``window`` (the most questions in flight), ``trace`` (a file for every step of every question), ``perplexity`` (whether
the log-probability of each answer is asked for, one more call a question), ``prepare_max_calls`` (of the method's
preparation, if it has one).

lm_eval's context is not used: a method builds its prompt from the document's question, so that it can budget passages;
``--system_instruction`` stands before that prompt, as a chat's system message where there is a chat. (On a task that is
not ours the question is lm_eval's context, and the instruction already in it.) Processes share the questions
(:mod:`lm_eval_rag.harness.plugin.ranks`).
"""

from __future__ import annotations

import gc
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from lm_eval.api.model import LM

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.driver import WINDOW
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.parameters import defaults
from lm_eval_rag.harness.core.record import (
    SYSTEM,
    RagText,
    counts_of,
    deepest,
    predicted,
    record,
    share_depth,
    share_predicted,
)
from lm_eval_rag.harness.core.types import Answer, Query, Trace
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.plugin.engine import Engine
from lm_eval_rag.harness.plugin.ranks import Ranks, launched_rank, ranks
from lm_eval_rag.harness.plugin.requests import decoding_of, first_places, queries_of
from lm_eval_rag.harness.plugin.run_warnings import warn_of_all, warn_of_cuts, warn_of_fallbacks, warn_of_kept
from lm_eval_rag.harness.plugin.trace_file import TraceFile
from lm_eval_rag.harness.plugin.training_warnings import warn_of_training
from lm_eval_rag.harness.plugin.unscored import tell

log = logging.getLogger(__name__)
PREPARATION = "preparation"  # stands in a trace where the task does
NEW_OBJECTS = 10_000  # between two searches for unreachable cycles; with Python's own they are a sixth of a large run


class RagLM(LM):  # type: ignore[misc]
    """The model class that :func:`model_class` fills with a method.

    Attributes:
        counts: Questions, served asks and notes of the last run, by name; of all processes on rank 0, else of this one.
        unscored: Ids of the questions that failed in the last run; of all processes on rank 0, else none.
        prepared: What the products of the method's preparation cost, by its name; {} if it has none.
    """

    name = ""
    method: Callable[..., Any]

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        if 0 < gc.get_threshold()[0] < NEW_OBJECTS:
            gc.set_threshold(NEW_OBJECTS)
        self.setup = read_arguments(*self._method_of(arguments), arguments)
        self.generator = self.setup.generator
        self._begin_record()

    @classmethod
    def _method_of(cls, arguments: dict[str, Any]) -> tuple[str, Callable[..., Any]]:
        """The method and what its runs are known by."""
        return cls.name, cls.method

    @classmethod
    def create_from_arg_obj(cls, arg_dict: dict[str, Any], additional_config: dict[str, Any] | None = None) -> RagLM:
        """As lm_eval's; leaves a ``path`` in the arguments, after which lm_eval names the model and the results folder.

        It begins with an organization, as names of models do on the Hub: programs that read results ask for one.
        """
        model: RagLM = super().create_from_arg_obj(arg_dict, additional_config)
        arguments = "-".join(f"{key}_{value}" for key, value in sorted(arg_dict.items()) if key != "path")
        arg_dict.setdefault("path", f"lm-eval-rag/{cls.name}-{arguments}"[:92] + f"-{model.setup.fingerprint[:8]}")
        return model

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """Answer every request's question; each answer carries its record."""
        self._begin_record()
        queries = queries_of(requests)
        warn_of_training(self.setup, [query.corpus for query in queries])
        first = first_places(requests, queries)
        groups: dict[str, list[int]] = defaultdict(list)  # questions with the same decoding, shots and instruction
        for i in sorted(set(first)):
            request = requests[i]
            how = [request.args[1], request.doc.get("num_fewshot", 0), request.doc.get(SYSTEM)]
            groups[json.dumps(how, sort_keys=True)].append(i)
        system = next((request.doc[SYSTEM] for request in requests if SYSTEM in request.doc), None)
        self.generator.system = system
        tasks = {id(query): request.task_name for query, request in zip(queries, requests, strict=True)}
        answers: dict[int, RagText] = {}
        journal = self.setup.open_journal(launched_rank())
        held = len(journal)  # replies of earlier runs
        try:
            with TraceFile(self.setup.trace_path(launched_rank())) as trace_file:

                def keep(query: Query, answer: Answer, trace: Trace) -> RagText:
                    trace_file.write(tasks[id(query)], query, trace)
                    return RagText(answer.text, record(answer, trace, self.generator.spec.prices))

                engine = self._engine(journal, self._gold(requests, queries), trace_file)
                for key, positions in groups.items():
                    options, shots, self.generator.system = json.loads(key)
                    method, asked = self._with_shots(shots), [queries[i] for i in positions]
                    texts = engine.run(method, asked, decoding=decoding_of(options), name=self.name, keep=keep)
                    answers |= zip(positions, texts, strict=True)
        finally:
            self.generator.system = system
            journal.close()
        self._score_alike(requests, answers)
        self._count([(queries[i].id, answer.aux) for i, answer in answers.items()])
        if self.generator.spec.is_api:
            warn_of_kept(held, self.counts["journalled"])
        return [answers[i] for i in first]

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Refused: a method answers questions."""
        raise UserError(
            f"{self.name} answers questions; this task asks for log-likelihoods. Take a task whose output_type is "
            "generate_until, or a stock model."
        )

    loglikelihood_rolling = loglikelihood

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """Notes that prompts go through the generator's chat template; the method's own prompt is what it is given."""
        self._chat()
        return "\n".join(message["content"] for message in chat_history)

    def chat_template(self, chat_template: bool | str = False) -> str:
        """The template is the generator's; noted here, applied there."""
        if chat_template:
            self._chat()
        return ""

    def _chat(self) -> None:
        if self.generator.asked_chat is False:
            raise UserError("chat=False and --apply_chat_template contradict each other. Leave one of them out.")
        self.generator.chat = True

    @property
    def tokenizer_name(self) -> str:
        """Tells lm_eval's request cache our models apart."""
        return self.setup.fingerprint

    @cached_property
    def ranks(self) -> Ranks:
        """The processes that share the questions."""
        return ranks(tensor_parallel="tp_plan" in self.generator.spec.arguments)

    @property
    def rank(self) -> int:
        """Which of the processes this is."""
        return self.ranks.rank

    @property
    def world_size(self) -> int:
        """How many processes share the questions."""
        return self.ranks.world_size

    @property
    def device(self) -> Any:
        """Where the tensors lie that lm_eval gathers."""
        return self.ranks.device

    def all_gather(self, tensor: Any) -> Any:
        """The tensors of all processes."""
        return self.ranks.all_gather(tensor)

    def gather_object(self, obj: Any, dst: int = 0) -> Any:
        """The objects of all processes, on one of them."""
        return self.ranks.gather_object(obj, dst)

    def barrier(self) -> None:
        """Wait for all processes."""
        self.ranks.barrier()

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
        path = self.setup.journal_path(launched_rank())
        return {
            "rag": {
                **self.setup.identity(),
                "fingerprint": self.setup.fingerprint,
                "generator": self.generator.spec.identity if generates else None,
                "prompt_form": str(self.generator.form) if generates else None,
                "system_instruction": self.generator.system,
                "indexes": self.setup.corpora.identity(),
                "pages": dict(sorted(self.setup.corpora.reading.notes.items())),
                "journal": str(path) if path else None,
                "preparations": self.prepared,
                "counts": Counter(self.counts),
                "unscored": list(self.unscored),
            }
        }

    def _engine(
        self, journal: Journal, gold: Mapping[tuple[str | None, str], list[str]], trace_file: TraceFile
    ) -> Engine:
        setup = self.setup
        return Engine(
            setup.corpora,
            self.generator,
            journal,
            setup.max_prompt_tokens,
            gold,
            setup.kg,
            max(setup.window or WINDOW, 1 if setup.window else 2 * self.generator.spec.width),
            self.generator.spec.prices,
            setup.prepare_max_calls,
            lambda query, step: trace_file.write(PREPARATION, query, Trace((step,))),
            self.prepared,
        )

    def _with_shots(self, shots: int) -> Callable[..., Any]:
        """The method with lm_eval's ``--num_fewshot``, unless ``shots=`` says otherwise."""
        if shots and "shots" not in defaults(self.setup.method):
            log.warning("%s takes no worked examples; --num_fewshot %d is not used.", self.name, shots)
            shots = 0
        return self.setup.bound(shots=shots) if shots else self.setup.bound()

    def _gold(self, requests: Sequence[Any], queries: Sequence[Query]) -> Mapping[tuple[str | None, str], list[str]]:
        if self.setup.parameters.get("rules") != "oracle":
            return {}
        return {
            (query.corpus, query.id): list(request.doc.get("answers", []))
            for query, request in zip(queries, requests, strict=True)
        }

    def _begin_record(self) -> None:
        self.counts = Counter(questions=0, unscored=0, calls=0, journalled=0)
        self.unscored: list[str] = []
        self.prepared: dict[str, Any] = {}

    def _score_alike(self, requests: Sequence[Any], answers: Mapping[int, RagText]) -> None:
        """Score all questions of a task at the same k, and by evidence all or none, whichever process answered them."""
        records: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for i, answer in answers.items():
            records[requests[i].task_name].append(answer.aux)
        told = self.ranks.share({task: (deepest(of_task), predicted(of_task)) for task, of_task in records.items()})
        for task, of_task in records.items():
            of_ranks = [one[task] for one in told if task in one]
            share_depth(of_task, max(depth for depth, _ in of_ranks))
            share_predicted(of_task, frozenset[str]().union(*(names for _, names in of_ranks)))

    def _count(self, records: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Add up what was done and what failed; rank 0, which alone writes and ends the run, does so for all ranks."""
        done = Counter(questions=len(records))
        failed = [id for id, aux in records if aux["failure"]]
        done["unscored"] = len(failed)
        for id, aux in records:
            for name, n in counts_of(aux):
                done[name] += n
            if aux["failure"]:
                log.warning("Question %s stays unscored: %s", id, aux["failure"])
        warn_of_cuts(records)
        warn_of_all(self.name, records)
        warn_of_fallbacks(records)
        if self.generator.system and not {"Generate", "Loglikelihood"} & set(done):
            log.warning("%s asked no generator; --system_instruction is not used.", self.name)
        for counts, ids in self.ranks.gather_object((done, failed)) or [(done, [])]:
            self.counts.update(counts)
            self.unscored.extend(ids)
            tell(ids)


def model_class(name: str, method: Callable[..., Any]) -> type[RagLM]:
    """The lm_eval model class of a method."""
    body = {"name": name, "method": staticmethod(method), "__doc__": method.__doc__, "__module__": __name__}
    return type(name, (RagLM,), body)
