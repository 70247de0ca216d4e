"""A scripted teacher: a generator that knows the world and answers each prompt of each method as that prompt asks.

It finds out by the prompt's instruction which step of which method asks, reads the fields of the prompt by the same
template that wrote them, and answers from a table of functions. ``reads=True`` is an honest reader: it uses only facts
that the prompt states, says "I don't know" (of claims: NOT ENOUGH INFO) if they do not suffice, and invents entities
where a step must be written without documents. ``reads=False`` knows all facts.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from knowledge import (
    DONT_KNOW,
    conclude,
    facts_seen,
    guessed,
    is_complete,
    next_topic,
    read_fact,
    steps_of,
    sub_questions,
)

from lm_eval_rag.harness.core.prompts import load_template
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.tasks.reasoning_demo.questions import Reasoning, asked
from lm_eval_rag.tasks.reasoning_demo.world import Fact, Part

METHODS = [
    "chain_of_knowledge",
    "crp_rag",
    "iter_retgen",
    "ircot",
    "search_agent",
    "self_rag",
    "think_then_act",
    "tree_of_thoughts",
    "verify_and_edit",
]
LISTS = ("known", "thoughts", "facts", "steps", "answers", "questions")  # fields of several lines
MANY, ONE = r".*?", r"[^\n]*"  # patterns of fields
LAST = "There are no more searches."


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt that was read.

    Args:
        step: Name of the step, as ``ircot.thought``.
        question: What it asks about; None if the teacher does not know the question.
        fields: Texts of the prompt by name.
        docs: The documents; None without any.
        reasoning: What the model has written so far.
        sample: Number of the sample.
    """

    step: str
    question: Reasoning | None
    fields: dict[str, str]
    docs: str | None
    reasoning: str
    sample: int


@cache
def forms() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """(step, pattern) of every prompt of the methods; the patterns with the longest instruction first."""
    found: list[tuple[int, str, re.Pattern[str]]] = []

    def add(step: str, instructions: set[str], text: str, answer: str) -> None:
        for head in instructions:
            body = re.escape(text)
            for name in re.findall(r"\\\{(\w+)\\\}", body):
                body = body.replace(rf"\{{{name}\}}", f"(?P<{name}>{MANY if name in LISTS else ONE})", 1)
            pattern = rf"{re.escape(head)}\n(?:Documents:\n(?P<docs>.*?)\n)?{body}\n{re.escape(answer)}(?: (?P<r>.*))?"
            found.append((len(head), step, re.compile(pattern, re.DOTALL)))

    base = load_template(Path(str(files("lm_eval_rag.methods.prompts") / "ruleqa.toml")))
    add("standard.answer", {base.instruction, base.instruction_closed}, "Question: {query}", base.answer)
    for method in METHODS:
        for step, wording in wordings(method).items():
            template = wording.template
            heads = {template.instruction, template.instruction_closed}
            add(f"{method}.{step}", heads, wording.text, template.answer)
    return tuple((step, pattern) for _, step, pattern in sorted(found, key=lambda form: -form[0]))


class Teacher:
    """The generator.

    Args:
        part: The world.
        questions: What is asked.
        reads: Whether it uses only what prompts state.
    """

    fingerprint = "teacher"
    batch = 512

    def __init__(self, part: Part, questions: Sequence[Reasoning], *, reads: bool) -> None:
        self.part, self.reads = part, reads
        self.known = sub_questions(questions, part)
        self.rows: list[tuple[str, str, str]] = []  # (step, prompt, reply) of all that was asked

    def generate(self, prompts: Sequence[str], decoding: Decoding, samples: Sequence[int]) -> list[str]:
        """The replies."""
        return [self.reply(prompt, sample) for prompt, sample in zip(prompts, samples, strict=True)]

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Nearly 0 for the teacher's own reply, and very low for any other."""
        return [-0.01 if self.reply(prompt).startswith(reply.strip()) else -30.0 for prompt, reply in pairs]

    def count_tokens(self, text: str) -> int:
        """Words."""
        return len(text.split())

    def room(self, max_tokens: int) -> None:
        """No limit."""

    def reply(self, prompt: str, sample: int = 0) -> str:
        """The reply to one prompt, which is recorded."""
        read = self.read(prompt, sample)
        reply = ANSWERS[read.step](self, read)
        self.rows.append((read.step, prompt, reply))
        return reply

    def read(self, prompt: str, sample: int = 0) -> Asked:
        """Which step asks, and the fields of its prompt.

        Raises:
            ValueError: It is none of the methods' prompts.
        """
        for step, pattern in forms():
            if match := pattern.fullmatch(prompt):
                fields = {name: text or "" for name, text in match.groupdict().items() if name not in ("docs", "r")}
                text = fields.get("question") or fields.get("query") or fields.get("step") or ""
                return Asked(step, self.known.get(text), fields, match["docs"], match["r"] or "", sample)
        raise ValueError(f"The teacher does not know this prompt:\n{prompt}")

    def seen(self, read: Asked, text: str) -> list[Fact]:
        """The facts of the question's chain that the teacher may use."""
        assert read.question is not None, read
        return facts_seen(read.question, text if self.reads else None)

    def imagined(self, read: Asked, text: str) -> list[Fact]:
        """A whole chain: what a text states or the teacher knows, and invented facts for the rest."""
        assert read.question is not None, read
        rng = random.Random(f"{read.question.text} {read.sample}")
        known = self.seen(read, "") if not self.reads else _facts_in(text)
        return guessed(read.question, known, rng, self.part)


