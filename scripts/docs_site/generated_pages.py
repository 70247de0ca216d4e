"""The pages that are made of registries, signatures and docstrings: methods, tasks, scores, retrievers, errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ask_figures import figure
from error_pages import errors_page
from page_extras import card, examples
from results_section import of_method, of_task

from lm_eval_rag.describe.description import Argument, Description
from lm_eval_rag.describe.metrics import metric, metric_names
from lm_eval_rag.describe.models import model, model_names
from lm_eval_rag.describe.page import HOW
from lm_eval_rag.describe.retrievers import retriever, retriever_names
from lm_eval_rag.describe.tasks import about_tasks, task, task_names
from lm_eval_rag.harness.common.card_table import card_table

API = (  # modules whose names are those of `from lm_eval_rag import ...`
    "core.types", "core.asks", "core.prompts", "core.parameters", "data.corpus", "retrieval.fusion", "rules.guided",
    "common.errors",
)  # fmt: skip
KIND = "about its kind"  # the title of the notes that all scores of a kind share
Figure = Callable[[str], str]


def generated_pages(root: Path, figure: Figure = figure) -> dict[str, str]:
    """Path below docs/ -> Markdown.

    Args:
        root: The project's folder.
        figure: Makes the figure of a method; "" for none.
    """
    pages = {
        f"methods/{name}.md": page(model(name), figure(name), of_method(name, model(name).usage, root))
        for name in model_names()
    }
    pages |= {f"tasks/{name}.md": task_page(name, root) for name in task_names()}
    pages["methods/index.md"] = index(
        "Methods", "A method is a model of lm_eval: `--model NAME`.", map(model, model_names())
    )
    pages["tasks/index.md"] = index("Tasks", "`lm_eval --tasks NAME`.", map(task, sorted(task_names())))
    pages["metrics.md"] = metrics_page()
    pages["retrievers.md"] = "\n\n".join(
        ["# Retrievers", "`--model_args retriever=NAME`.", *(section(retriever(name)) for name in retriever_names())]
    )
    pages["errors.md"] = errors_page(root)
    pages["api.md"] = api_page()
    return pages


def page(about: Description, figure: str = "", *extras: str) -> str:
    """A page of its own, with the extras that are not empty at its end."""
    return "\n\n".join([f"# {about.name}", *_body(about, 2, figure), *filter(None, extras)]) + "\n"


def task_page(name: str, root: Path) -> str:
    """The page of a task: its card, examples, baselines, arguments, files."""
    about = task(name)
    parts = (card(about), examples(name), of_task(name, about.usage, root))
    return page(replace(about, sources=(), notes=()), "\n\n".join(filter(None, parts))) + sources(name)


def sources(name: str) -> str:
    """The upstream files of a task's default corpus and questions."""
    files = about_tasks()[name].files
    rows = [(f"[{file.path}]({file.url})", file.licence, file.terms) for file in files]
    return f"\n## Files\n\n{card_table(('file', 'licence', 'terms'), rows)}\n" if rows else ""


def section(about: Description) -> str:
    """A part of a page; what holds for all of its kind is said once."""
    return "\n\n".join([f"## {about.name}", *_body(about, 3, "", shared=about.kind == "retriever")])


def metrics_page() -> str:
    """All scores, by kind; what holds for a kind stands before its scores."""
    kinds: dict[tuple[str, ...], list[Description]] = {}
    for about in map(metric, metric_names()):
        kinds.setdefault(tuple(text for title, text in about.notes if title == KIND), []).append(about)
    parts = ["# Scores", "Every score, its formula in words, and its source."]
    for (title, *texts), scores in kinds.items():
        parts += [f"## {title.partition(':')[0].partition(' (')[0]}", title, *map(_paragraph, texts)]
        for about in scores:
            parts += [f"### {about.name}", *_body(replace(about, notes=_without_kind(about)), 4, "")]
    return "\n\n".join(parts) + "\n"


def _without_kind(about: Description) -> tuple[tuple[str, str], ...]:
    return tuple((title, text) for title, text in about.notes if title != KIND)


def index(title: str, text: str, entries: Iterable[Description]) -> str:
    """A table of all entries of a kind."""
    rows = [(f"[{about.name}]({about.name}.md)", about.summary, ", ".join(about.sources)) for about in entries]
    return f"# {title}\n\n{text}\n\n{card_table(('name', 'what', 'source'), rows)}\n"


def _body(about: Description, level: int, figure: str, shared: bool = True) -> list[str]:
    mark = "#" * level
    parts = [about.summary, f"```\n{about.usage}\n```", *map(_paragraph, about.text), figure]
    sources = about.sources or (("this project",) if about.kind == "model" else ())
    parts += [f"**Source:** {_linked(', '.join(sources))}"] if sources else []
    parts += [f"**{title.capitalize()}:** {' '.join(text.split())}" for title, text in about.notes]
    if about.departures:
        parts += [f"{mark} Departures", "\n".join(f"- {_sentence(one)}" for one in about.departures)]
    if about.arguments:
        how = HOW[about.kind].format(name=about.name)
        parts += [f"{mark} Arguments", f"`{how}`" if how else "", _table(about.arguments)]
    if about.shared and shared:
        parts += [f"{mark} Arguments of every {about.kind}", _table(about.shared)]
    return [part for part in parts if part]


def _table(arguments: Sequence[Argument]) -> str:
    rows = [(f"`{one.name}`", one.type, f"`{one.default}`" if one.default else "", one.meaning) for one in arguments]
    return card_table(("name", "type", "default", "meaning"), rows)


def _paragraph(text: str) -> str:
    """A paragraph; the lines of a formula become code."""
    lines = text.splitlines()
    if lines and all(line.startswith("    ") or not line for line in lines):
        return "```\n" + "\n".join(line[4:] for line in lines) + "\n```"
    return text


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text[:1].upper() + text[1:]


def _linked(text: str) -> str:
    """Papers as links."""
    text = re.sub(r"arXiv:(\d{4}\.\d{4,5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", text)
    return re.sub(r"doi:(\S+?)(?=[,)]|$)", r"[doi:\1](https://doi.org/\1)", text)


def api_page() -> str:
    """The names of ``from lm_eval_rag import ...``, by mkdocstrings."""
    parts = ["# Python", "All names that a program or a method needs: `from lm_eval_rag import run, Query, retrieve`.",
             "::: lm_eval_rag._run.run"]  # fmt: skip
    return "\n\n".join([*parts, *(f"::: lm_eval_rag.harness.{module}" for module in API)]) + "\n"
