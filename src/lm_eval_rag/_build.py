"""``lm-eval-rag build``: what builds the data of each task, and a corpus of one's own documents."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.common.ray_engine import add_engine, engine_of


def build_main(argv: Sequence[str]) -> int:
    """Build tasks by name and print their folders, or with ``--out`` a corpus of documents; returns 0.

    Raises:
        UserError: A task or a choice of documents that there is not, or documents that cannot be read.
    """
    chosen = _parser().parse_args(argv)
    if chosen.out is not None:
        return _build_documents(chosen)
    if engine_of(chosen) is not None or (chosen.passage_tokens, chosen.overlap) != (None, None):
        raise UserError("--engine, --passage_tokens and --overlap are for documents of your own: give --out too.")
    builders = builders_of_tasks()
    unknown_names = [name for name in chosen.tasks if name not in builders]
    if unknown_names:
        hint = "For documents of your own, name the new corpus with --out." if Path(unknown_names[0]).exists() else ""
        raise unknown("task", unknown_names[0], builders, hint=hint)
    _check_corpus(chosen.corpus, chosen.tasks)
    options = {"seed": chosen.seed} | ({} if chosen.corpus in (None, "train") else {"corpus": chosen.corpus})
    for made in dict.fromkeys(part for name in chosen.tasks for part in builders[name]):
        sys.stdout.write(f"{cache_dir() / made(**options)}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    from lm_eval_rag.harness.documents.intake import OVERLAP, TOKENS

    parser = argparse.ArgumentParser(
        prog="lm-eval-rag build", description="Build the data of tasks, or with --out a corpus of your own documents."
    )
    parser.add_argument(
        "tasks", nargs="+", metavar="TASK", help="'ruleqa' for all five sets, single tasks, or a folder of documents"
    )
    parser.add_argument("--seed", type=int, default=0, help="of everything drawn; what the tasks themselves use is 0")
    documents = (
        "of a set with times: train (its training facts) or train_valid (its validation facts too); of a task over "
        "Wikipedia: pooled, own, fullwiki, wiki18_100w, mirror and others"
    )
    parser.add_argument("--corpus", metavar="NAME", help=documents)
    parser.add_argument("--out", type=Path, metavar="CORPUS", help="new folder for the corpus of your own documents")
    parser.add_argument("--passage_tokens", type=int, metavar="N", help=f"words of a passage (default: {TOKENS})")
    parser.add_argument("--overlap", type=int, metavar="N", help=f"words that neighbours share (default: {OVERLAP})")
    add_engine(parser)
    return parser


def _build_documents(chosen: argparse.Namespace) -> int:
    """The corpus of a folder or file of documents."""
    from lm_eval_rag.harness.documents.blocks import build_corpus
    from lm_eval_rag.harness.documents.intake import reasons

    if len(chosen.tasks) != 1 or chosen.corpus is not None or chosen.seed:
        raise UserError("--out takes one folder or file of documents, without --corpus and --seed.")
    given = {"tokens": chosen.passage_tokens, "overlap": chosen.overlap}
    limits = {name: value for name, value in given.items() if value is not None}
    built = build_corpus(Path(chosen.tasks[0]), chosen.out, **limits, engine=engine_of(chosen))
    unread = f"; {len(built.unread):,} not read{reasons(built.unread)}" if built.unread else ""
    sys.stdout.write(f"{built.passages:,} passages of {built.documents:,} documents: {chosen.out}{unread}\n")
    return 0


def _check_corpus(corpus: str | None, tasks: Sequence[str]) -> None:
    """Raise unless there is such a choice of documents, and every set named has it; before any is built."""
    from lm_eval_rag.tasks.ruleqa.build import CORPORA
    from lm_eval_rag.tasks.ruleqa.natural import NATURAL, NATURAL_TASKS
    from lm_eval_rag.tasks.ruleqa.specs import SPECS, TASKS, spec_of
    from lm_eval_rag.tasks.wikipedia.specs import TASKS as WIKIPEDIA
    from lm_eval_rag.tasks.wikipedia.specs import choice_of

    if corpus is None:
        return
    for task in set(tasks) & set(WIKIPEDIA):
        choice_of(task, corpus)
    tasks = [task for task in tasks if task not in WIKIPEDIA]
    if not tasks:
        return
    if corpus not in CORPORA:
        raise unknown("corpus", corpus, CORPORA)
    dated = [task for task in (*TASKS, *NATURAL_TASKS) if spec_of(task.removesuffix(NATURAL)).temporal]
    named = [one for task in tasks for one in (SPECS if task == "ruleqa" else (task,))]
    without = [task for task in dict.fromkeys(named) if task not in dated]
    if corpus != "train" and without:
        raise UserError(
            f"--corpus {corpus} is for the sets with times ({', '.join(dated)}), not for {', '.join(without)}, whose "
            "documents are all that is not held out. Name sets with times alone, or leave --corpus out."
        )


def builders_of_tasks() -> dict[str, tuple[Callable[..., str], ...]]:
    """Name on the command line -> what builds it: functions of seed and corpus that return a corpus id."""
    from lm_eval_rag.tasks.crag import build as crag
    from lm_eval_rag.tasks.crag.graph import build_graph
    from lm_eval_rag.tasks.crag_demo.build import build as crag_demo
    from lm_eval_rag.tasks.reasoning_demo.build import build as reasoning_demo
    from lm_eval_rag.tasks.ruleqa import build as ruleqa
    from lm_eval_rag.tasks.ruleqa.natural import NATURAL_TASKS, build_natural
    from lm_eval_rag.tasks.ruleqa.specs import SPECS, TASKS
    from lm_eval_rag.tasks.ruleqa_demo.build import build as demo
    from lm_eval_rag.tasks.wikipedia import build as wikipedia
    from lm_eval_rag.tasks.wikipedia.corpus_build import build_corpus
    from lm_eval_rag.tasks.wikipedia.corpus_specs import CORPORA
    from lm_eval_rag.tasks.wikipedia.specs import TASKS as WIKIPEDIA

    def over(task: str) -> Callable[..., str]:
        return lambda corpus=None, **_: wikipedia.build(task, corpus=corpus)  # nothing is drawn

    def pool(name: str) -> Callable[..., str]:
        return lambda **_: build_corpus(name)

    def official(task: str) -> Callable[..., str]:
        return lambda **_: crag.build(task)  # nothing is drawn

    single = {task: partial(ruleqa.build, task) for task in TASKS}
    single |= {task: partial(build_natural, task) for task in NATURAL_TASKS}
    return {
        "ruleqa": tuple(single[task] for task in SPECS),
        **{task: (made,) for task, made in single.items()},
        "ruleqa_demo": (demo,),
        **{task: (official(task),) for task in ("crag_task1", "crag_task2", "crag_task3")},
        "crag_kg": (lambda **_: build_graph(crag.manifest()),),
        "crag_demo": (crag_demo,),
        "reasoning_demo": (reasoning_demo,),
        **{name: (pool(name),) for name in CORPORA},
        **{task: (over(task),) for task in WIKIPEDIA},
    }


def corpus_of(task: str) -> str:
    """The corpus id of a task, built when it is not there."""
    builders = builders_of_tasks()
    if task not in builders or len(builders[task]) != 1:
        raise unknown("task", task, [name for name, made in builders.items() if len(made) == 1])
    return builders[task][0](seed=0)
