"""The family of a method: what readers of a board filter by."""

from __future__ import annotations

from lm_eval_rag.harness.report.trivial_baselines import TRIVIAL_BASELINES

TRIVIAL = "trivial baseline"  # shown in grey and not ranked: what every system must beat
OTHER = "other"
FAMILIES = {
    TRIVIAL: TRIVIAL_BASELINES,
    "no retrieval": ("standard_prompting", "crag_llm_baseline", "tree_of_thoughts"),
    "one retrieval": ("standard_rag", "crag_rag_baseline"),
    "rules": ("rule_vote", "rulerag_icl", "rulerag_ft", "rulerag_ft_extractive", "rulerag_gpt35"),
    "several steps": (
        *("iter_retgen", "ircot", "think_then_act", "self_rag", "verify_and_edit", "chain_of_knowledge"),
        *("search_agent", "crp_rag"),
    ),
    "trees and graphs": ("raptor", "graphrag", "crag_kg_baseline"),
    "pipeline of CRAG": ("crag_hybrid",),
}
_OF = {method: family for family, methods in FAMILIES.items() for method in methods}


def family_of(method: str) -> str:
    """The family of a method, or ``other`` for one that is not ours."""
    return _OF.get(method, OTHER)
