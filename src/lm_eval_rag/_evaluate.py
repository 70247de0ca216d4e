"""``lm_eval_rag.evaluate``: methods on one's own documents and questions, through lm_eval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag._register import MODELS, find_method, register
from lm_eval_rag.harness.plugin.chosen_methods import Methods
from lm_eval_rag.harness.plugin.evaluation import Evaluation
from lm_eval_rag.harness.plugin.evaluation import evaluate as evaluate_models
from lm_eval_rag.harness.plugin.model import RagLM, model_class


def evaluate(
    documents: Any,
    questions: Any,
    *,
    rules: Any = None,
    methods: Methods = ("standard_rag",),
    retrievers: Sequence[str] | str = (),
    generator: str | None = None,
    model_args: Mapping[str, Any] | None = None,
    gen_kwargs: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    name: str | None = None,
    limit: int | None = None,
    passage_tokens: int = 128,
    overlap: int = 32,
    min_support: int = 2,
    rule_length: int = 1,
) -> Evaluation:
    """Compare methods on one's own documents and questions. Results and samples are lm_eval's, in ``out``.

    Args:
        documents: A folder, a file, ``hub:ORG/NAME``, a frame, a dataset, a corpus, or a list of texts, dictionaries,
            passages or documents of LangChain, LlamaIndex or Haystack.
        questions: A file, ``hub:ORG/NAME``, a frame, or a list of texts or dictionaries: ``question``, and optionally
            ``answer`` or ``answers``, ``id``, ``time``, ``gold_passages``; other columns are slices.
        rules: None; ``mine`` for rules mined from the documents' facts; or a file, frame or list of rules or facts.
        methods: Names, ``FILE.py:NAME``, ``external=FILE.py:NAME``, ``external=http://...``, generator functions, or
            functions of a question that return an answer (systems); ``LABEL=`` before a name, or a dictionary
            ``{LABEL: METHOD}``, names the run in all tables.
        retrievers: Names; () gives each method its own.
        generator: Name of the generator; None gives each method its own.
        model_args: Further model arguments, such as ``k`` and ``gen_pretrained``; each method gets those that it has.
        gen_kwargs: As lm_eval's: ``max_gen_toks``, ``until``, ``temperature``.
        metadata: As lm_eval's ``--metadata``, such as ``{"judge": ...}``.
        out: The folder of the results; None for ``runs/<name>``.
        name: Name of the task in the results; None for that of the questions' file.
        limit: Only the first questions; None for all.
        passage_tokens: Limit of words and signs in a passage; longer documents are cut by sentences.
        overlap: Words and signs that neighbouring passages of a document share at most.
        min_support: Number of facts that a mined rule must hold for at least.
        rule_length: Relations in the body of a mined rule at most: 1, 2 (counted) or 3 (sampled).

    Returns:
        The runs, with ``scores`` and ``answers`` (polars), ``report()``, ``table()`` and a form for notebooks.

    Raises:
        UserError: Bad input; the message names the file and the row.
    """
    register()
    return evaluate_models(
        documents,
        questions,
        find=model_of,
        rules=rules,
        methods=methods,
        retrievers=retrievers,
        model_args={**(model_args or {}), **({"generator": generator} if generator else {})},
        gen_kwargs=gen_kwargs,
        metadata=metadata,
        out=out,
        name=name,
        limit=limit,
        passage_tokens=passage_tokens,
        overlap=overlap,
        min_support=min_support,
        rule_length=rule_length,
    )


def model_of(name: str) -> type[RagLM]:
    """The lm_eval model of a method of ours or of another package.

    Raises:
        UserError: There is none.
    """
    from lm_eval.api.registry import get_model

    if name in MODELS:
        model: type[RagLM] = get_model(name)
        return model
    return model_class(name, find_method(name).function)
