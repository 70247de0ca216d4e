"""The simplest answers to reasoning_demo, and the most that one retrieval can reach.

    python scripts/tiny_steps/baselines.py

Exact match in percent. None of them reasons: a method that does not beat them has shown nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from teacher import Teacher

from lm_eval_rag.harness.core.types import SHORT, Passage, Query
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.retrieval import make_retriever
from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.methods.standard_rag import standard_rag
from lm_eval_rag.tasks.reasoning_demo.build import questions_of
from lm_eval_rag.tasks.reasoning_demo.questions import Reasoning
from lm_eval_rag.tasks.reasoning_demo.world import Part, make_parts

Questions = Sequence[Reasoning]


def most_common(parts: tuple[Part, Part], test: Questions, train: Questions) -> list[str]:
    """The most common answer of the training questions."""
    (answer,) = Counter(question.answer for question in train).most_common(1)[0][:1]
    return [answer] * len(test)


def common_of_type(parts: tuple[Part, Part], test: Questions, train: Questions) -> list[str]:
    """The most common answer of the training questions of the same type; of two named entities the first."""
    answers = defaultdict[str, Counter[str]](Counter)
    for question in train:
        answers[question.type][question.answer] += 1
    return [
        question.topics[0] if question.type == "comparison_which" else answers[question.type].most_common(1)[0][0]
        for question in test
    ]


def first_title(parts: tuple[Part, Part], test: Questions, train: Questions) -> list[str]:
    """The title of the first passage that BM25 finds."""
    return [rows[0] for rows in _retrieved(parts, test, 1)]


def most_named(parts: tuple[Part, Part], test: Questions, train: Questions) -> list[str]:
    """The object that the first ten passages name most often, except entities of the question."""
    facts = {**parts[0].facts, **parts[1].facts}
    answers = []
    for question, titles in zip(test, _retrieved(parts, test, 10), strict=True):
        named = Counter(one for title in titles for fact in facts[title] for one in fact.objects)
        answers.append(next(name for name, _ in named.most_common() if name not in question.topics))
    return answers


def one_retrieval(parts: tuple[Part, Part], test: Questions, train: Questions) -> list[str]:
    """A perfect reader of the first ten passages that one retrieval with the question finds."""
    teacher = Teacher(parts[0], test, reads=True)
    queries = [Query(str(number), question.text, answer_form=SHORT) for number, question in enumerate(test)]
    return [answer.text for answer, _ in run(standard_rag, queries, corpus=_passages(parts), generator=teacher)]


BASELINES: dict[str, Callable[[tuple[Part, Part], Questions, Questions], list[str]]] = {
    "most common answer": most_common,
    "most common answer of the type": common_of_type,
    "first title retrieved": first_title,
    "most named in ten passages": most_named,
    "perfect reader of one retrieval": one_retrieval,
}


def _passages(parts: tuple[Part, Part]) -> list[Passage]:
    return [Passage(page.title, page.text) for part in parts for page in part.pages]


def _retrieved(parts: tuple[Part, Part], questions: Questions, k: int) -> list[list[str]]:
    passages = _passages(parts)
    rows = make_retriever("bm25", Corpus.of(passages)).search([question.text for question in questions], k)
    return [[passages[row].id for row, _ in ranking] for ranking in rows]


def shares(questions: Questions, answers: Sequence[str]) -> dict[str, float]:
    """Share of exact answers, in all and by type."""
    right = defaultdict[str, list[bool]](list)
    for question, answer in zip(questions, answers, strict=True):
        for kind in ("all", question.type):
            right[kind].append(normalise(answer) == normalise(question.answer))
    return {kind: sum(values) / len(values) for kind, values in sorted(right.items())}


def measured(seed: int = 0) -> dict[str, dict[str, float]]:
    """The shares of every baseline."""
    parts, questions = make_parts(seed), questions_of(seed)
    test, train = questions["test"], questions["train"]
    return {name: shares(test, answers(parts, test, train)) for name, answers in BASELINES.items()}


def main() -> None:
    table = measured()
    kinds = list(next(iter(table.values())))
    print(f"| | {' | '.join(kinds)} |\n|---|{'---:|' * len(kinds)}")
    for name, row in table.items():
        print(f"| {name} | {' | '.join(f'{100 * row[kind]:.1f}' for kind in kinds)} |")


if __name__ == "__main__":
    main()
