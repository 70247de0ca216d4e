"""Cards: a repository's README.md with the front matter that the Hub and ``load_dataset`` read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.data.sources import Source
from lm_eval_rag.harness.hub import terms

TABLES = {  # configuration's suffix -> (split, file) of a set's folder; one configuration has one set of columns
    "": (("test", "queries"),),
    "_corpus": (("corpus", "corpus"),),
    "_rules": (("rules", "rules"),),
    "_train": (("retriever", "retriever_train"), ("generator", "generator_train")),
}
SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
HELD = (
    "> **{mark}.** The sources of {names} do not let everybody pass them on; whoever uses or copies these sets is "
    "bound by what they say: {said}."
)


@dataclass(frozen=True, slots=True)
class DataSet:
    """A set that can be published.

    Args:
        name: Of the task, and of its folder in the repository.
        title: What it is made from.
        sources: Its upstream files, with licences and terms.
        build: Gives the id of its corpus folder, which is built if need be.
    """

    name: str
    title: str
    sources: Mapping[str, Source]
    build: Callable[[], str]


def configurations(names: Sequence[str]) -> list[dict[str, Any]]:
    """``configs`` of the front matter: ``load_dataset(repo, NAME)`` gives the questions, ``NAME_corpus`` and so on."""
    found: list[dict[str, Any]] = [
        {
            "config_name": name + suffix,
            "data_files": [{"split": split, "path": f"{name}/{file}.parquet"} for split, file in splits],
        }
        for name in names
        for suffix, splits in TABLES.items()
    ]
    found[0]["default"] = True
    return found


def dataset_card(sets: Mapping[str, tuple[DataSet, Mapping[str, Any]]], repo: str, tag: str | None = None) -> str:
    """The card of a dataset repository.

    Args:
        sets: By name, each with the content of its ``meta.json``.
        repo: ``ORG/NAME``.
        tag: Of this version; None where it has none.
    """
    from huggingface_hub import DatasetCardData

    sources = [source for made, _ in sets.values() for source in made.sources.values()]
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
        *_held(sets),
        "Questions, the documents they are asked over, rules mined from these documents, and training pairs for "
        "retrievers (F_R) and generators (F_G): RuleQA (arXiv:2410.22353) rebuilt from public files by lm-eval-rag. "
        "The README of each folder has the departures from the paper, every source file and its checksum.",
        "## Use",
        f'    lm_eval --tasks {first} --model rule_vote --metadata \'{{"dataset": "{at}"}}\'',
        f'    datasets.load_dataset("{repo}", "{first}"{f", revision={tag!r}" if tag else ""})',
        "Configurations of a set: its name (questions; `in_main` marks those of the task, `in_hard` those of its hard "
        "variant), and with `_corpus`, `_rules` and `_train` (splits `retriever` and `generator`).",
        "## Rows",
        table(
            ("set", "made from", *counted, "built as"),
            [
                (f"[{name}]({name}/README.md)", made.title, *(meta["counts"][part] for part in counted), meta["hash"])
                for name, (made, meta) in sets.items()
            ],
        ),
        "## Licences and terms\n\nThe data keep the terms of their sources:",
        table(("set", "sources' licence: terms"), [(name, "; ".join(_said(made))) for name, (made, _) in sets.items()]),
    ]
    return assembled(data.to_yaml(), parts)


def _held(sets: Mapping[str, tuple[DataSet, Mapping[str, Any]]]) -> list[str]:
    """The warning that heads the card of restricted sets; [] where all are open."""
    held = {name: terms.restricted(made.sources.values()) for name, (made, _) in sets.items()}
    found = [source for restricted in held.values() for source in restricted]
    if not found:
        return []
    research = any("research" in source.terms for source in found)
    mark = "Research and educational use only" if research else "No licence stated"
    names = ", ".join(name for name, restricted in held.items() if restricted)
    return [HELD.format(mark=mark, names=names, said="; ".join(terms.statements(found)))]


def _said(made: DataSet) -> list[str]:
    return terms.statements(made.sources.values()) or ["made by lm-eval-rag; Apache-2.0"]


def assembled(front: str, parts: Sequence[str]) -> str:
    """A card of front matter and paragraphs."""
    return f"---\n{front}\n---\n\n" + "\n\n".join(part for part in parts if part) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
