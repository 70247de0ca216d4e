"""Attribute predictor (section 4.2): the domain, and whether an answer changes with time.

In context: demonstrations, several samples, and the label that most of them give; or a support vector machine on
sentence embeddings. The paper tells neither the number of samples nor their temperature; the demonstrations are ours,
not drawn from the benchmark. As in the paper, CRAG's four rates of change are two here, and the question type is not
predicted.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from lm_eval_rag.harness.core.asks import classify, sample
from lm_eval_rag.harness.core.types import Plan, Query
from lm_eval_rag.methods.crag.replies import choice
from lm_eval_rag.methods.crag.wording import END, demonstrations, prompt

LABELS = {
    "static_or_dynamic": ("static", "dynamic"),
    "domain": ("finance", "sports", "music", "movie", "open"),
}
ALIASES = {"movies": "movie", "film": "movie", "films": "movie", "sport": "sports", "encyclopedia": "open"}
OTHERWISE = {"static_or_dynamic": "static", "domain": "open"}  # where no sample could be read
Attribute = Literal["static_or_dynamic", "domain"]


def predict(
    query: Query,
    attribute: Attribute,
    notes: list[str],
    *,
    svm: str | None,
    shots: int,
    samples: int,
    temperature: float,
    seed: int,
    prompt_file: str | None,
) -> Plan[str]:
    """The label of a question.

    Args:
        notes: Takes ``<attribute> unread`` where no sample names a label; then it is static, or open.
        svm: A classifier's folder; None asks the generator.
        shots: Demonstrations.
        samples: Of which the most frequent label wins, ties by the one that came first.
        seed: Of the demonstrations.
    """
    if svm is not None:
        return (yield from classify(query.text, attribute, svm))
    shown = prompt(
        attribute,
        f"Question: {query.text}",
        shots=demonstrations(attribute, shots, seed, prompt_file),
        prompt_file=prompt_file,
    )
    replies = yield from sample(shown, samples, temperature, max_tokens=16, stop=("###", END))
    labels = LABELS[attribute]
    named = [choice(reply, (*labels, *ALIASES)) for reply in replies]
    votes = Counter(label for name in named if (label := ALIASES.get(name or "", name)) in labels)
    if votes:
        return str(votes.most_common(1)[0][0])
    notes.append(f"{attribute} unread")
    return OTHERWISE[attribute]
