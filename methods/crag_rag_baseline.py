"""CRAG's official RAG baseline: the best sentences of the question's pages (facebookresearch/CRAG, arXiv:2406.04744).

As in the official kit (models/rag_llama_baseline.py): 20 sentences of at most 1000 characters, each once, 4000
characters in all, and answers of at most 50 tokens. Departures: the wording of the prompt is ours, and it names the
weekday with the time, where the kit has "Current Time" alone; pages are read by the run's extractor and sentences are
ranked by its retriever (``retriever=dense,retriever_model=minilm``), where the kit takes BeautifulSoup's whole text and
all-MiniLM-L6-v2; a sentence that no longer fits is left out, where the kit cuts it; the answer is the whole reply, as
in the kit, but on one line and without a next question that the model makes up; decoding is greedy, where the kit
samples at temperature 0.1 and top_p 0.9.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import pages
from lm_eval_rag.harness.core.parameters import Depth, Natural, Positive
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.crag.answering import ANSWER_TOKENS, answer_from, baseline_settings
from lm_eval_rag.methods.crag.chunks import NO_PAGES, SENTENCE, SENTENCES, TEXT, best_sentences
from lm_eval_rag.methods.crag.references import References


def crag_rag_baseline(
    query: Query,
    *,
    k: Depth = SENTENCES,
    sentence_length: Positive = SENTENCE,
    text_length: Natural = TEXT,
    answer_tokens: Positive = ANSWER_TOKENS,
    prompt_file: str | None = None,
) -> Plan[Answer]:
    """Answer from the best sentences.

    Args:
        k: Number of sentences.
        sentence_length: Characters of a sentence.
        text_length: Characters of all sentences.
        answer_tokens: Limit of tokens of an answer.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
    """
    read = yield from pages()
    chunks = yield from best_sentences(query, read, k=k, longest=sentence_length, length=text_length)
    settings = baseline_settings(answer_tokens, prompt_file)
    return (yield from answer_from(query, References(chunks), [] if read else [NO_PAGES], settings))
