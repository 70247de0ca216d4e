"""RuleQA as lm_eval tasks; the corpus folder is built when a task is first loaded."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, ClassVar

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.plugin.task import RagTask
from lm_eval_rag.harness.report.cluster_keys import Keys
from lm_eval_rag.tasks.ruleqa.natural import NATURAL, worded
from lm_eval_rag.tasks.ruleqa.specs import spec_of

VARIANTS = {"_hard": "in_hard", "_dense": "in_dense"}  # suffix of a task's name -> column of its questions
COLUMNS = ["id", "query", "subject", "relation", "time", "answers", "slice", "popularity", "corpus"]
SLICES = ("rule_confidence", "subject_documents", "change", "seen")  # in a document if its set has the column


class RuleQATask(RagTask):
    """``ruleqa_i`` and so on; ``_hard`` has all rule_required questions of the test part, ``_fresh`` invented names,
    ``_natural`` questions in English. ``_dense`` has all questions of the test part whose subject has more than 10
    documents.

    The task's name selects the set. A user's YAML that includes one of ours may set ``dataset_kwargs`` to the arguments
    of :func:`lm_eval_rag.tasks.ruleqa.build.build` (``corpus: train_valid``, ``seed: 1``, ``inverse: true``), or to a
    published set (``dataset: ORG/NAME@revision``). On the command line, use
    ``--metadata '{"dataset": "ORG/NAME@revision"}'``. The results file then has the commit.
    """

    # The questions of a subject share documents; rules act by relation.
    clusters: ClassVar[Keys] = (("subject",), ("relation",))

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Fill ``self.dataset`` with the questions (test) and F_G (fewshot)."""
        name = str(self.config.task)
        task = name.removesuffix(NATURAL)
        suffix = next((suffix for suffix in VARIANTS if task.endswith(suffix)), "")
        corpus = self._corpus(task.removesuffix(suffix), dict(dataset_kwargs or {}))
        if name.endswith(NATURAL):
            corpus = worded(name, spec_of(task).graph, corpus)
        self.dataset = questions_of(corpus, VARIANTS.get(suffix, "in_main"))

    def _corpus(self, task: str, options: dict[str, Any]) -> str:
        """The id of the corpus folder: built from the sources, or installed from a published set."""
        metadata = self.config.metadata or {}
        dataset = options.pop("dataset", None) or metadata.get("dataset")
        if dataset is None:
            from lm_eval_rag.tasks.ruleqa.build import build

            return build(task, **options)
        if options:
            raise UserError(
                f"dataset={dataset!r} is already built, so {', '.join(options)} cannot be set. Leave one of them out."
            )
        from lm_eval_rag.tasks.ruleqa.published import install

        corpus, metadata["dataset"] = install(task, str(dataset))
        return corpus


class FewRelationsTask(RuleQATask):
    """The sets Y and W, whose questions are clustered by subject alone.

    Q has 6 and 12 relations there, one of which has nearly half of the questions: an interval by relation is [0, 100].
    So intervals on these sets say nothing of other relations.
    """

    clusters: ClassVar[Keys] = (("subject",),)


def questions_of(corpus: str, chosen: str | None = None) -> Any:
    """The questions of a built corpus (``test``) and F_G (``fewshot``) as a dataset.

    Args:
        chosen: The column of the questions that are taken; None for all.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Dataset, DatasetDict

    from lm_eval_rag.harness.common.paths import cache_dir

    questions, examples = (
        pq.read_table(cache_dir() / corpus / f"{name}.parquet") for name in ("queries", "generator_train")
    )
    questions = questions if chosen is None else questions.filter(questions.column(chosen))
    parts = {"test": questions, "fewshot": examples}
    dataset = DatasetDict(  # named by what they are made from, which else takes 20 ms each
        {
            part: Dataset(
                _rows(rows, corpus), fingerprint=sha256(f"{corpus} {part} {chosen}".encode()).hexdigest()[:16]
            )
            for part, rows in parts.items()
        }
    )
    pa.default_memory_pool().release_unused()
    return dataset


def _rows(table: Any, corpus: str) -> Any:
    """The rows of a built table with the columns of a document; what every document has is empty if it is missing."""
    import pyarrow as pa

    def column(name: str) -> Any:
        if name == "corpus":
            return pa.repeat(pa.scalar(corpus, pa.large_string()), len(table))
        name = "text" if name == "query" else name
        return table.column(name) if name in table.column_names else pa.nulls(len(table), pa.large_string())

    slices = [name for name in SLICES if name in table.column_names]
    return pa.table({name: column(name) for name in [*COLUMNS[:-1], *slices, COLUMNS[-1]]})
