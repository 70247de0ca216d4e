"""Dataset cards: a repository's README.md with the front matter that the Hub and ``load_dataset`` read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.common.card_table import card_table
from lm_eval_rag.harness.data.sources import Source
from lm_eval_rag.harness.hub import terms

TABLES = {  # suffix of the configuration -> (split, file); all files of one configuration have the same columns
    "": (("test", "queries"),),
    "_corpus": (("corpus", "corpus"),),
    "_rules": (("rules", "rules"),),
    "_train": (("retriever", "retriever_train"), ("generator", "generator_train")),
}
SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
RESTRICTED = (
    "> **{mark}.** Not everybody may redistribute the sources of {names}. Users and redistributors of these sets must "
    "follow these terms: {terms}."
)


@dataclass(frozen=True, slots=True)
class DataSet:
    """A dataset that can be published.

    Args:
        name: Name of the task and of the dataset's folder in the repository.
        title: Name of the upstream data.
        sources: Upstream files, with licences and terms.
        build: Builds the corpus folder if needed, and returns its id.
    """

    name: str
    title: str
    sources: Mapping[str, Source]
    build: Callable[[], str]


def configurations(names: Sequence[str]) -> list[dict[str, Any]]:
    """``configs`` in the front matter: ``load_dataset(repo, NAME)`` loads the questions; also ``NAME_corpus`` etc."""
    configs: list[dict[str, Any]] = [
        {
            "config_name": name + suffix,
            "data_files": [{"split": split, "path": f"{name}/{file}.parquet"} for split, file in splits],
        }
        for name in names
        for suffix, splits in TABLES.items()
    ]
    configs[0]["default"] = True
    return configs


def dataset_card(sets: Mapping[str, tuple[DataSet, Mapping[str, Any]]], repo: str, tag: str | None = None) -> str:
    """The card of a dataset repository.

    Args:
        sets: Name -> the dataset and the content of its ``meta.json``.
        repo: ``ORG/NAME``.
        tag: Tag of this version, or None.
    """
    from huggingface_hub import DatasetCardData

    sources = [source for dataset, _ in sets.values() for source in dataset.sources.values()]
    rows = sum(count for _, meta in sets.values() for count in meta["counts"].values())
    data = DatasetCardData(
        **terms.licence(sources),
        language="en",
        pretty_name=f"RuleQA rebuilt: {', '.join(sets)}",
        size_categories=next((name for most, name in SIZES if rows < most), "n>10M"),
        task_categories=["question-answering", "text-retrieval"],
        tags=["retrieval-augmented generation", "rules", "knowledge graphs", "lm-eval-rag"],
        configs=configurations(list(sets)),
    )
    counted = ("corpus", "rules", "queries", "retriever_train", "generator_train")
    first, at = next(iter(sets)), f"{repo}@{tag}" if tag else repo
    parts = [
        "# Rule-aware questions over knowledge graphs",
        *_warning(sets),
        "Questions, the documents to retrieve from, rules mined from these documents, and training pairs for "
        "retrievers (F_R) and generators (F_G): RuleQA (arXiv:2410.22353), rebuilt from public files by lm-eval-rag. "
        "The README in each folder lists the departures from the paper and every source file with its checksum.",
        "## Use",
        f'    lm_eval --tasks {first} --model rule_vote --metadata \'{{"dataset": "{at}"}}\'',
        f'    datasets.load_dataset("{repo}", "{first}"{f", revision={tag!r}" if tag else ""})',
        "Each set has four configurations: NAME (questions; `in_main` marks those of the task, `in_hard` those of its "
        "hard variant), `NAME_corpus`, `NAME_rules` and `NAME_train` (splits `retriever` and `generator`).",
        "## Rows",
        card_table(
            ("set", "built from", *counted, "hash"),
            [
                (
                    f"[{name}]({name}/README.md)",
                    dataset.title,
                    *(meta["counts"][part] for part in counted),
                    meta["hash"],
                )
                for name, (dataset, meta) in sets.items()
            ],
        ),
        "## Licences and terms\n\nThe data are subject to the terms of their sources:",
        card_table(
            ("set", "sources' licence: terms"),
            [(name, "; ".join(_terms(dataset))) for name, (dataset, _) in sets.items()],
        ),
    ]
    return assembled(data.to_yaml(), parts)


def _warning(sets: Mapping[str, tuple[DataSet, Mapping[str, Any]]]) -> list[str]:
    """The warning at the top of the card if sets are restricted, else []."""
    by_set = {name: terms.restricted(dataset.sources.values()) for name, (dataset, _) in sets.items()}
    sources = [source for restricted in by_set.values() for source in restricted]
    if not sources:
        return []
    research = any("research" in source.terms for source in sources)
    mark = "Research and educational use only" if research else "No licence stated"
    names = ", ".join(name for name, restricted in by_set.items() if restricted)
    return [RESTRICTED.format(mark=mark, names=names, terms="; ".join(terms.statements(sources)))]


def _terms(dataset: DataSet) -> list[str]:
    return terms.statements(dataset.sources.values()) or ["created by lm-eval-rag; Apache-2.0"]


def assembled(front: str, parts: Sequence[str]) -> str:
    """A card with front matter and paragraphs."""
    return f"---\n{front}\n---\n\n" + "\n\n".join(part for part in parts if part) + "\n"
