"""Demonstrations of the attribute predictor (arXiv:2408.05141, section 4.2), seeded and stratified by label.

The paper draws them at random from the public part of CRAG. Here they come from the release that the task has read
(``official``) or from a file of CRAG's, if the run says so, and only from the validation part (``split`` 0); otherwise
they are ours. Departure: every label gets equally many, as far as ``n`` allows, since at random most seeds miss one of
the five domains. The question itself is never drawn.

The paper merges CRAG's four rates of change into static and dynamic, and does not say where slow-changing belongs. By
the words of its prompt (appendix D.1), such an answer "will change over time", which is dynamic: our default. Its
results speak for static: a system that abstains from dynamic questions scores 27.5 on slow-changing ones, 1.7 on
fast-changing and 2.5 on real-time ones (figure 3), and "our focus has been on static and slow-changing questions"
(section 5.3). ``slow_changing=static`` follows the results.
"""

from __future__ import annotations

import bz2
import json
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.prompts import Shot
from lm_eval_rag.harness.data.page_store import labelled_questions, split_id

Rate = Literal["static", "dynamic"]
DYNAMIC = ("real-time", "fast-changing", "dynamic")
SLOW = "slow-changing"
OFFICIAL = "official"  # in place of a file: the questions that the task's files hold
VALIDATION = 0  # the split
MOST = 500  # labelled questions that are read of a file: CRAG's own has pages too, and 700 MB


def stratified(examples: Mapping[str, Sequence[str]], n: int, seed: int, without: str = "") -> tuple[Shot, ...]:
    """``n`` seeded examples in random order, or all if there are fewer.

    The numbers of two labels differ by at most one, unless a label has too few examples.

    Args:
        examples: Label -> questions.
        without: A question that is not drawn, whatever its case.
    """
    rng = random.Random(seed)
    queues = []
    for label in sorted(examples):
        texts = sorted(text for text in examples[label] if text.strip().lower() != without.strip().lower())
        queues.append([(text, label) for text in rng.sample(texts, len(texts))])
    rng.shuffle(queues)  # so that no label is first in every run, where n is no multiple
    rounds = range(max(map(len, queues), default=0))
    drawn = [queue[i] for i in rounds for queue in queues if i < len(queue)][:n]
    return tuple(Shot(f"Question: {text}", label) for text, label in rng.sample(drawn, len(drawn)))


def demonstrations_of(
    file: str, attribute: str, corpus: str | None, slow_changing: Rate = "dynamic"
) -> dict[str, list[str]]:
    """Label -> questions of the validation part: of a file, or (``official``) of the files of a question's task.

    Args:
        corpus: Of the question.
        slow_changing: The label of slow-changing questions.

    Raises:
        UserError: As :func:`read_demonstrations`, or the question comes from no files of CRAG's.
    """
    if file != OFFICIAL:
        return read_demonstrations(file, attribute, slow_changing)
    page_set, question = split_id(corpus or "")
    if question is None:
        raise UserError(
            f"demonstrations_file={OFFICIAL} takes CRAG's validation part from the files that crag_task1, 2 or 3 has "
            f"read; the questions of this run (corpus {corpus}) come from none. Give a file, or leave it out."
        )
    return _official(page_set, attribute, slow_changing)


@cache
def _official(page_set: str, attribute: str, slow_changing: Rate) -> dict[str, list[str]]:
    examples: dict[str, list[str]] = {}
    for query, label in labelled_questions(page_set, attribute, VALIDATION):
        examples.setdefault(_label(label, slow_changing), []).append(query.strip())
    return _checked(examples, f"demonstrations_file={OFFICIAL}: {page_set}", attribute)


def _label(label: str, slow_changing: Rate) -> str:
    """CRAG's four rates of change become two; other labels stay."""
    return slow_changing if label == SLOW else "dynamic" if label in DYNAMIC else label


@cache
def read_demonstrations(file: str, attribute: str, slow_changing: Rate = "dynamic") -> dict[str, list[str]]:
    """Label -> questions of the validation part of a file of CRAG's: JSON Lines, plain or .bz2; the first 500.

    A line needs ``query`` and the attribute, and ``split`` 0 where it has one. CRAG's four rates of change become two.

    Raises:
        UserError: The file cannot be read, a line is no JSON object, or fewer than two labels occur.
    """
    opener: Callable[..., Any] = bz2.open if file.endswith(".bz2") else open
    examples: dict[str, list[str]] = {}
    count = number = 0
    try:
        with opener(Path(file), "rt", encoding="utf-8") as lines:
            for line in lines:
                number += 1
                row = json.loads(line) if line.strip() else {}
                query, label = row.get("query"), row.get(attribute)
                if isinstance(query, str) and isinstance(label, str) and label and row.get("split", 0) == VALIDATION:
                    examples.setdefault(_label(label, slow_changing), []).append(query.strip())
                    count += 1
                if count == MOST:
                    break
    except (OSError, EOFError) as error:
        raise UserError(f"demonstrations_file={file} cannot be read: {error}.") from None
    except (ValueError, AttributeError) as error:
        raise UserError(f"demonstrations_file={file}, line {number}: not a JSON object ({error}).") from None
    return _checked(examples, f"demonstrations_file={file}", attribute)


def _checked(examples: dict[str, list[str]], where: str, attribute: str) -> dict[str, list[str]]:
    if len(examples) < 2:
        raise UserError(
            f"{where} has {len(examples)} labels of {attribute} in its validation part; two are needed. Give JSON "
            "Lines with query, static_or_dynamic, domain and split, such as CRAG's own file."
        )
    return examples
