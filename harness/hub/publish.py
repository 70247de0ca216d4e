"""``lm-eval-rag publish``: datasets, trained models and retrieval runs to the Hub. Without ``--upload``, a dry run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.download import HUB_ID
from lm_eval_rag.harness.checkpoints.note import NOTE, Note, note_text, read_note
from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.hub import evaluations, measured, terms
from lm_eval_rag.harness.hub.cards import DataSet, dataset_card
from lm_eval_rag.harness.hub.contents import Item, folder_items, refuse_links_out, refuse_programs, refuse_secrets
from lm_eval_rag.harness.hub.learned import base_tasks
from lm_eval_rag.harness.hub.model_card import About, base_model, model_card
from lm_eval_rag.harness.hub.published_note import DEFAULT_FOLDER, base_of, published_note
from lm_eval_rag.harness.hub.run_card import run_card
from lm_eval_rag.harness.hub.upload import CARD, Publication, upload
from lm_eval_rag.harness.retrieval import run_file

Offered = Mapping[str, Sequence[DataSet]]


def publish_main(argv: Sequence[str], *, offered: Offered) -> int:
    """Run ``publish dataset``, ``publish model`` or ``publish run``; returns 0.

    Args:
        argv: Arguments after ``publish``.
        offered: Name on the command line -> its datasets.

    Raises:
        UserError: An unknown dataset, terms not accepted, a secret or a program in the files, a link that leads out of
            the folder, or an error of the Hub.
    """
    chosen = _parser(offered).parse_args(list(argv))
    _check_repo(chosen.repo)
    for option in ("base_model", "retriever"):
        _check_id(option, getattr(chosen, option, None))
    publication = chosen.plan(chosen, offered)
    refuse_programs(publication.items)
    refuse_secrets(publication.items)
    sys.stdout.write(f"{publication}\n")
    if chosen.upload:
        sys.stdout.write(f"Published: {upload(publication)}\n")
    else:
        sys.stdout.write("Dry run: nothing was uploaded. Add --upload to publish.\n")
    return 0


def _parser(offered: Offered) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lm-eval-rag publish", description=__doc__)
    kinds = parser.add_subparsers(required=True, metavar="dataset|model|run")
    dataset = _kind(kinds, "dataset", _dataset)
    dataset.add_argument("names", nargs="+", metavar="SET", help=f"one or more of {', '.join(offered)}")
    dataset.add_argument("--accept-terms", action="store_true", help="publish sets with restricted sources")
    model = _kind(kinds, "model", _model)
    model.add_argument("folder", type=Path, metavar="DIR", help="the folder of the trained model")
    model.add_argument("--licence", "--license", help="the Hub's identifier (default: from DIR/README.md)")
    model.add_argument("--base-model", metavar="ORG/NAME", help="Hub id of the model that it was tuned from (default: "
                       "from DIR/adapter_config.json or DIR/rulerag.json)")  # fmt: skip
    model.add_argument("--retriever", metavar="ORG/NAME", help="Hub id of the retriever that a generator was trained "
                       "with (default: from its rulerag.json)")  # fmt: skip
    model.add_argument("--accept-terms", action="store_true", help="publish a model of restricted training data")
    model.add_argument("--dataset", action="append", default=[], help="Hub id of training data; may be repeated")
    model.add_argument("--results", action="append", default=[], type=Path, metavar="PATH",
                       help="lm_eval's results of this model, a file or a folder; may be repeated")  # fmt: skip
    model.add_argument("--benchmark", metavar="ORG/NAME", help="dataset repository of the tasks of --results: writes "
                       "one value a task for the Hub's leaderboard")  # fmt: skip
    model.add_argument("--entry", metavar="URL", help="of --benchmark: the page that has all scores")
    run = _kind(kinds, "run", _run)
    run.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files of `lm-eval-rag retrieve`")
    run.add_argument("--licence", "--license", required=True,
                     help="the Hub's identifier; a run contains the questions, so theirs applies")  # fmt: skip
    return parser


def _kind(kinds: Any, name: str, plan: Callable[..., Publication]) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = kinds.add_parser(name, help=plan.__doc__, description=plan.__doc__)
    parser.add_argument("--repo", required=True, metavar="ORG/NAME")
    parser.add_argument("--tag", help="name of this version; users can pin it as ORG/NAME@TAG")
    parser.add_argument("--private", action="store_true", help="create a private repository")
    parser.add_argument("--replace", action="store_true", help="delete all other files of the repository")
    parser.add_argument("--upload", action="store_true", help="publish; without it, only show what would be published")
    parser.set_defaults(plan=plan)
    return parser


def _check_repo(repo: str) -> None:
    if "@" in repo or repo.count("/") != 1 or not HUB_ID.fullmatch(repo):
        raise UserError(f"--repo {repo!r} is not a repository name. Give ORG/NAME, and the version with --tag.")


def _check_id(option: str, value: str | None) -> None:
    """Raise a UserError unless the option is not given or is a Hub id with an organisation."""
    match = HUB_ID.fullmatch(value or "a/b")
    if match is None or "/" not in match["repo"] or match["repo"].split("/")[0] in (".", "..", DEFAULT_FOLDER):
        raise UserError(f"--{option.replace('_', '-')} {value!r} is no Hub id. Give ORG/NAME, or ORG/NAME@TAG.")


def _dataset(chosen: argparse.Namespace, offered: Offered) -> Publication:
    """Publish RuleQA sets: questions, documents, rules and training pairs."""
    for name in chosen.names:
        if name not in offered:
            raise unknown("set", name, offered)
    sets = {dataset.name: dataset for name in chosen.names for dataset in offered[name]}
    terms.check({name: dataset.sources.values() for name, dataset in sets.items()}, accepted=chosen.accept_terms)
    folders = {name: cache_dir() / dataset.build() for name, dataset in sets.items()}
    metas = {name: json.loads((folder / "meta.json").read_text(encoding="utf-8")) for name, folder in folders.items()}
    card = dataset_card({name: (dataset, metas[name]) for name, dataset in sets.items()}, chosen.repo, chosen.tag)
    items = [Item.of(CARD, card.encode()), evaluations.benchmark(sets.values())]
    for name, folder in folders.items():  # only the files of the dataset, without indexes in the same folder
        files = ("meta.json", CARD, *metas[name]["files"])
        refuse_links_out(folder, files)
        items += [Item.of(f"{name}/{file}", folder / file) for file in files]
    versions = ", ".join(f"{name} ({meta['hash']})" for name, meta in metas.items())
    return _publication(chosen, items, f"Publish {versions}")


def _model(chosen: argparse.Namespace, offered: Offered) -> Publication:
    """Publish a trained model's folder."""
    items, left_out = folder_items(chosen.folder)
    folder, note = chosen.folder.resolve(), _finished(chosen.folder)
    base = chosen.base_model or base_model(folder)
    noted = base_of(note, folder, base) if note else None
    before = base_tasks(note, noted) if note else ()
    learned = _learned((*note.tasks, *before) if note else (), offered)
    terms.check({one.name: one.sources.values() for one in learned}, accepted=chosen.accept_terms, trained=True)
    if note:
        note = replace(published_note(note, folder, base=noted, retriever=chosen.retriever), base_tasks=before)
    results = [*(measured.from_note(note) if note else ()), *measured.from_files(chosen.results, folder, chosen.repo)]
    about = About(
        folder=folder,
        repo=chosen.repo,
        tag=chosen.tag,
        note=note,
        measured=results,
        licence=chosen.licence,
        base_model=base,
        datasets=chosen.dataset,
        trained_on=learned,
        noted_base=noted,
    )
    by_path = {item.path: item for item in items}
    by_path[CARD] = Item.of(CARD, model_card(about).encode())
    if note:
        by_path[NOTE] = Item.of(NOTE, note_text(note).encode())
    if base and (config := by_path.get("adapter_config.json")):
        by_path[config.path] = _with_base(config, folder, base)
    by_path |= {item.path: item for item in evaluations.results(results, chosen.benchmark, chosen.entry)}
    kind = f"{note.mode} {note.kind}" if note else "model"
    return _publication(chosen, [by_path[path] for path in sorted(by_path)], f"Publish {kind} {folder.name}", left_out)


