"""The base of our benchmarks as lm_eval tasks.

A subclass overrides :meth:`RagTask.download` and sets ``self.dataset = {"test": Dataset, "fewshot": Dataset}``, whose
rows hold ``id``, ``query``, ``time``, ``answers`` and ``corpus`` (and what else slices need); a YAML names it with
``class: !function package.module.Class`` and needs no ``metric_list``. What is here is shared by all: the method's
answer comes with a record (``aux``) that is kept in the document as ``_rag``, and all scores come from the table in
:mod:`lm_eval_rag.harness.scoring`.

Judges (:mod:`lm_eval_rag.harness.scoring.judge.choose`) look at all answers at once, after lm_eval's filters; their
verdicts are kept in the documents as ``_judge``, those on rationales in the record. ``--metadata labels=FILE`` adds
people's labels of answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import Any, ClassVar

from lm_eval.api.task import ConfigurableTask

from lm_eval_rag.harness.common.errors import unknown
from lm_eval_rag.harness.core.record import SYSTEM
from lm_eval_rag.harness.plugin.rows import Rows
from lm_eval_rag.harness.report.cluster_keys import CLUSTERS, Keys, cluster_keys
from lm_eval_rag.harness.scoring import METRICS, score
from lm_eval_rag.harness.scoring.case import GROUNDING, LABEL
from lm_eval_rag.harness.scoring.judge import Item
from lm_eval_rag.harness.scoring.judge.choose import OFF, judges_of, rationale_judges
from lm_eval_rag.harness.scoring.judge.grounding import groundings, rationale_item
from lm_eval_rag.harness.scoring.judge.labels import read_labels
from lm_eval_rag.harness.scoring.judge.panel import Panel, Response
from lm_eval_rag.harness.scoring.judge.preflight import preflight
from lm_eval_rag.harness.scoring.truncate import WHOLE, Cut
from lm_eval_rag.harness.scoring.verdict import VERDICT, Verdict

HEADLINE = "headline"  # the key of a task's metadata that declares these metrics
RECORD = "_rag"  # the key of a document under which the method's record lies


def process_results(doc: Mapping[str, Any], results: list[str]) -> dict[str, float]:
    """Every score that this document can be given; one that cannot be given is absent, never 0."""
    return score(doc, results[0], doc.get(RECORD))


@cache
def compiled(template: str) -> Any:
    """A Jinja template as lm_eval reads it."""
    from lm_eval.utils import env

    return env.from_string(template)


class RagTask(ConfigurableTask):  # type: ignore[misc]
    """A generate_until task whose scores come from our table, each with its mean.

    Attributes:
        headline: The metrics that lm_eval's table and a report show first, in order, where a YAML declares no others
            (``metadata: headline``); a metric that was not scored is left out.
        judge: Name of the judge where the user names none; ``off`` for none.
        crag: Whether CRAG's own rules are in force.
        clusters: The fields by which questions depend on each other, for intervals and tests, where a YAML declares no
            others (``metadata: clusters``, :mod:`lm_eval_rag.harness.report.cluster_keys`); () if they do not.
    """

    headline: ClassVar[tuple[str, ...]] = ("em", "em_contains", "token_f1", "recall@10", "acc_lm", "crag_score")
    judge: ClassVar[str] = OFF
    crag: ClassVar[bool] = False
    clusters: ClassVar[Keys] = ()

    def __init__(self, config: dict[str, Any] | None = None, **kwargs: Any) -> None:
        config = {**(config or {}), "process_results": process_results}
        config.pop("class", None)
        config["metric_list"] = [
            {"metric": name, "aggregation": "mean", "higher_is_better": metric.higher_is_better}
            for name, metric in METRICS.items()
        ]
        declared = {HEADLINE: list(self.headline), CLUSTERS: self.clusters}
        config["metadata"] = {**declared, **(config.get("metadata") or {})}
        config["metadata"][CLUSTERS] = [list(key) for key in cluster_keys(config["metadata"])]
        for name in config["metadata"][HEADLINE]:
            if name not in METRICS:
                raise unknown("metric in metadata: headline,", str(name), METRICS)
        self._judges = judges_of(config.get("metadata"), self.judge)  # a wrong name ends the run before it starts
        self._rationale_judges = rationale_judges(config.get("metadata"), self._judges)
        self._verdicts: dict[Response, Verdict] = {}
        self._groundings: dict[Item, dict[str, Any]] = {}
        file = (config.get("metadata") or {}).get("labels")
        self._labels = {(one.question, one.prediction): one.label for one in read_labels(file)} if file else {}
        super().__init__(config=config, **kwargs)

    def cut(self) -> Cut:
        """How much of an answer its judges look at; called once, when the first answers are judged."""
        return WHOLE

    @cached_property
    def panel(self) -> Panel:
        """The judges with this task's rules; who they are is left in the task's metadata, for the results file."""
        panel = Panel(self._judges, self.cut(), self.crag)
        judges = [{"name": judge.name, "fingerprint": judge.fingerprint} for judge in self._judges]
        self.config.metadata = {**(self.config.metadata or {}), "judges": judges, "cut": panel.cut.name}
        return panel

    @cached_property
    def _test_docs(self) -> Any:
        return _rows(super().test_docs())

    def test_docs(self) -> Any:
        """As lm_eval's, read once."""
        return self._test_docs

    def fewshot_docs(self) -> Any:
        """As lm_eval's; where they are not processed, as references, of which lm_eval keeps a list."""
        docs = _rows(super().fewshot_docs())
        return docs.references() if isinstance(docs, Rows) else docs

    def doc_to_text(self, doc: dict[str, Any], doc_to_text: Any = None) -> Any:
        """As lm_eval's, but a template is compiled once, not for every document."""
        return super().doc_to_text(doc, self._filler(doc_to_text or self.config.doc_to_text))

    def doc_to_target(self, doc: Mapping[str, Any], doc_to_target: Any = None) -> Any:
        """As lm_eval's, but a template is compiled once, and what it gives is a text whatever it looks like."""
        return super().doc_to_target(doc, self._filler(doc_to_target or self.config.doc_to_target))

    @staticmethod
    def resolve_field(doc: dict[str, Any], field: str | None = None) -> Any:
        """As lm_eval's, for the description; a template is compiled once, and a text without one is left as it is."""
        if not field or "{" not in field:
            return doc.get(field, field) if field else None
        return doc[field] if field in doc else compiled(field).render(**doc)

    def _filler(self, template: Any) -> Any:
        """A function that fills in a template, or what was given where that is no template."""
        if self.prompt is not None or not isinstance(template, str) or template in self.features:
            return template
        return lambda doc: compiled(template).render(**doc)

    def fewshot_context(
        self, doc: dict[str, Any], num_fewshot: int, system_instruction: str | None = None, **kwargs: Any
    ) -> Any:
        """As lm_eval's; the system instruction travels in the document, since our models build their own prompts."""
        if system_instruction:
            doc[SYSTEM] = system_instruction
        return super().fewshot_context(doc, num_fewshot, system_instruction=system_instruction, **kwargs)

    def construct_requests(self, doc: dict[str, Any], ctx: str, **kwargs: Any) -> Any:
        """As lm_eval's; the number of shots asked for travels in the document, since our models build their own."""
        if self.config.num_fewshot:
            doc["num_fewshot"] = self.config.num_fewshot
        return super().construct_requests(doc, ctx, **kwargs)

    def build_all_requests(self, **kwargs: Any) -> None:
        """As lm_eval's; a judge that is a model is asked one easy item before, so that a failing one costs nothing."""
        if "bypass" not in self._metric_fn_list:
            preflight(self._judges)
        super().build_all_requests(**kwargs)

    def apply_filters(self) -> Any:
        """As lm_eval's, and then all answers are judged, in one go."""
        filtered = super().apply_filters()
        answered = [
            (instance.doc, answer) for instance in self._instances or () for answer in instance.filtered_resps.values()
        ]
        self._judge(answered)
        self._ground(answered)
        return filtered

    def process_results(self, doc: dict[str, Any], results: list[Any]) -> dict[str, float]:
        """Keep record, verdict and label in the document, then score (or, under ``--predict_only``, do not)."""
        record = getattr(results[0], "aux", None)
        if record is not None:
            doc[RECORD] = record
        self._judge([(doc, results[0])])
        self._ground([(doc, results[0])])
        item = self._item(doc, record) if record and self._groundings else None
        if record and item in self._groundings:
            record[GROUNDING] = self._groundings[item]
        verdict = self._verdicts.get(_response(doc, results[0])) if self._verdicts else None
        if verdict is not None:
            doc[VERDICT] = verdict.record()
        label = self._labels.get((doc.get("query", ""), str(results[0])))
        if label is not None:
            doc[LABEL] = label
        scores: dict[str, float] = super().process_results(doc, results)
        return scores

    def _judge(self, answered: Iterable[tuple[Mapping[str, Any], Any]]) -> None:
        """Judge what was not judged yet; nothing without judges, under ``--predict_only``, and of failed questions."""
        if not self._judges or "bypass" in self._metric_fn_list:
            return
        new = [
            _response(doc, answer)
            for doc, answer in answered
            if isinstance(answer, str) and doc["answers"] and not (getattr(answer, "aux", None) or {}).get("failure")
        ]
        self._verdicts |= self.panel.verdicts([response for response in new if response not in self._verdicts])

    def _item(self, doc: Mapping[str, Any], record: Mapping[str, Any]) -> Item | None:
        """What judges of rationales read of an answer; None for nothing."""
        return rationale_item(doc, record)

    def _ground(self, answered: Iterable[tuple[Mapping[str, Any], Any]]) -> None:
        """Judge the rationales that were not judged yet; nothing without judges of rationales."""
        if not self._rationale_judges or "bypass" in self._metric_fn_list:
            return
        items = [self._item(doc, getattr(answer, "aux", None) or {}) for doc, answer in answered]
        new = [item for item in items if item is not None and item not in self._groundings]
        self._groundings |= groundings(self._rationale_judges, new)


def _rows(docs: Any) -> Any:
    """A dataset as rows that are read once; anything else as it is."""
    return Rows(docs) if hasattr(docs, "to_dict") and hasattr(docs, "features") else docs


def _response(doc: Mapping[str, Any], answer: Any) -> Response:
    record = getattr(answer, "aux", None) or {}
    return Response(doc["query"], tuple(doc["answers"]), str(answer), bool(record.get("abstained")))
