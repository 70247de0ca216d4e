"""What ``--metadata`` of lm_eval may say to every task of ours, with what ``lm-eval-rag describe`` says of it."""

from __future__ import annotations

from lm_eval_rag.harness.data.task_about import TaskOption

METADATA = {
    "judge": TaskOption("rules, off, or a model", "", "What says whether an answer is right, beside exact match."),
    "judge_*": TaskOption("any", "", "An argument of the judge, such as judge_model=; keys come from the environment."),
    "second_judge": TaskOption("as judge", "", "A second judge; the score is the mean of the two."),
    "second_judge_*": TaskOption("any", "", "An argument of the second judge."),
    "consistency": TaskOption("True or False", "False", "Asks the judges whether each rationale lies in its passages."),
    "labels": TaskOption("a file", "", "People's labels of answers, for the score crag_human."),
}  # fmt: skip
