"""The constants of the official baselines (models/ of facebookresearch/CRAG at commit ad15188)."""

from typing import Any

from lm_eval_rag.harness.core.types import Query, WebPage
from lm_eval_rag.methods.crag_kg_baseline import crag_kg_baseline
from lm_eval_rag.methods.crag_llm_baseline import crag_llm_baseline
from lm_eval_rag.methods.crag_rag_baseline import crag_rag_baseline

FIELDS = '{"domain": "movie", "movie_name": "lantern", "movie_aspect": "budget"}'
HIT = [{"title": "Lantern", "budget": 3}]


def test_an_answer_has_at_most_50_tokens(play: Any, query: Query, web: Any) -> None:
    ranked = (web, ((1, 2.0),), "3 million")
    plans = {crag_llm_baseline: ("3",), crag_rag_baseline: ranked, crag_kg_baseline: (FIELDS, HIT, *ranked)}
    assert [play(method(query), *replies).asks[-1].max_tokens for method, replies in plans.items()] == [50, 50, 50]
    longer = play(crag_llm_baseline(query, answer_tokens=75), "3")
    assert longer.asks[-1].max_tokens == 75


def test_the_graph_baseline_shares_4000_characters_between_pages_and_graph(play: Any, query: Query) -> None:
    """As in the official kit: 2000 for each, and 4000 for the pages without a graph."""
    sentences = [f"Sentence {n:02} " + "is one of many that fill a page " * 9 + "and ends." for n in range(30)]
    page = WebPage(0, "Long", "http://a", "", "", " ".join([*sentences, *sentences]), (), ())
    ranks = tuple((n, 1.0) for n in range(20))
    hit = [{"title": "Lantern", "budget": "b" * 5_000}]
    played = play(crag_kg_baseline(query), FIELDS, hit, (page,), ranks, "3")
    facts, texts = shown(played, "Fact of a knowledge graph: "), shown(played, "Text: ")
    assert sum(map(len, facts)) == 2_000 and 1_600 < sum(map(len, texts)) <= 2_000
    assert len(played.asks[-2].texts) == 30  # a sentence that is there twice is ranked once
    played = play(crag_rag_baseline(query), (page,), ranks, "3")
    assert 3_600 < sum(map(len, shown(played, "Text: "))) <= 4_000


def shown(played: Any, kind: str) -> list[str]:
    """The references of a kind in the last prompt."""
    texts = [passage.text for passage in played.asks[-1].prompt.passages]
    return [text.removeprefix(kind) for text in texts if text.startswith(kind)]
