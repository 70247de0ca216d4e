"""What a folder of tasks says of its tasks, for ``lm-eval-rag describe``, ``export`` and the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lm_eval_rag.harness.data.sources import Source


@dataclass(frozen=True, slots=True)
class TaskOption:
    """What ``--metadata`` of lm_eval may say to a task.

    Args:
        type: What it takes, in words.
        default: As it would be written; "" if it has none.
        meaning: What it does, in one sentence.
    """

    type: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class TaskAbout:
    """One task.

    Args:
        summary: What it asks, in one sentence.
        source: The paper or project that the questions come from; "this project" for invented worlds.
        options: What ``--metadata`` may say, by name.
        departures: How it differs from its source, one sentence or more each.
        files: The upstream files that its default corpus and questions are built from.
        facts: Title -> text: how many questions, over which passages, which slices, what gold answers and passages are.
        form: A document of the task with made-up content, where its own may not be shown; {} where they may.
        model: Arguments of a model that was made for the task, for its command; "" where there is none.
    """

    summary: str
    source: str
    options: Mapping[str, TaskOption] = field(default_factory=dict)
    departures: tuple[str, ...] = ()
    files: tuple[Source, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
