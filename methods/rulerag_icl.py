"""RuleRAG-ICL: rules guide what is retrieved and how the answer follows (arXiv:2410.22353, sections 3.1 and A.9).

The rules for the question's relation are appended to the question one at a time, each retrieves its top k, and the
union (equation 1) with the rules goes into the prompt (equation 2).

Departures: the wording of the prompt is ours; the prompt holds the first ``documents`` passages of the union, so that
methods are compared at one budget (the paper gives the whole union). Identity rules ("Make a visit leads to Make a
visit") are left out, here and in training, since the question itself finds what they find; the paper's own prompts (its
Tables 8 and 10) have some, which ``repeat=True`` admits. No confidence is too low for a rule; the paper speaks of high
ones and prints no limit. The paper lacks the controls
``rules=random|shuffled|permuted|matched|oracle`` and the forms ``join=body|replace`` of the guided question.
"""

from __future__ import annotations

from typing import Literal

from lm_eval_rag.harness.core.asks import RuleControl, RuleOrder, examples, generate, match_rules
from lm_eval_rag.harness.core.parameters import Depth, Natural
from lm_eval_rag.harness.core.prompts import Prompt, Shot
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query, Rule
from lm_eval_rag.harness.rules.guided import Join, question_asked, rule_guided
from lm_eval_rag.methods.prompts import AnswerStyle, answer_of, template


def rulerag_icl(
    query: Query,
    *,
    k: Depth = 10,
    n_rules: Natural = 3,
    rules: RuleControl = "selected",
    rule_order: RuleOrder = "confidence_support",
    repeat: bool = False,
    join: Join = "rule",
    guide: Literal["both", "retrieval", "generation"] = "both",
    documents: Natural = 10,
    document_order: Literal["best_first", "best_last"] = "best_first",
    shots: Natural = 0,
    seed: Natural = 0,
    degenerated: bool = False,
    prompt_file: str | None = None,
    answer_style: AnswerStyle = "free",
) -> Plan[Answer]:
    """Answer from the documents that rules lead to, by these rules.

    Args:
        k: Documents retrieved for each rule.
        n_rules: Rules for the question, at most.
        rules: Which rules: the selected ones, or a control.
        rule_order: What makes a rule better.
        repeat: Whether identity rules may be among them, which say that the relation repeats itself.
        join: How question and rule become one text: the whole rule as in the paper, or its body alone.
        guide: Whether the rules guide retrieval, generation or both (Table 2's ablation).
        documents: Documents in the prompt.
        document_order: Where the best document stands.
        shots: Fixed worked examples of F_G, each with documents and rules of its own.
        seed: Of the examples and of random rules.
        degenerated: Ask what the question's best rule makes of it, which needs no rule; the rules stay those of the
            question (Table 5).
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        answer_style: ``short`` asks for the bare answer and reads it without what explains it.
    """

    def prepare(text: str, asked: str, control: RuleControl) -> Plan[tuple[tuple[Rule, ...], tuple[Passage, ...]]]:
        chosen = yield from match_rules(text, n_rules, order=rule_order, control=control, repeat=repeat, seed=seed)
        return chosen, (yield from rule_guided(asked, chosen if guide != "generation" else (), k, join))

    parts = template(prompt_file, style=answer_style)  # before anything is asked: a bad file ends the run at its start
    asked = yield from question_asked(query.text, degenerated)
    chosen, found = yield from prepare(query.text, asked, rules)
    worked = []
    for example, answer in (yield from examples(shots, seed)):
        its_rules, its_found = yield from prepare(
            example.text, example.text, "selected" if rules == "oracle" else rules
        )
        worked.append(Shot(example.text, answer, its_found[:documents], its_rules if guide != "retrieval" else ()))
    prompt = Prompt(
        parts,
        asked,
        found[:documents],
        chosen if guide != "retrieval" else (),
        tuple(worked),
        document_order,
    )
    text = yield from generate(prompt)
    return Answer(answer_of(text, answer_style), found, chosen if n_rules else None)
