"""RuleRAG with GPT-3.5 (arXiv:2410.22353, last row of Table 3): examples in place of fine-tuning.

The tuned retriever, the rules, and three fixed worked examples of F_G with documents and rules of their own, sent to
gpt-3.5-turbo through OpenAI's API (key in ``OPENAI_API_KEY``); ``gen_base_url=`` and ``gen_model=`` name any server
that speaks the same language.

Departures: those of RuleRAG-ICL; the retriever is the embedded ``static`` one, where the paper's row has RGFT-DPR
(``retriever=dense,retriever_model=...,retriever_adapter=...``).
"""

from lm_eval_rag.harness.core.parameters import runs_with, variant
from lm_eval_rag.methods.rulerag_icl import rulerag_icl

tuned = runs_with(
    retriever="static", retriever_adapter="rgft", generator="openai-chat-completions", gen_model="gpt-3.5-turbo"
)
rulerag_gpt35 = tuned(variant(rulerag_icl, "rulerag_gpt35", shots=3))
