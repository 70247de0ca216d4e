"""The form of a submission: ``submission.json``, and ``predictions/TASK.jsonl`` with one line per question.

It has no scores: whoever reads it computes them. Every text and list has a limit, unknown keys are refused, and numbers
are finite, so that a hostile file is refused while it is parsed.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

SCHEMA = 1
CARD, CLAIM, PREDICTIONS = "submission.json", "claim.json", "predictions"
LINE_BYTES, CARD_BYTES, FILE_BYTES, ALL_BYTES = 1 << 16, 1 << 18, 1 << 23, 1 << 24
TASKS, LINES = 64, 20_000  # tasks of a submission, predictions of a task
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # categories of characters that are not seen, or turn a line around
ADDRESS = re.compile(r"https://[\w.-]+(:\d+)?(/[\w./~%+#?=&@:,-]*)?", re.ASCII)


def _seen(text: str) -> str:
    """The text, if a reader sees all of it."""
    hidden = next((character for character in text if unicodedata.category(character) in HIDDEN), None)
    if hidden is not None:
        raise ValueError(f"the character U+{ord(hidden):04X} is invisible; leave it out")
    if text != text.strip() or not text:
        raise ValueError("the text is blank, or begins or ends with a space")
    return text


def _unicode(text: str) -> str:
    """The text, if it can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is no character; write the whole one") from None
    return text


def _address(text: str) -> str:
    if not ADDRESS.fullmatch(text):
        raise ValueError("give an address that begins with https://")
    return text


Name = Annotated[str, Field(min_length=1, max_length=80), AfterValidator(_seen)]
Note = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_seen)]
Address = Annotated[str, Field(max_length=300), AfterValidator(_address)]
Id = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_unicode)]
Text = Annotated[str, Field(max_length=4000), AfterValidator(_unicode)]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Task = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,64}$")]
Count = Annotated[int, Field(ge=0, le=10**9)]
Amount = Annotated[float, Field(ge=0, le=1e9)]


class Form(BaseModel):
    """Strict: no unknown keys, no conversion of types, no NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Budget(Form):
    """What all questions of a task cost together, as measured by who submits; None where a question does not say.

    Args:
        calls: Calls of a language model.
        prompt_tokens: Tokens read; ``completion_tokens`` are those written.
        seconds: Time of the backends.
        cost: US dollars.
    """

    calls: Count | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    seconds: Amount | None = None
    cost: Amount | None = None


class RunOf(Form):
    """What one task's predictions come from.

    Args:
        version: Of the task.
        data: Hash of the task's questions and gold answers (:mod:`lm_eval_rag.leaderboards.submissions.answer_key`).
        corpus: Hash of the corpus that was searched; None if there is none, or it is the task's. If it is not that of
            the task's corpus, ``retrieved`` names passages of the submitter's own: recall is not computed, and the
            entry is shown apart.
        budget: Totals; they must be those of the lines.
        arguments: The model's arguments, as text, without those that only name files.
    """

    version: Name
    data: Hash
    corpus: Annotated[str, Field(pattern=r"^[0-9a-f]{12,64}$")] | None = None
    budget: Budget | None = None
    arguments: Annotated[
        dict[Name, Annotated[str, Field(max_length=500), AfterValidator(_unicode)]], Field(max_length=64)
    ]


class System(Form):
    """What a submission and a claim say of the system."""

    schema_version: Annotated[int, Field(ge=SCHEMA, le=SCHEMA)] = SCHEMA
    name: Name
    team: Name
    method: Name
    generator: Name | None = None
    parameters: Annotated[int, Field(ge=0, le=10**14)] | None = None


class Card(System):
    """``submission.json``.

    Args:
        name: Of the entry, unique on a board.
        team: Who submits it.
        method: Name of the method, such as ``rulerag_ft``.
        generator: Name of the generator; None for a method without one.
        parameters: Number of the generator's parameters; None if it is unknown.
        revision: Of the generator's weights.
        retriever: Name of the retriever; None for a method without one.
        code: Address of the code.
        training_data: What the system was trained on, as declared.
        contamination: What is known of test questions in training data, as declared.
        package: Version of lm-eval-rag that packed it.
        scorer: Hash of the scorer with which the submitter saw scores; a board computes its own.
        tasks: Task -> what its predictions come from.
    """

    revision: Name | None = None
    retriever: Name | None = None
    code: Address | None = None
    training_data: Note | None = None
    contamination: Note | None = None
    package: Name
    scorer: Hash | None = None
    tasks: Annotated[dict[Task, RunOf], Field(min_length=1, max_length=TASKS)]


class Claim(System):
    """``claim.json``: scores that somebody reports without predictions. They are shown apart and never ranked.

    Args:
        source: Address of the paper or page that reports them.
        scores: Task -> metric -> score, in the unit of the metric (shares in [0, 1]).
    """

    source: Address
    scores: Annotated[
        dict[Task, Annotated[dict[Name, Annotated[float, Field(ge=-1e9, le=1e9)]], Field(min_length=1, max_length=64)]],
        Field(min_length=1, max_length=TASKS),
    ]


class UsedRule(Form):
    """A rule that guided an answer."""

    head: Id
    body: Id


class Prediction(Form):
    """One line of predictions.

    Args:
        id: Of the question.
        answer: The answer; "" when there is none.
        abstained: Whether the system declined to answer.
        confidence: How sure the system is, on a scale of its own on which more is surer; None if it does not say.
        retrieved: Ids of the retrieved passages, best first; None for a system that does not retrieve.
        k: The depth up to which recall is scored; None for the length of ``retrieved``.
        rules: The rules that guided the answer; None for a system that goes by none.
        evidence: (passage, index of the sentence) of the predicted evidence; None if the system predicts none. Beside
            lines with evidence it counts as [].
        triples: The predicted facts; None and [] likewise.
        calls: Calls of a language model.
        prompt_tokens: Tokens read; ``completion_tokens`` are those written.
        seconds: Time of the backends; as measured by who submits, so never ranked.
        cost: US dollars.
    """

    id: Id
    answer: Text
    abstained: bool = False
    confidence: Annotated[float, Field(ge=-1e9, le=1e9)] | None = None
    retrieved: Annotated[list[Id], Field(max_length=500)] | None = None
    k: Annotated[int, Field(ge=0, le=1000)] | None = None
    rules: Annotated[list[UsedRule], Field(max_length=30)] | None = None
    evidence: Annotated[list[tuple[Id, Count]], Field(max_length=50)] | None = None
    triples: Annotated[list[tuple[Id, Id, Id]], Field(max_length=50)] | None = None
    calls: Count | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    seconds: Amount | None = None
    cost: Amount | None = None


def slug_of(name: str) -> str:
    """A name in addresses and file names: letters, digits and hyphens, and a hash where others were left out."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
    lossless = re.fullmatch(r"[A-Za-z0-9 ._-]+", name) is not None and len(name) <= 60
    return plain if plain and lossless else f"{plain or 'entry'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
