"""The reading exercises of the first embedded generator, asked by the prompts of methods of several steps.

They keep the checkpoint from forgetting dated facts and questions with other relations. A thought is the document that
states the answer.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tiny"))

from packing import Row
from tiny_prompts import Asked, Exercise, Sampler

from lm_eval_rag.harness.core.prompts import Prompt, load_template
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.methods.prompts.worded import wordings

TEMPLATE = load_template(Path(__file__).resolve().parents[2] / "methods" / "prompts" / "ruleqa.toml")
FORMS = ("standard", "iter_retgen", "ircot", "search_agent", "direct")


def exercise_rows(seed: int) -> list[Row]:
    """The rows of one exercise, all for one method."""
    sampler = Sampler(seed)
    rng = random.Random(seed)
    exercise = sampler.exercise(docs=rng.randint(4, 10), guided=False, hard=0.7)
    form = rng.choice(FORMS)
    return [row for asked in exercise.asked for row in _rows(form, exercise, asked)]


def _rows(form: str, exercise: Exercise, asked: Asked) -> list[Row]:
    passages = [Passage(f"d{i}", doc.text) for i, doc in enumerate(exercise.docs)]
    thought = _support(exercise, asked)
    end = f"So the answer is {asked.answer}."
    if form == "standard":
        return [(form, Prompt(TEMPLATE, asked.text, tuple(passages)).render(), asked.answer)]
    if form == "direct":
        return [(form, wordings("ircot")["direct"].prompt(passages, question=asked.text).render(), asked.answer)]
    if form == "iter_retgen":
        prompt = wordings("iter_retgen")["paper"].prompt(passages, question=asked.text).render()
        return [(form, prompt, f"{thought} {end}".strip())]
    if form == "ircot":
        prompts = [
            wordings("ircot")["thought"].prompt(passages, question=asked.text, reasoning=said).render()
            for said in dict.fromkeys(("", thought))
        ]
        return [(form, prompt, reply) for prompt, reply in zip(prompts, filter(None, (thought, end)), strict=True)]
    subject = asked.text.split("what does ")[1].split(asked.relation)[0]
    first = f"So far: nothing.\nSearch: {asked.relation} of {subject}"
    plain = wordings("search_agent")["plain"]
    results = wordings("search_agent")["plain_results"].prompt(results=[p.text for p in passages[:3]]).render()
    seen = thought if thought in results else ""
    answer = asked.answer if seen else "I don't know"
    return [
        (form, plain.prompt(question=asked.text).render(), first.strip()),
        (
            form,
            plain.prompt(question=asked.text, reasoning=f"{first.strip()}\n{results}").render(),
            f"So far: {seen or 'nothing.'}\nAnswer: {answer}",
        ),
    ]


def _support(exercise: Exercise, asked: Asked) -> str:
    """The last document that states the answer of the question's relation; "" without one."""
    stating = [doc for doc in exercise.docs if doc.relation == asked.relation and doc.object == asked.answer]
    return max(stating, key=lambda doc: doc.when).text if stating else ""
