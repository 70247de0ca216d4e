"""RuleRAG-FT: RuleRAG with a retriever and a generator tuned by rules (arXiv:2410.22353, section 3.2).

A question is answered as RuleRAG-ICL answers it; what differs is what it runs with: the embedded ``static`` retriever
and the embedded generator, both after rule-guided fine-tuning. ``retriever_adapter=``, ``gen_pretrained=`` and
``gen_peft=`` take any folder or Hub id that ``lm-eval-rag train`` or anybody else made. ``n_rules=0`` runs a checkpoint
tuned without rules (SSFT).

``rulerag_ft_extractive`` is the same with extractive decoding (``gen_extractive=True``): an answer is a span of a
document in the prompt. The paper has no such decoding.

Departures: those of RuleRAG-ICL; the embedded checkpoints are of our own small architectures.
"""

from lm_eval_rag.harness.core.parameters import runs_with, variant
from lm_eval_rag.methods.rulerag_icl import rulerag_icl

tuned = runs_with(retriever="static", retriever_adapter="rgft", generator="tiny_rgft")
rulerag_ft = tuned(variant(rulerag_icl, "rulerag_ft"))
extractive = runs_with(retriever="static", retriever_adapter="rgft", generator="tiny_rgft", gen_extractive=True)
rulerag_ft_extractive = extractive(variant(rulerag_icl, "rulerag_ft_extractive"))
