"""What each task over Wikipedia is."""

from __future__ import annotations

from lm_eval_rag.harness.data.task_about import TaskAbout, TaskOption
from lm_eval_rag.tasks.wikipedia.corpus_build import manifest
from lm_eval_rag.tasks.wikipedia.corpus_specs import CORPORA
from lm_eval_rag.tasks.wikipedia.specs import TASKS, Task, choice_of

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
SCORES = {  # family of official scores -> what to look at first
    "hotpotqa": ("hotpot_em", "hotpot_f1", "evidence_recall@10"),
    "2wiki": ("hotpot_em", "hotpot_f1", "evidence_recall@10"),
    "musique": ("squad_em", "squad_f1", "evidence_recall@10"),
    "open_domain": ("squad_em", "squad_f1", "recall@10"),
    "fever": ("fever_label", "evidence_recall@10"),
}
GROUPS = {
    "multihop": "The multi-hop tasks: hotpotqa, 2wikimultihopqa, musique, bamboogle.",
    "open_domain": "The open-domain tasks: rag_nq, rag_triviaqa, rag_webquestions.",
    "crp_table1": "The six tasks of CRP-RAG's Table 1: the open-domain ones, hotpotqa, 2wikimultihopqa and fever.",
}
DEPARTURES = (
    "The corpus is chosen by name, and none stands in for another. Scores over different corpora are not comparable.",
    "2WikiMultihopQA's file of aliases is not used.",
)


def about() -> dict[str, TaskAbout]:
    """The tasks of this folder by name, groups included."""
    group_scores = ("em", "token_f1", "evidence_recall@10")
    groups = {
        name: TaskAbout(summary, "this project", group_scores, {"corpus": _corpus("")})
        for name, summary in GROUPS.items()
    }
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
    return TaskAbout(f"{summary}.", paper, SCORES[task.scoring], options, DEPARTURES, files)


def _corpus(default: str, names: str = "the name of a corpus that all tasks of the group have") -> TaskOption:
    return TaskOption(names, default, "The passages that the questions are asked over.")
