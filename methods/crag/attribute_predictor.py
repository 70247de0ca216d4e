"""Attribute predictor (section 4.2): the domain, and whether the answer changes with time.

Either the generator sees demonstrations and the most frequent label of several samples wins, or a support vector
machine on sentence embeddings decides. The paper does not give the number of samples or their temperature. The
demonstrations are ours, or from CRAG's validation part (:mod:`.demonstrations`). As in the paper, CRAG's four rates of
change are two here, the question type is not predicted, and neither the question nor a demonstration shows when it was
asked (appendix D.1 has the question alone). The paper does not say which of the two slow-changing questions belong to.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from lm_eval_rag.harness.core.asks import classify, sample
from lm_eval_rag.harness.core.types import Plan, Query
from lm_eval_rag.methods.crag.crag_prompts import END, own_examples, prompt
from lm_eval_rag.methods.crag.demonstrations import Rate, demonstrations_of, stratified
from lm_eval_rag.methods.crag.replies import choice

LABELS = {
    "static_or_dynamic": ("static", "dynamic"),
    "domain": ("finance", "sports", "music", "movie", "open"),
}
ALIASES = {"movies": "movie", "film": "movie", "films": "movie", "sport": "sports", "encyclopedia": "open"}
DEFAULTS = {"static_or_dynamic": "static", "domain": "open"}  # if no sample can be parsed
Attribute = Literal["static_or_dynamic", "domain"]


def predict(
    query: Query,
    attribute: Attribute,
    notes: list[str],
    *,
    svm: str | None,
    shots: int,
    shots_file: str | None,
    samples: int,
    temperature: float,
    seed: int,
    prompt_file: str | None,
    slow_changing: Rate = "dynamic",
) -> Plan[str]:
    """The label of a question.

    Args:
        notes: Gets ``<attribute> unparsed`` if no sample names a label; the label is then ``static`` or ``open``.
        svm: Folder of a classifier; None asks the generator.
        shots: Number of demonstrations, equally many of each label.
        shots_file: Labelled questions of CRAG's: a file, or ``official`` for those of the task; None for our own.
        samples: Number of samples; the most frequent label wins, and of equally frequent ones the first.
        seed: For the choice of demonstrations.
        slow_changing: The label of slow-changing questions of CRAG's among the demonstrations.
    """
    if svm is not None:
        return (yield from classify(query.text, attribute, svm))
    pool = (
        demonstrations_of(shots_file, attribute, query.corpus, slow_changing)
        if shots_file
        else own_examples(attribute, prompt_file)
    )
    examples = stratified(pool, shots, seed, query.text)
    shown = prompt(attribute, f"Question: {query.text}", shots=examples, prompt_file=prompt_file)
    replies = yield from sample(shown, samples, temperature, max_tokens=16, stop=("###", END))
    labels = LABELS[attribute]
    words = [choice(reply, (*labels, *ALIASES)) for reply in replies]
    votes = Counter(label for word in words if (label := ALIASES.get(word or "", word)) in labels)
    if votes:
        return str(votes.most_common(1)[0][0])
    notes.append(f"{attribute} unparsed")
    return DEFAULTS[attribute]
