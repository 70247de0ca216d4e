"""What each task over Wikipedia is."""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.data.task_about import TaskAbout, TaskOption
from lm_eval_rag.tasks.wikipedia.card import GOLD
from lm_eval_rag.tasks.wikipedia.corpus_build import manifest
from lm_eval_rag.tasks.wikipedia.corpus_specs import CORPORA
from lm_eval_rag.tasks.wikipedia.specs import TASKS, Choice, Task, choice_of

PAPERS = {  # beginning of a task's name -> where its questions come from
    "hotpotqa": "HotpotQA (arXiv:1809.09600)",
    "2wikimultihopqa": "2WikiMultihopQA (arXiv:2011.01060)",
    "musique": "MuSiQue (arXiv:2108.00573)",
    "bamboogle": "Bamboogle (arXiv:2210.03350)",
    "fever": "FEVER (arXiv:1803.05355)",
    "rag_nq": "Natural Questions (Kwiatkowski et al., TACL 2019)",
    "rag_triviaqa": "TriviaQA (arXiv:1705.03551)",
    "rag_webquestions": "WebQuestions (Berant et al., EMNLP 2013)",
}
GROUPS = {
    "multihop": "The multi-hop tasks: hotpotqa, 2wikimultihopqa, musique, bamboogle.",
    "open_domain": "The open-domain tasks: rag_nq, rag_triviaqa, rag_webquestions.",
    "crp_table1": "The six tasks of CRP-RAG's Table 1: the open-domain ones, hotpotqa, 2wikimultihopqa and fever.",
}
TYPES = {  # family of scores -> what the column ``type`` says
    "hotpotqa": "bridge or comparison",
    "2wiki": "comparison, inference, compositional or bridge_comparison",
    "musique": "the number of hops, with their shape",
    "fever": "the label",
}
DEPARTURES = (
    "The corpus is chosen by name, and none stands in for another. Scores over different corpora are not comparable.",
    "2WikiMultihopQA's file of aliases is not used.",
)


def about() -> dict[str, TaskAbout]:
    """The tasks of this folder by name, groups included."""
    groups = {name: TaskAbout(about, "this project", {"corpus": _corpus("")}) for name, about in GROUPS.items()}
    return {**{name: _task(name, task) for name, task in TASKS.items()}, **groups}


def _task(name: str, task: Task) -> TaskAbout:
    paper = next(paper for begins, paper in PAPERS.items() if name.startswith(begins))
    default, choice = choice_of(name, None)
    options = {"corpus": _corpus(default, ", ".join(task.choices))}
    counted = f"{task.questions:,}" in task.about
    summary = task.about if counted else f"{task.about} ({task.questions:,} questions)"
    sources = dict.fromkeys((*choice.files, *CORPORA[choice.corpus].files))
    upstream = manifest()
    files = tuple(upstream[path] for path in sources)
    return TaskAbout(f"{summary}.", paper, options, DEPARTURES, files, _facts(task), _form(task, choice))


def _facts(task: Task) -> dict[str, str]:
    """Size, corpora by choice, slices, gold."""
    corpora = [
        f"`{name}`: {CORPORA[choice.corpus].about}{', each question over its own alone' if choice.own else ''} "
        f"({f'{CORPORA[choice.corpus].size:,}' if CORPORA[choice.corpus].size else 'not counted'} passages"
        f"{f'; its questions lack {choice.lacks}' if choice.lacks else ''})"
        for name, choice in task.choices.items()
    ]
    return {
        "questions": f"{task.questions:,}.",
        "corpora": f"{'; '.join(corpora)}. The first is the default.",
        "slices": f"type: {TYPES.get(task.scoring, 'none is given')}.",
        "gold": f"The dataset's answers. {GOLD}",
    }


def _form(task: Task, choice: Choice) -> dict[str, Any]:
    """A document; the scores of some datasets need more of it."""
    claim = task.scoring == "fever"
    form: dict[str, Any] = {
        "id": "made-up-1",
        "query": "Vale lies in Norn." if claim else "Which country does Ada Moss's town of birth lie in?",
        "time": None,
        "answers": ["SUPPORTS" if claim else "Norn"],
        "type": "SUPPORTS" if claim else "bridge",
        "corpus": f"{choice.corpus}/0123456789ab",
        "scoring": task.scoring,
        "gold": ["Vale"] if claim else ["Ada Moss", "Vale"],
    }
    facts = {"facts": [{"passage": "Ada Moss", "sentence": 0}, {"passage": "Vale", "sentence": 0}]}
    triples = {"triples": [["Ada Moss", "place of birth", "Vale"], ["Vale", "country", "Norn"]]}
    more: dict[str, dict[str, Any]] = {
        "hotpotqa": facts,
        "2wiki": {**facts, **triples},
        "fever": {"evidence_sets": [[{"passage": "Vale", "sentence": 0}]]},
    }
    return {**form, **more.get(task.scoring, {})}


def _corpus(default: str, names: str = "the name of a corpus that all tasks of the group have") -> TaskOption:
    return TaskOption(names, default, "The passages that the questions are asked over.")