def _facts_in(text: str) -> list[Fact]:
    """The facts that sentences of a text state."""
    sentences = re.split(r"(?<=\.)\s+|\n|(?<=\d\.) ", text)
    return [fact for sentence in sentences if (fact := read_fact(re.sub(r"^\d+\. ", "", sentence)))]


def ending(question: Reasoning, facts: Sequence[Fact]) -> str:
    """The sentence that states the answer."""
    return f"So the answer is {conclude(question, facts)}."


def direct(teacher: Teacher, read: Asked) -> str:
    """The bare answer, from the documents or from facts in the prompt."""
    given = read.docs or read.fields.get("facts") or ""
    return "" if read.question is None else conclude(read.question, teacher.seen(read, given))


def rationale(teacher: Teacher, read: Asked) -> str:
    """All facts that the documents state, then the answer."""
    assert read.question is not None
    facts = teacher.seen(read, read.docs or "")
    return " ".join([*(fact.text for fact in facts), ending(read.question, facts)])


def next_sentence(teacher: Teacher, read: Asked) -> str:
    """The next fact, or the answer after the last one."""
    assert read.question is not None
    facts = teacher.seen(read, f"{read.docs} {read.reasoning}")
    return next((fact.text for fact in facts if fact.text not in read.reasoning), ending(read.question, facts))


def invented(teacher: Teacher, read: Asked) -> str:
    """A rationale without documents, after the sentences that are known."""
    assert read.question is not None
    facts = teacher.imagined(read, read.reasoning)
    return " ".join([*(f.text for f in facts if f.text not in read.reasoning), ending(read.question, facts)])


def next_thought(teacher: Teacher, read: Asked) -> str:
    """The next sentence without documents."""
    assert read.question is not None
    thoughts = read.fields["thoughts"]
    facts = teacher.imagined(read, thoughts)
    return next((fact.text for fact in facts if fact.text not in thoughts), ending(read.question, facts))


def by_thoughts(teacher: Teacher, read: Asked) -> str:
    """The answer that thoughts lead to."""
    assert read.question is not None
    return conclude(read.question, teacher.imagined(read, read.fields["thoughts"]))


def turn(teacher: Teacher, read: Asked) -> str:
    """A turn of the search agent: what was found last, and the next search or the answer."""
    question, transcript = read.question, read.reasoning
    assert question is not None
    found = facts_seen(question, transcript)
    if LAST in transcript:
        return conclude(question, found if teacher.reads else question.chain)
    said = " ".join(line for line in transcript.split("\n") if line.startswith("So far: "))
    new = [fact.text for fact in found if fact.text not in said]
    thought = "So far: " + " ".join(new or ["nothing."])
    for subject, noun in next_topic(question, found):
        if f"Search: {noun} of {subject}" not in transcript:
            return f"{thought}\nSearch: {noun} of {subject}"
    return f"{thought}\nAnswer: {conclude(question, found if teacher.reads else question.chain)}"


def segment(teacher: Teacher, read: Asked) -> str:
    """What one passage adds to the answer: a fact, or the answer."""
    assert read.question is not None
    facts = teacher.seen(read, f"{read.docs} {read.reasoning}")
    new = [fact for fact in facts if fact.text not in read.reasoning and fact.text in (read.docs or "")]
    if new and not (is_complete(read.question, facts) and new[0] == facts[-1]):
        return new[0].text
    return ending(read.question, facts)


def relevant(teacher: Teacher, read: Asked) -> str:
    """Whether the passage states a fact of the chain."""
    chain = read.question.chain if read.question else ()
    return "yes" if any(fact.text in (read.docs or "") for fact in chain) else "no"


def supported(teacher: Teacher, read: Asked) -> str:
    """Whether the passage states the segment, or the last fact of the chain beside the answer."""
    statement, docs = read.fields["segment"], read.docs or ""
    last = read.question.chain[-1].text if read.question else ""
    right = read.question is not None and f"answer is {read.question.answer}" in statement
    return "fully" if statement in docs or (right and last in docs) else "no"


