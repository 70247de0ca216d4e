"""Rule-guided fine-tuning of a retriever's query tower (RGFT, RuleRAG, arXiv:2410.22353, section 3.2), and SSFT.

The document tower is frozen. The result is a folder for the retriever's ``adapter=``: ``model.safetensors`` for
``static``, a PEFT folder or a sentence-transformers folder for transformers; with ``rulerag.json`` and the curves.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.note import Note, read_note, write_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import need, versions
from lm_eval_rag.harness.common.paths import storing
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.hub.learned import base_tasks
from lm_eval_rag.harness.train.contrastive import Part, batches, hard_negatives, train_query_tower
from lm_eval_rag.harness.train.rows import examples, read_questions, split
from lm_eval_rag.harness.train.settings import STATIC, Settings
from lm_eval_rag.harness.train.state import FILE, NEW, State

log = logging.getLogger(__name__)
PACKAGES = ("lm-eval-rag", "torch", "transformers", "sentence-transformers", "peft", "accelerate", "numpy")


def train_retriever(settings: Settings, corpora: Mapping[str, str], out: Path) -> dict[str, Any]:
    """Train a query tower, or resume an interrupted run with the same settings.

    Args:
        corpora: Task -> corpus id.
        out: Folder of the checkpoint; created if needed.

    Returns:
        The best epoch; its mean dev recall, the recall per task and the mean before training, in [0, 1]; and seconds.

    Raises:
        UserError: Bad settings, no F_R, a missing base model, a tokenizer without padding, a folder with another
            checkpoint, or a loss that is not finite.
    """
    settings.check()
    need("Training a retriever", "train", "torch", "accelerate")
    finished = _finished(out, settings, list(corpora.values()))
    if finished:
        log.info("%s is already finished.", out)
        return finished
    began = time.monotonic()
    encoder, parts = _loaded(settings, corpora)
    log.info("%s", "; ".join(f"{p.task}: {len(p.examples)} examples, {len(p.dev)} dev questions" for p in parts))
    out.mkdir(parents=True, exist_ok=True)
    steps = settings.steps(len(batches(parts, settings.batch_size, settings.seed, 0)))
    state = State(
        out,
        settings,
        list(corpora.values()),
        steps=steps,
        began=began,
        save=lambda: _save(encoder, out),
        writes=_is_main(),
    )
    with closing(state), storing(out, lambda: state.advice):
        train_query_tower(encoder, parts, settings, state)
        results = {**state.finish(), **_counts(parts)}
        if _is_main():
            write_note(out, _note(settings, corpora, results))
            (out / FILE).unlink(missing_ok=True)
    return results


def _loaded(settings: Settings, corpora: Mapping[str, str]) -> tuple[Any, list[Part]]:
    """The encoder, and the training data of each task."""
    opened = {task: open_corpus(corpus_id) for task, corpus_id in corpora.items()}
    divided = [
        split(read_questions(corpus, settings.n_rules), settings.dev, settings.seed, settings.rows)
        for corpus in opened.values()
    ]
    learnt = [examples(training, settings.mode, settings.latest) for training, _ in divided]
    make = _static if settings.encoder == STATIC else _dense
    encoder, vectors = make(settings, list(opened.values()), [[e.text for e in group] for group in learnt])
    return encoder, [
        Part(task, corpus, matrix, group, _as_asked(dev, settings), _hard(settings, corpus, group))
        for (task, corpus), matrix, group, (_, dev) in zip(opened.items(), vectors, learnt, divided, strict=True)
    ]


def _counts(parts: Sequence[Part]) -> dict[str, Any]:
    """Number of training examples, and of dev questions per task."""
    return {
        "rows_trained": sum(len(part.examples) for part in parts),
        "dev_questions": {part.task: len(part.dev) for part in parts},
    }


def _static(settings: Settings, corpora: Sequence[Any], texts: Sequence[Sequence[str]]) -> tuple[Any, list[Any]]:
    from lm_eval_rag.harness.train.static_tower import StaticEncoder, retriever_of

    retrievers = [retriever_of(corpus) for corpus in corpora]
    return StaticEncoder(retrievers, texts, settings.learning_rate), [r.documents.vectors for r in retrievers]


def _dense(settings: Settings, corpora: Sequence[Any], texts: Sequence[Sequence[str]]) -> tuple[Any, list[Any]]:
    from lm_eval_rag.harness.train.dense_tower import DenseEncoder

    encoder = DenseEncoder(settings, corpora, next((text for group in texts for text in group), "who"))
    return encoder, [retriever.vectors for retriever in encoder.retrievers]


def _as_asked(dev: Sequence[Any], settings: Settings) -> list[Any]:
    """The dev questions as in this mode: without rules for SSFT."""
    return [question if settings.mode == "rgft" else replace(question, rules=()) for question in dev]


def _hard(settings: Settings, corpus: Any, group: Sequence[Any]) -> list[list[int]]:
    return hard_negatives(corpus, group) if settings.hard else [[] for _ in group]


def _save(encoder: Any, out: Path) -> None:
    """Replace the tower in ``out`` file by file, after all of it has been written."""
    temporary = out / ".saving"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir()
        encoder.save(temporary)
        for path in sorted(path for path in temporary.rglob("*") if path.is_file()):
            target = out / path.relative_to(temporary)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _finished(out: Path, settings: Settings, corpora: list[str]) -> dict[str, Any] | None:
    """The results of a finished run with the same settings and data; None where nothing is finished.

    Raises:
        UserError: The folder is a file, contains another checkpoint, or has files but none of a training run.
    """
    if out.is_file():
        raise UserError(f"--out {out} is a file. Give a folder.")
    note = read_note(out)
    if note is None:
        if out.is_dir() and any(out.iterdir()) and not any((out / name).is_file() for name in (FILE, NEW)):
            raise UserError(f"The folder {out} is not empty and contains no training run. Give another --out.")
        return None
    if note.settings == json.loads(json.dumps(settings.recorded())) and list(note.corpora) == corpora:
        (out / FILE).unlink(missing_ok=True)  # where the run was killed between the note and this
        return dict(note.results)
    raise UserError(
        f"{out} contains a finished checkpoint of other settings or data. Give another --out, or delete it to train "
        "again."
    )


def _note(settings: Settings, corpora: Mapping[str, str], results: Mapping[str, Any]) -> Note:
    package_versions = dict(entry.split("=", 1) for entry in versions(*PACKAGES).split(", "))
    return Note(
        kind="retriever",
        mode=settings.mode,
        tasks=tuple(corpora),
        corpora=tuple(corpora.values()),
        settings=settings.recorded(),
        seed=settings.seed,
        results=results,
        versions=package_versions,
        base_tasks=base_tasks(Note("retriever", settings.mode, settings=settings.recorded())),
    )


def _is_main() -> bool:
    from accelerate import PartialState

    return bool(PartialState().is_main_process)
