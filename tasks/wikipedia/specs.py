"""The tasks, and the corpora that each may be asked over.

A corpus is chosen by name (``--metadata '{"corpus": "mirror"}'``); the first choice of a task is its default. Nothing
stands in for a corpus that is not available. Full tasks and small public subsets have different names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lm_eval_rag.harness.common.errors import unknown
from lm_eval_rag.tasks.wikipedia import corpus_specs as of
from lm_eval_rag.tasks.wikipedia import fever, hotpot, musique, open_domain
from lm_eval_rag.tasks.wikipedia.corpus_specs import CORPORA, ReadQuestions


@dataclass(frozen=True, slots=True)
class Choice:
    """Where a task's questions come from if a certain corpus is chosen, and this corpus.

    Args:
        corpus: Name in :data:`CORPORA`.
        read: Reader of the questions.
        files: Its files.
        own: Whether each question is asked over its own passages alone.
        gold: Whether the questions name gold evidence that can be found in the corpus.
        lacks: What the questions lack that those of the task's other choices have; "" for nothing.
    """

    corpus: str
    read: ReadQuestions
    files: tuple[str, ...]
    own: bool = False
    gold: bool = True
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    Args:
        about: What it asks.
        questions: Number of questions.
        scoring: Whose official scores it has; a name in :data:`lm_eval_rag.harness.scoring.official.FAMILIES`.
        choices: By name of the choice; the first is the default.
    """

    about: str
    questions: int
    scoring: str
    choices: Mapping[str, Choice]


def _multihop(name: str, read: ReadQuestions, dev: tuple[str, ...]) -> dict[str, Choice]:
    """The choices that come with a dataset's official file."""
    pooled = Choice(f"{name}_pooled", read, dev)
    return {"pooled": pooled, "own": Choice(pooled.corpus, read, dev, own=True)}


def _open(read: ReadQuestions, files: tuple[str, ...]) -> dict[str, Choice]:
    """Open-domain choices, whose questions come without passages."""
    return {"wiki18_100w": Choice("wiki18_100w", read, files, gold=False), "mirror": _mirror(read, files)}


def _mirror(read: ReadQuestions, files: tuple[str, ...], lacks: str = "") -> Choice:
    """The pool of all small public files, in which a title may be that of another passage than the gold one."""
    return Choice("wiki_mirror", read, files, gold=False, lacks=lacks)


def _only(corpus: str, read: ReadQuestions, files: tuple[str, ...]) -> dict[str, Choice]:
    return {corpus.rpartition("_")[2]: Choice(corpus, read, files)}