def useful(teacher: Teacher, read: Asked) -> str:
    """5 for the answer, 3 for a fact of the chain, else 1."""
    assert read.question is not None
    if "answer is" in read.fields["segment"]:
        return "1" if DONT_KNOW in read.fields["segment"] else "5"
    return "3" if read_fact(read.fields["segment"]) else "1"


def look_up(teacher: Teacher, read: Asked) -> str:
    """The question that a sentence answers."""
    fact = read_fact(read.fields["sentence"])
    return asked((fact.relation,), fact.subject) if fact else read.fields["question"]


def search_words(teacher: Teacher, read: Asked) -> str:
    """A search for what a sentence says."""
    fact = read_fact(read.fields["sentence"])
    return f"{fact.relation} of {fact.subject}" if fact else read.fields["sentence"]


def corrected(teacher: Teacher, read: Asked) -> str:
    """The sentence as the documents have it."""
    fact = read_fact(read.fields["sentence"])
    true = teacher.part.by_topic.get((fact.subject, fact.relation)) if fact else None
    if true is None or (teacher.reads and true.text not in (read.docs or "")):
        return read.fields["sentence"]
    return true.text


def one_fact(teacher: Teacher, read: Asked) -> str:
    """The fact that answers a sub-question, or that the documents do not say it."""
    facts = teacher.seen(read, read.docs or "") if read.question else []
    return facts[-1].text if facts and read.question and is_complete(read.question, facts) else f"{DONT_KNOW}."


def summary(teacher: Teacher, read: Asked) -> str:
    """The facts of the chain that documents state."""
    return " ".join(fact.text for fact in teacher.seen(read, read.docs or "")) if read.question else ""


def next_step(teacher: Teacher, read: Asked) -> str:
    """The first sub-question that is not known; the last is final."""
    assert read.question is not None
    steps = steps_of(read.question)
    step = next((step for step in steps if step not in read.fields["known"]), steps[-1])
    return f"Final: {step}" if step == steps[-1] else step


def along(teacher: Teacher, read: Asked) -> str:
    """The answer from documents and from what is known."""
    assert read.question is not None
    facts = teacher.seen(read, f"{read.docs} {read.fields.get('known', '')}")
    return ending(read.question, facts)


def majority(teacher: Teacher, read: Asked) -> str:
    """The most frequent of several answers."""
    answers = [re.sub(r"^\d+\. ", "", line) for line in read.fields["answers"].split("\n")]
    return f"So the answer is {Counter(answers).most_common(1)[0][0]}."


def always(text: str) -> Callable[[Teacher, Asked], str]:
    """The same reply to every prompt."""
    return lambda teacher, read: text


def repeated(teacher: Teacher, read: Asked) -> str:
    """The question as it is."""
    return read.fields["question"]


ANSWERS: dict[str, Callable[[Teacher, Asked], str]] = {
    "standard.answer": direct,
    "iter_retgen.paper": rationale,
    "iter_retgen.flashrag": direct,
    "ircot.thought": next_sentence,
    "ircot.cot": rationale,
    "ircot.direct": direct,
    "search_agent.plain": turn,
    "think_then_act.assess": always("clear"),
    "think_then_act.incomplete": repeated,
    "think_then_act.ambiguous": repeated,
    "think_then_act.confidence": always("no"),
    "think_then_act.stated": always("0"),
    "think_then_act.answer": direct,
    "self_rag.retrieve": always("yes"),
    "self_rag.segment": segment,
    "self_rag.relevant": relevant,
    "self_rag.supported": supported,
    "self_rag.useful": useful,
    "verify_and_edit.rationale": invented,
    "verify_and_edit.verify": look_up,
    "verify_and_edit.edit": one_fact,
    "verify_and_edit.answer": direct,
    "chain_of_knowledge.rationale": invented,
    "chain_of_knowledge.query": search_words,
    "chain_of_knowledge.correct": corrected,
    "chain_of_knowledge.answer": direct,
    "tree_of_thoughts.thought": next_thought,
    "tree_of_thoughts.value": always("likely"),
    "tree_of_thoughts.answer": by_thoughts,
    "crp_rag.step": next_step,
    "crp_rag.rewrite": repeated,
    "crp_rag.summarise": summary,
    "crp_rag.answer_step": one_fact,
    "crp_rag.suffices": lambda teacher, read: "no" if DONT_KNOW in one_fact(teacher, read) else "yes",
    "crp_rag.reason": one_fact,
    "crp_rag.last_step": along,
    "crp_rag.one_shot": along,
    "crp_rag.fuse_answers": majority,
}