def _learned(tasks: Sequence[str], offered: Offered) -> list[DataSet]:
    """The datasets of tasks, as far as they are known, each once."""
    return list({one.name: one for task in tasks if task in offered for one in offered[task]}.values())


def _run(chosen: argparse.Namespace, offered: Offered) -> Publication:
    """Publish retrieval runs: the ids and scores of the best passages of each question."""
    notes = {path.name: run_file.read_note(path) for path in chosen.files}
    wrong = [path for path in chosen.files if path.suffix != run_file.SUFFIX]
    if wrong or len(notes) < len(chosen.files):
        raise UserError(f"{wrong[0] if wrong else 'Two files'} cannot be published: give files of different names that "
                        f"end in {run_file.SUFFIX}.")  # fmt: skip
    card = run_card(notes, chosen.repo, chosen.licence, chosen.tag)
    items = [Item.of(CARD, card.encode()), *(Item.of(path.name, path) for path in chosen.files)]
    return _publication(chosen, items, f"Publish the retrieval runs {', '.join(notes)}")


def _finished(folder: Path) -> Note | None:
    note = read_note(folder)
    if note and not note.finished:
        raise UserError(
            f"The training in {folder} is not finished. Run its command again; it resumes where it stopped."
        )
    return note


def _with_base(config: Item, folder: Path, base: str) -> Item:
    """An adapter's configuration with the Hub id of its base model."""
    settings = json.loads((folder / config.path).read_text(encoding="utf-8"))
    if settings.get("base_model_name_or_path") == base:
        return config
    return Item.of(config.path, json.dumps({**settings, "base_model_name_or_path": base}, indent=2).encode())


def _publication(
    chosen: argparse.Namespace, items: Sequence[Item], message: str, left_out: Sequence[str] = ()
) -> Publication:
    return Publication(
        repo=chosen.repo,
        kind="model" if chosen.plan is _model else "dataset",
        items=items,
        message=f"{message} with lm-eval-rag {version('lm-eval-rag')}",
        tag=chosen.tag,
        private=chosen.private,
        replace=chosen.replace,
        left_out=left_out,
    )
