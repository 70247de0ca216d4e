"""``lm-eval-rag publish``: sets and trained models to the Hub. Without ``--upload`` it shows what it would do."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.download import HUB_ID
from lm_eval_rag.harness.checkpoints.note import Note, read_note
from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.hub import measured, terms
from lm_eval_rag.harness.hub.cards import DataSet, dataset_card
from lm_eval_rag.harness.hub.contents import Item, folder_items, refuse_secrets
from lm_eval_rag.harness.hub.model_card import About, base_model, model_card
from lm_eval_rag.harness.hub.upload import CARD, Publication, upload

Offered = Mapping[str, Sequence[DataSet]]


def publish_main(argv: Sequence[str], *, offered: Offered) -> int:
    """Run ``publish dataset`` or ``publish model``; returns 0.

    Args:
        argv: After ``publish``.
        offered: Name on the command line -> the sets it stands for.

    Raises:
        UserError: An unknown set, terms not accepted, a secret among the files, or what the Hub refuses.
    """
    chosen = _parser(offered).parse_args(list(argv))
    _named(chosen.repo)
    publication = chosen.plan(chosen, offered)
    refuse_secrets(publication.items)
    sys.stdout.write(f"{publication}\n")
    if chosen.upload:
        sys.stdout.write(f"Published: {upload(publication)}\n")
    else:
        sys.stdout.write("Dry run: nothing was uploaded. Add --upload to publish.\n")
    return 0


def _parser(offered: Offered) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lm-eval-rag publish", description=__doc__)
    kinds = parser.add_subparsers(required=True, metavar="dataset|model")
    dataset = _kind(kinds, "dataset", _dataset)
    dataset.add_argument("names", nargs="+", metavar="SET", help=f"of {', '.join(offered)}")
    dataset.add_argument("--accept-terms", action="store_true", help="publish sets whose sources' terms restrict it")
    model = _kind(kinds, "model", _model)
    model.add_argument("folder", type=Path, metavar="DIR", help="the folder of the trained model")
    model.add_argument("--licence", "--license", help="the Hub's identifier; else what DIR's README.md says")
    model.add_argument("--base-model", metavar="ORG/NAME", help="Hub id; else what DIR's adapter_config.json says")
    model.add_argument("--dataset", action="append", default=[], help="Hub id of training data; may be repeated")
    model.add_argument("--results", action="append", default=[], type=Path, metavar="PATH",
                       help="lm_eval's results of this model: a file or a folder; may be repeated")  # fmt: skip
    return parser


def _kind(kinds: Any, name: str, plan: Callable[..., Publication]) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = kinds.add_parser(name, help=plan.__doc__, description=plan.__doc__)
    parser.add_argument("--repo", required=True, metavar="ORG/NAME")
    parser.add_argument("--tag", help="name of this version, which users can pin: ORG/NAME@TAG")
    parser.add_argument("--private", action="store_true", help="make the repository a private one")
    parser.add_argument("--replace", action="store_true", help="delete the repository's other files")
    parser.add_argument("--upload", action="store_true", help="publish; without it, show what would be published")
    parser.set_defaults(plan=plan)
    return parser


def _named(given: str) -> None:
    if "@" in given or given.count("/") != 1 or not HUB_ID.fullmatch(given):
        raise UserError(f"--repo {given!r} names no repository. Give ORG/NAME (a version is named by --tag).")


def _dataset(chosen: argparse.Namespace, offered: Offered) -> Publication:
    """Publish RuleQA sets: questions, documents, rules and training pairs."""
    for name in chosen.names:
        if name not in offered:
            raise unknown("set", name, offered)
    sets = {one.name: one for name in chosen.names for one in offered[name]}
    terms.check({name: one.sources.values() for name, one in sets.items()}, accepted=chosen.accept_terms)
    folders = {name: cache_dir() / one.build() for name, one in sets.items()}
    metas = {name: json.loads((folder / "meta.json").read_text(encoding="utf-8")) for name, folder in folders.items()}
    card = dataset_card({name: (one, metas[name]) for name, one in sets.items()}, chosen.repo, chosen.tag)
    items = [Item.of(CARD, card.encode())]
    for name, folder in folders.items():  # what the set is made of, and no index that lies beside it
        items += [Item.of(f"{name}/{file}", folder / file) for file in ("meta.json", CARD, *metas[name]["files"])]
    made = ", ".join(f"{name} ({meta['hash']})" for name, meta in metas.items())
    return _publication(chosen, items, f"Publish {made}")


def _model(chosen: argparse.Namespace, offered: Offered) -> Publication:
    """Publish a trained model's folder."""
    items, left_out = folder_items(chosen.folder)
    folder, note = chosen.folder.resolve(), _finished(chosen.folder)
    results = [*(measured.from_note(note) if note else ()), *measured.from_files(chosen.results, folder, chosen.repo)]
    base = chosen.base_model or base_model(folder)
    known = [one for task in (note.tasks if note else ()) if task in offered for one in offered[task]]
    about = About(
        folder=folder,
        repo=chosen.repo,
        tag=chosen.tag,
        note=note,
        measured=results,
        licence=chosen.licence,
        base_model=base,
        datasets=chosen.dataset,
        trained_on=known,
    )
    made = {item.path: item for item in items}
    made[CARD] = Item.of(CARD, model_card(about).encode())
    if base and (config := made.get("adapter_config.json")):
        made[config.path] = _with_base(config, folder, base)
    kind = f"{note.mode} {note.kind}" if note else "model"
    return _publication(chosen, [made[path] for path in sorted(made)], f"Publish {kind} {folder.name}", left_out)


def _finished(folder: Path) -> Note | None:
    note = read_note(folder)
    if note and note.results.get("finished") is False:
        raise UserError(
            f"The training in {folder} is not finished. Run its command again: it goes on where it stopped."
        )
    return note


def _with_base(config: Item, folder: Path, base: str) -> Item:
    """An adapter's configuration that names its base model by its Hub id."""
    given = json.loads((folder / config.path).read_text(encoding="utf-8"))
    if given.get("base_model_name_or_path") == base:
        return config
    return Item.of(config.path, json.dumps({**given, "base_model_name_or_path": base}, indent=2).encode())


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
