"""What the teacher replies to each step of each method: one function a kind of step, and their table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from knowledge import DONT_KNOW, conclude, facts_seen, is_complete, next_topic, read_fact, steps_of
from prompt_forms import Asked

from lm_eval_rag.tasks.reasoning_demo.questions import Reasoning, asked
from lm_eval_rag.tasks.reasoning_demo.world import Fact

if TYPE_CHECKING:
    from teacher import Teacher

LAST = "There are no more searches."


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
    """What one passage adds to the answer: a fact, with the answer if it is known then."""
    assert read.question is not None
    facts = teacher.seen(read, f"{read.docs} {read.reasoning}")
    new = [fact.text for fact in facts if fact.text not in read.reasoning and fact.text in (read.docs or "")]
    end = ending(read.question, facts)
    if not new:
        return end
    return f"{new[-1][:-1]}, s{end[1:]}" if is_complete(read.question, facts) else new[0]


def relevant(teacher: Teacher, read: Asked) -> str:
    """Whether the passage states a fact of the chain."""
    chain = read.question.chain if read.question else ()
    return "yes" if any(fact.text in (read.docs or "") for fact in chain) else "no"


def supported(teacher: Teacher, read: Asked) -> str:
    """Whether the passage states the fact of the segment."""
    stated = re.split(r",? so the answer is", read.fields["segment"], flags=re.IGNORECASE)[0]
    return "fully" if stated.strip() and stated in (read.docs or "") else "no"


def useful(teacher: Teacher, read: Asked) -> str:
    """5 for the answer, 3 for a fact, else 1."""
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
