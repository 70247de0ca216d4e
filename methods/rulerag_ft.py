"""RuleRAG-FT: RuleRAG with a retriever and a generator tuned by rules (arXiv:2410.22353, section 3.2).

A question is answered as RuleRAG-ICL answers it; what differs is what it runs with: the embedded ``static`` retriever
and the embedded generator, both after rule-guided fine-tuning. ``retriever_adapter=``, ``gen_pretrained=`` and
``gen_peft=`` take any folder or Hub id that ``lm-eval-rag train`` or anybody else made.

Departures: those of RuleRAG-ICL; no worked examples, which fine-tuning replaces; the embedded checkpoints are of our
own small architectures.
"""

from __future__ import annotations

from typing import Literal

from lm_eval_rag.harness.asks import RuleControl, RuleOrder
from lm_eval_rag.harness.parameters import Natural, Positive, runs_with
from lm_eval_rag.harness.retrieval.guided import Join
from lm_eval_rag.harness.types import Answer, Plan, Query
from lm_eval_rag.methods.rulerag_icl import rulerag_icl


@runs_with(retriever="static", retriever_adapter="rgft", generator="tiny_rgft")
def rulerag_ft(
    query: Query,
    *,
    k: Positive = 10,
    n_rules: Natural = 3,
    rules: RuleControl = "selected",
    rule_order: RuleOrder = "confidence_support",
    join: Join = "rule",
    guide: Literal["both", "retrieval", "generation"] = "both",
    documents: Natural = 10,
    document_order: Literal["best_first", "best_last"] = "best_first",
    seed: Natural = 0,
    degenerated: bool = False,
    prompt_file: str | None = None,
) -> Plan[Answer]:
    """Answer from the documents that rules lead a tuned retriever to, by these rules and a tuned generator.

    Args:
        k: Documents retrieved for each rule.
        n_rules: Rules for the question, at most; 0 is how a checkpoint tuned without rules (SSFT) is run.
        rules: Which rules: the selected ones, or a control.
        rule_order: What makes a rule better.
        join: How question and rule become one text.
        guide: Whether the rules guide retrieval, generation or both.
        documents: Documents in the prompt.
        document_order: Where the best document stands.
        seed: Of random rules.
        degenerated: Ask what the question's best rule makes of it, which needs no rule (Table 5).
        prompt_file: A TOML file with another wording; the generator must have been tuned for its version.
    """
    return (
        yield from rulerag_icl(
            query,
            k=k,
            n_rules=n_rules,
            rules=rules,
            rule_order=rule_order,
            join=join,
            guide=guide,
            documents=documents,
            document_order=document_order,
            seed=seed,
            degenerated=degenerated,
            prompt_file=prompt_file,
        )
    )
