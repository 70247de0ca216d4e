"""RuleRAG with GPT-3.5 (arXiv:2410.22353, last row of Table 3): examples in place of fine-tuning.

The tuned retriever, the rules, and three fixed worked examples of F_G with documents and rules of their own, sent to
gpt-3.5-turbo through OpenAI's API (key in ``OPENAI_API_KEY``); ``gen_base_url=`` and ``gen_model=`` name any server
that speaks the same language.

Departures: those of RuleRAG-ICL; the retriever is the embedded ``static`` one, where the paper's row has RGFT-DPR
(``retriever=dense,retriever_model=...,retriever_adapter=...``).
"""

from __future__ import annotations

from lm_eval_rag.harness.asks import RuleControl, RuleOrder
from lm_eval_rag.harness.parameters import Natural, Positive, runs_with
from lm_eval_rag.harness.retrieval.guided import Join
from lm_eval_rag.harness.types import Answer, Plan, Query
from lm_eval_rag.methods.rulerag_icl import rulerag_icl


@runs_with(retriever="static", retriever_adapter="rgft", generator="openai-chat-completions", gen_model="gpt-3.5-turbo")
def rulerag_gpt35(
    query: Query,
    *,
    k: Positive = 10,
    n_rules: Natural = 3,
    rules: RuleControl = "selected",
    rule_order: RuleOrder = "confidence_support",
    join: Join = "rule",
    documents: Natural = 10,
    shots: Natural = 3,
    seed: Natural = 0,
    prompt_file: str | None = None,
) -> Plan[Answer]:
    """Answer from the documents that rules lead a tuned retriever to, after worked examples.

    Args:
        k: Documents retrieved for each rule.
        n_rules: Rules for the question, at most.
        rules: Which rules: the selected ones, or a control.
        rule_order: What makes a rule better.
        join: How question and rule become one text.
        documents: Documents in the prompt, and in each worked example.
        shots: Fixed worked examples of F_G.
        seed: Of the examples and of random rules.
        prompt_file: A TOML file with another wording.
    """
    return (
        yield from rulerag_icl(
            query,
            k=k,
            n_rules=n_rules,
            rules=rules,
            rule_order=rule_order,
            join=join,
            documents=documents,
            shots=shots,
            seed=seed,
            prompt_file=prompt_file,
        )
    )
