"""The corpora: which files each consists of, and how they become passages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lm_eval_rag.tasks.wikipedia import fever, hotpot, musique, open_domain, pages
from lm_eval_rag.tasks.wikipedia.records import Page, Question

ReadQuestions = Callable[[Sequence[Path]], Iterator[Question]]
ReadPages = Callable[[Sequence[Path]], Iterator[Page]]


@dataclass(frozen=True, slots=True)
class Corpus:
    """How a corpus is made.

    Args:
        about: What it is.
        size: Number of passages: counted here, or as published; 0 if unknown.
        parts: (reader, files) pairs; a reader returns passages, or questions, whose own passages are taken.
        own: Whether a question's own passages can be asked for (``corpus=own``); then ``parts`` returns questions.
    """

    about: str
    size: int
    parts: tuple[tuple[ReadPages | ReadQuestions, tuple[str, ...]], ...]
    own: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """Names of all files, in order."""
        return tuple(dict.fromkeys(file for _, files in self.parts for file in files))


HOTPOT_DEV = ("hotpotqa/validation-00000-of-00001.parquet",)
HOTPOT_NAMED = ("hotpotqa/hotpot_dev_v1_simplified.json", "hotpotqa/beir_hotpotqa_test_topics.tsv.gz")
HOTPOT_200 = ("hotpotqa/hotpot_distractor_with_context.jsonl",)
HOTPOT_TRAIN = ("hotpotqa/hotpotqa_train_100.json",)
HOTPOT_500 = ("hotpotqa/hotpotqa_500_retrieved_passages.jsonl",)
HOTPOT_1000 = ("hipporag/hotpotqa.json",)
WIKI2_DEV = ("2wikimultihopqa/dev.parquet",)
WIKI2_NAMED = ("2wikimultihopqa/2wiki_dev_questions.json",)
WIKI2_500 = ("2wikimultihopqa/2wiki_500_retrieved_passages.jsonl",)
WIKI2_6119 = ("2wikimultihopqa/2wikimultihopqa_corpus_6119.json",)
WIKI2_1000 = ("hipporag/2wikimultihopqa.json",)
MUSIQUE_DEV = ("musique/musique_ans_v1.0_dev.jsonl",)
MUSIQUE_NAMED = ("musique/musique_dev_2417_questions.jsonl",)
MUSIQUE_TRAIN = ("musique/musique_train_100.json",)
MUSIQUE_1000 = ("hipporag/musique.json",)
BAMBOOGLE = ("bamboogle/bamboogle_125.jsonl",)
FEVER_DEV = ("fever/paper_dev.jsonl",)
FEVER_345 = ("fever/paper_dev_with_gold_sentence.jsonl",)
FEVER_PAIRS = ("fever/symmetric_v0.2_fever_symmetric_dev.jsonl",)
NQ, NQ_ORACLE = ("nq/NQ-open.dev.jsonl",), ("nq/nq-open-oracle.jsonl",)
TRIVIAQA, TRIVIAQA_DERIVED = ("triviaqa/topics.dpr.trivia.test.txt",), ("triviaqa/dpr_trivia_test.jsonl",)
WEBQUESTIONS = ("webquestions/webq-test.jsonl",)


CORPORA: dict[str, Corpus] = {
    "hotpotqa_pooled": Corpus(
        "all paragraphs of HotpotQA's development questions, pooled", 66581, ((hotpot.questions, HOTPOT_DEV),), own=True
    ),
    "hotpotqa_fullwiki": Corpus(
        "the introductions of HotpotQA's Wikipedia (2017), in BEIR's form", 5233329,
        ((pages.beir, ("hotpotqa/corpus-00000-of-00001.parquet",)),),
    ),
    "hotpotqa_pool_hipporag": Corpus(
        "HippoRAG's pool for its 1,000 HotpotQA questions", 9811, ((pages.titled, ("hipporag/hotpotqa_corpus.json",)),)
    ),
    "hotpotqa_200_pooled": Corpus(
        "the paragraphs of the 200 questions of hotpotqa_200", 1989, ((hotpot.questions, HOTPOT_200),), own=True
    ),
    "hotpotqa_train_100_pooled": Corpus(
        "the paragraphs of the 100 questions of hotpotqa_train_100", 994, ((hotpot.questions, HOTPOT_TRAIN),), own=True
    ),
    "hotpotqa_500_retrieved": Corpus(
        "what R1-Searcher (arXiv:2503.05592) retrieved for 500 questions", 7352, ((pages.retrieved, HOTPOT_500),)
    ),
    "2wikimultihopqa_pooled": Corpus(
        "all paragraphs of 2WikiMultihopQA's development questions, pooled", 0, ((hotpot.questions, WIKI2_DEV),),
        own=True,
    ),
    "2wikimultihopqa_pool_hipporag": Corpus(
        "HippoRAG's pool for its 1,000 2WikiMultihopQA questions", 6119, ((pages.titled, WIKI2_6119),)
    ),
    "2wikimultihopqa_500_retrieved": Corpus(
        "what R1-Searcher (arXiv:2503.05592) retrieved for 500 questions", 5155, ((pages.retrieved, WIKI2_500),)
    ),
    "musique_pooled": Corpus(
        "all paragraphs of MuSiQue's answerable development questions, pooled", 0,
        ((musique.questions, MUSIQUE_DEV),), own=True,
    ),
    "musique_pool_hipporag": Corpus(
        "HippoRAG's pool for its 1,000 MuSiQue questions", 11656, ((pages.titled, ("hipporag/musique_corpus.json",)),)
    ),
    "musique_train_100_pooled": Corpus(
        "the paragraphs of the 100 questions of musique_train_100", 1890, ((musique.questions, MUSIQUE_TRAIN),),
        own=True,
    ),
    "fever_pages": Corpus(
        "the introductions of FEVER's Wikipedia (2017), with numbered sentences", 5416537,
        ((fever.wiki_pages, ("fever/wiki-pages.zip",)),),
    ),
    "fever_beir": Corpus(
        "the same in BEIR's form, without sentences", 5416568,
        ((pages.beir_by_id, ("fever/corpus-00000-of-00001.parquet",)),),
    ),
    "fever_345_sentences": Corpus(
        "the gold sentences of 345 claims: every passage supports or refutes a claim", 283,
        ((fever.sentence_pages, FEVER_345),),
    ),
    "rag_nq_2655_pooled": Corpus(
        "the gold passages of 2,655 Natural Questions", 2599, ((open_domain.oracle_questions, NQ_ORACLE),)
    ),
    "wiki18_100w": Corpus(
        "DPR's passages of 100 words from Wikipedia of December 2018", 21015324,
        ((pages.dpr, ("wiki18/psgs_w100.tsv.gz",)),),
    ),
    "wiki_mirror": Corpus(
        "all passages that the small public files hold, pooled; no substitute for Wikipedia", 26034,
        (
            (hotpot.questions, HOTPOT_200), (hotpot.questions, HOTPOT_TRAIN), (musique.questions, MUSIQUE_TRAIN),
            (pages.titled, WIKI2_6119), (open_domain.oracle_questions, NQ_ORACLE), (pages.retrieved, HOTPOT_500),
            (pages.retrieved, WIKI2_500), (fever.sentence_pages, FEVER_345), (fever.paired_pages, FEVER_PAIRS),
        ),
    ),
}  # fmt: skip
