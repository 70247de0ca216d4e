"""CRAG-demo's questions with their pages as lines of CRAG's format, and the corpus folder built from them."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from types import ModuleType

from lm_eval_rag.harness.common.errors import at_least
from lm_eval_rag.tasks.crag.build import corpus_folder, store_of
from lm_eval_rag.tasks.crag.schema import parse
from lm_eval_rag.tasks.crag_demo import encyclopedia, finance, movie, music, sports
from lm_eval_rag.tasks.crag_demo.graph import build_graph
from lm_eval_rag.tasks.crag_demo.more_finance import more_finance
from lm_eval_rag.tasks.crag_demo.more_movie import more_movie
from lm_eval_rag.tasks.crag_demo.more_music import more_music
from lm_eval_rag.tasks.crag_demo.more_open import more_open
from lm_eval_rag.tasks.crag_demo.more_sports import more_sports
from lm_eval_rag.tasks.crag_demo.site import Question, SitePage
from lm_eval_rag.tasks.crag_demo.world import World, make_world

PAGES = 5
ASKED = "02/28/2024, {:02}:{:02}:00 PT"
DOMAINS: dict[str, ModuleType] = {
    "finance": finance,
    "movie": movie,
    "music": music,
    "open": encyclopedia,
    "sports": sports,
}
MORE: dict[str, Callable[[World], tuple[Question, ...]]] = {
    "finance": more_finance,
    "movie": more_movie,
    "music": more_music,
    "open": more_open,
    "sports": more_sports,
}
SOURCES = {"a made-up world": {"licence": "Apache-2.0, as the project", "terms": "none; nothing in it is real"}}


def build(seed: int = 0) -> str:
    """The id ``crag_demo/<hash>`` of the demo's corpus folder; it is written, with its graph, if it does not exist.

    Raises:
        UserError: ``seed`` is not a whole number of 0 or more.
    """
    at_least("seed", seed, 0)
    graph = build_graph(seed)
    written = list(lines(seed))
    records = (parse(line, f"question {number}") for number, line in enumerate(written))
    digest = hashlib.sha256("\n".join(written).encode()).hexdigest()
    store = store_of(records, {"task": "crag_demo", "seed": seed, "content": digest}, SOURCES)
    return corpus_folder("crag_demo", store, PAGES, f"{graph.parent.name}/{graph.name}")


def lines(seed: int = 0) -> Iterator[str]:
    """Every question as a line of the official format, alternating between its two variants."""
    world, draw, number = make_world(seed), random.Random(seed), 0
    site = {name: domain.pages(world) for name, domain in DOMAINS.items()}
    first = {name: domain.questions(world) for name, domain in DOMAINS.items()}
    more = {
        name: write(world) for name, write in MORE.items()
    }  # after all others, whose ids and pages stay as they are
    for questions, start in ((first, dict.fromkeys(first, 0)), (more, {name: len(first[name]) for name in first})):
        for name, rows in questions.items():
            for place, question in enumerate(rows, start=start[name] + 1):
                results = _results(question, site[name], draw)
                yield json.dumps(_row(f"{name}-{place}-{question.type}", name, question, number, results))
                number += 1


def _results(question: Question, site: dict[str, SitePage], draw: random.Random) -> list[SitePage]:
    """Five shuffled results: the helpful pages and others of the domain; sometimes one comes twice or is empty."""
    others = [key for key in site if key not in question.pages]
    missing = PAGES - len(question.pages)
    results = [site[key] for key in (*question.pages, *draw.sample(others, min(missing, len(others))))]
    if missing > 1 and draw.random() < 0.25:
        results[-1] = draw.choice(
            [results[0], SitePage("Error", "https://veldmark.example/gone", "This page is gone.", "")]
        )
    draw.shuffle(results)
    return results[:PAGES]


def _row(id: str, domain: str, question: Question, number: int, results: list[SitePage]) -> dict[str, object]:
    answer, *others = question.answers
    alternatives = {"alt_ans": others} if number % 2 else {"alternative_answers": json.dumps(others)}
    return {
        "interaction_id": id,
        "query_time": ASKED.format(17 + number % 6, number % 60),
        "domain": domain,
        "question_type": question.type,
        "static_or_dynamic": question.dynamic,
        "query": question.text.lower(),
        "answer": answer.lower(),
        **alternatives,
        "split": number % 2,
        "popularity": question.popularity,
        "search_results": [
            {
                "page_name": page.name,
                "page_url": page.url,
                "page_snippet": page.snippet,
                "page_result": page.html,
                "page_last_modified": "",
            }
            for page in results
        ],
    }