_plain = open_domain.questions
TASKS: dict[str, Task] = {
    "hotpotqa": Task(
        "HotpotQA's development questions (distractor setting)", 7405, "hotpotqa",
        {
            **_multihop("hotpotqa", hotpot.questions, of.HOTPOT_DEV),
            "fullwiki": Choice("hotpotqa_fullwiki", hotpot.questions, of.HOTPOT_DEV),
            **_open(hotpot.named_questions, of.HOTPOT_NAMED),
        },
    ),
    "2wikimultihopqa": Task(
        "2WikiMultihopQA's development questions", 12576, "2wiki",
        {
            **_multihop("2wikimultihopqa", hotpot.questions, of.WIKI2_DEV),
            "hipporag": Choice("2wikimultihopqa_pool_hipporag", _plain, of.WIKI2_NAMED),
            **_open(_plain, of.WIKI2_NAMED),
        },
    ),
    "musique": Task(
        "MuSiQue's answerable development questions", 2417, "musique",
        {
            **_multihop("musique", musique.questions, of.MUSIQUE_DEV),
            **_open(musique.questions, of.MUSIQUE_DEV),
            "mirror": _mirror(_plain, of.MUSIQUE_NAMED, "the official ids, numbers of hops and aliases of answers"),
        },
    ),
    "bamboogle": Task(
        "Bamboogle: two-hop questions that a search engine answers wrongly", 125, "open_domain",
        _open(_plain, of.BAMBOOGLE),
    ),
    "fever": Task(
        "FEVER's claims (paper_dev): SUPPORTS, REFUTES or NOT ENOUGH INFO", 9999, "fever",
        {
            "pages": Choice("fever_pages", fever.questions, of.FEVER_DEV),
            "beir": Choice("fever_beir", fever.questions, of.FEVER_DEV),
            "mirror": _mirror(fever.questions, of.FEVER_DEV),
        },
    ),
    "rag_nq": Task("Natural Questions, open-domain", 3610, "open_domain", _open(_plain, of.NQ)),
    "rag_triviaqa": Task(
        "TriviaQA, DPR's test questions", 11313, "open_domain",
        {
            **_open(open_domain.dpr_topics, of.TRIVIAQA),
            "mirror": _mirror(open_domain.derived_topics, of.TRIVIAQA_DERIVED),
        },
    ),
    "rag_webquestions": Task("WebQuestions, test", 2032, "open_domain", _open(_plain, of.WEBQUESTIONS)),
    "hotpotqa_hipporag": Task(
        "HippoRAG's 1,000 HotpotQA questions", 1000, "hotpotqa",
        _only("hotpotqa_pool_hipporag", hotpot.questions, of.HOTPOT_1000),
    ),
    "2wikimultihopqa_hipporag": Task(
        "HippoRAG's 1,000 2WikiMultihopQA questions", 1000, "2wiki",
        _only("2wikimultihopqa_pool_hipporag", hotpot.questions, of.WIKI2_1000),
    ),
    "musique_hipporag": Task(
        "HippoRAG's 1,000 MuSiQue questions", 1000, "musique",
        _only("musique_pool_hipporag", musique.questions, of.MUSIQUE_1000),
    ),
    "hotpotqa_200": Task(
        "200 HotpotQA items from public repositories: 132 development and 68 training questions", 200, "hotpotqa",
        _multihop("hotpotqa_200", hotpot.questions, of.HOTPOT_200),
    ),
    "hotpotqa_train_100": Task(
        "100 HotpotQA training questions", 100, "hotpotqa",
        _multihop("hotpotqa_train_100", hotpot.questions, of.HOTPOT_TRAIN),
    ),
    "hotpotqa_500": Task(
        "500 HotpotQA development questions with retrieved passages", 500, "hotpotqa",
        _only("hotpotqa_500_retrieved", _plain, of.HOTPOT_500),
    ),
    "2wikimultihopqa_500": Task(
        "500 2WikiMultihopQA development questions with retrieved passages", 500, "2wiki",
        _only("2wikimultihopqa_500_retrieved", _plain, of.WIKI2_500),
    ),
    "musique_train_100": Task(
        "100 MuSiQue training questions", 100, "musique",
        _multihop("musique_train_100", musique.questions, of.MUSIQUE_TRAIN),
    ),
    "fever_345": Task(
        "345 claims (SUPPORTS or REFUTES) over their gold sentences alone", 345, "fever",
        _only("fever_345_sentences", fever.sentence_questions, of.FEVER_345),
    ),
    "rag_nq_2655": Task(
        "2,655 Natural Questions over their gold passages alone", 2655, "open_domain",
        _only("rag_nq_2655_pooled", open_domain.oracle_questions, of.NQ_ORACLE),
    ),
}  # fmt: skip


def task_of(name: str) -> Task:
    """The task of a name.

    Raises:
        UserError: There is none.
    """
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]


def choice_of(name: str, corpus: str | None) -> tuple[str, Choice]:
    """(name of the choice, choice) of a task's corpus; the default for None.

    Raises:
        UserError: The task is not asked over this corpus.
    """
    choices = task_of(name).choices
    chosen = next(iter(choices)) if corpus is None else corpus
    if chosen not in choices:
        sizes = "; ".join(
            f"{key}: {CORPORA[one.corpus].about} ({CORPORA[one.corpus].size or '?'} passages)"
            for key, one in choices.items()
        )
        raise unknown(f"corpus of {name}", str(chosen), choices, hint=f"{sizes}.")
    return chosen, choices[chosen]
