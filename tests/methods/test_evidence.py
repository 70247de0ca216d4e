"""Evidence: which sentences are chosen without a model, how they are numbered, and what is read of a reply."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Answer, Passage, Query
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.retrieval.tokens import tokenize
from lm_eval_rag.methods.prompts import template
from lm_eval_rag.methods.reasoning import evidence
from lm_eval_rag.methods.reasoning.evidence import cited, first_sentences, numbered, similar_sentences
from lm_eval_rag.methods.standard_rag import standard_rag

NAMES = tuple((f"p{i // 3}", i % 3) for i in range(12))  # four passages of three sentences
ODD = (evidence.MISSING, evidence.UNREADABLE, evidence.OUTSIDE, evidence.CUT)
HOW = ("retrieved", "similar", "cite")


def read(reply: str, n: int = 5) -> tuple[str, list[int], tuple[str, ...]]:
    """(answer, numbers, notes) of a reply."""
    answer = cited(reply, NAMES, n)
    assert answer.evidence is not None
    return answer.text, [NAMES.index(name) + 1 for name in answer.evidence], answer.notes


@pytest.mark.parametrize(
    ("reply", "text", "numbers"),
    [
        (" Paris\nEvidence: 3, 7", "Paris", [3, 7]),
        ("Paris\nEvidence: 7, 3, 7", "Paris", [7, 3]),  # in the model's order, each once
        ("Paris\nEvidence: [3], [7]", "Paris", [3, 7]),
        ("Paris\nEvidence: [3, 7]", "Paris", [3, 7]),
        ("Paris\n\n**Evidence:** 3 and 7.", "Paris", [3, 7]),
        ("Paris\nevidence sentences: 3 7", "Paris", [3, 7]),
        ("Paris\nSupporting sentences: 3; 7", "Paris", [3, 7]),
        ("Paris\nEvidence: sentences 3-5", "Paris", [3, 4, 5]),
        ("Paris\nEvidence: 3 to 7", "Paris", [3, 7]),
        ("Paris\nEvidence: [3-5]", "Paris", [3, 4, 5]),
        ("Paris\nEvidence:\n- 3\n- 7\n", "Paris", [3, 7]),
        ("Paris\nEvidence:\n\n1. [3] The film was shown in 1994.\n2. [7] It won.", "Paris", [3, 7]),
        ("Paris\nEvidence: [3] The film was shown in 1994. [7] It won 2 prizes.", "Paris", [3, 7]),
        ("Paris\nEvidence: 3, 7 (he was born in 1990)", "Paris", [3, 7]),
        ("Paris\nEvidence: 3, 7\nQuestion: Who wrote 12 books?\nAnswer: Bo\nEvidence: 4", "Paris", [3, 7]),
        ("Paris (Evidence: 3, 7)", "Paris (", [3, 7]),  # punctuation does not count in any score
        ("Paris. Evidence: 3", "Paris.", [3]),
        ("Evidence: 3, 7\nAnswer: Paris", "Paris", [3, 7]),
        ("Evidence: 3\n1994 in Paris", "1994 in Paris", [3]),
        ("Answer: 1994\nEvidence: 3", "1994", [3]),
        ("Paris [3][7]", "Paris", [3, 7]),
        ("Paris [3] because [7]\nsome more words", "Paris  because", [3, 7]),
        ("Paris\n3, 7", "Paris", [3, 7]),
        ("1994\n3", "1994", [3]),
        ("[3]", "[3]", [3]),  # nothing else is there
        ("Paris\nEvidence: none", "Paris", []),
        ("Paris\nEvidence: None.", "Paris", []),
        ("NOT ENOUGH INFO\nEvidence: N/A", "NOT ENOUGH INFO", []),
        ("Paris\nEvidence: no sentence of the documents", "Paris", []),
    ],
)
def test_numbers_are_read_in_many_forms(reply: str, text: str, numbers: list[int]) -> None:
    assert read(reply) == (text, numbers, ())


@pytest.mark.parametrize(
    ("reply", "text", "numbers", "note"),
    [
        ("Paris", "Paris", [], evidence.MISSING),
        ("Paris\nbecause I know it.", "Paris", [], evidence.MISSING),
        ("evidence-based medicine", "evidence-based medicine", [], evidence.MISSING),
        ("(What's the Story) Morning Glory?", "(What's the Story) Morning Glory?", [], evidence.MISSING),
        ("1994", "1994", [], evidence.MISSING),
        ("", "", [], evidence.MISSING),
        (" \n\n ", "", [], evidence.MISSING),
        ("Paris\nEvidence:", "Paris", [], evidence.MISSING),
        ("Paris\nEvidence: In 1994 the film was shown.", "Paris", [], evidence.UNREADABLE),
        ("Paris\nEvidence: three and seven", "Paris", [], evidence.UNREADABLE),
        ("Paris\nEvidence: ,;", "Paris", [], evidence.UNREADABLE),
        ("Paris\nEvidence: 0", "Paris", [], evidence.OUTSIDE),
        ("Paris\nEvidence: 3, 13", "Paris", [3], evidence.OUTSIDE),
        ("Paris\nEvidence: 11-99999999999999999999", "Paris", [11, 12], evidence.OUTSIDE),
        ("Paris\nEvidence: 0-2", "Paris", [1, 2], evidence.OUTSIDE),
        ("Paris\nEvidence: 7-3", "Paris", [], evidence.OUTSIDE),
        (f"Paris\nEvidence: {'9' * 9000}, 3", "Paris", [3], evidence.OUTSIDE),
        ("Paris\nEvidence: 1-6", "Paris", [1, 2, 3, 4, 5], evidence.CUT),
    ],
)
def test_what_is_wrong_is_counted_and_the_answer_unharmed(reply: str, text: str, numbers: list[int], note: str) -> None:
    assert read(reply) == (text, numbers, (note,))


def test_whatever_stands_below_an_answer_does_it_no_harm() -> None:
    """Ten thousand texts of the pieces that replies are made of: known names each once, within the limit."""
    rng = random.Random(0)
    pieces = ["Evidence:", "evidence", "Sentences", ":", "\n", " ", "[", "]", "-", "–", ",", "3", "12", "0", "²", "٣",
              "none", "Answer:", "Rome", "(", "**", "\x00", "to", "9" * 20]  # fmt: skip
    for _ in range(10_000):
        below = "".join(rng.choices(pieces, k=rng.randrange(12)))
        for reply in (below, f"Paris\n{below}"):
            text, numbers, notes = read(reply, n=3)
            assert len(numbers) == len(set(numbers)) <= 3 and set(notes) <= set(ODD), reply
        assert text == "Paris", reply


def test_replies_that_repeat_themselves_take_no_time() -> None:
    for piece in ("3, ", "[3", "- ", "evidence ", "3-", "[3, ", "sentences ", "\n- 3", "* * "):
        read("Paris\nEvidence: " + piece * 5_000)
        read(piece * 5_000)


def test_without_documents_no_evidence_is_missed() -> None:
    assert cited("Paris\nwhich I know", (), 5) == Answer("Paris", evidence=())


ADA, BO = ("Ada Moss read a book.", " She lived in Norn."), ("", "Bo Vale wrote.", " ", "Norn is where Bo died.")
SPLIT = (
    Passage("Ada", "Ada\nAda Moss read a book. She lived in Norn.", sentences=ADA),
    Passage("Bo", "Bo\nBo Vale wrote. Norn is where Bo died.", sentences=BO),
    Passage("Norn", "Norn\nA town."),
    Passage("plain", "One. Two.", sentences=("One.", " Two.")),  # without a title
)


def test_passages_are_shown_with_numbers() -> None:
    """Numbers go through all passages; a blank sentence has none and keeps its index."""
    shown, names = numbered(SPLIT)
    assert [passage.text for passage in shown] == [
        "Ada\n[1] Ada Moss read a book.\n[2] She lived in Norn.",
        "Bo\n[3] Bo Vale wrote.\n[4] Norn is where Bo died.",
        "[5] Norn\nA town.",
        "[6] One.\n[7] Two.",
    ]
    assert names == (("Ada", 0), ("Ada", 1), ("Bo", 1), ("Bo", 3), ("Norn", 0), ("plain", 0), ("plain", 1))
    assert numbered(()) == ((), ())


def test_the_first_sentences() -> None:
    _, names = numbered(SPLIT)
    for n in (1, 3, 7, 50):
        assert first_sentences("where did Bo die?", SPLIT, n) == names[:n]
    assert first_sentences("?", (), 5) == ()


def test_the_most_similar_sentences() -> None:
    """Those with the question's rarest words come first; those with none of its words are left out."""
    assert similar_sentences("where did Bo Vale die?", SPLIT, 1) == (("Bo", 1),)
    chosen = similar_sentences("is Norn where Bo died?", SPLIT, 50)
    assert chosen[0] == ("Bo", 3) and set(chosen) == {("Ada", 1), ("Bo", 1), ("Bo", 3), ("Norn", 0)}
    assert (
        similar_sentences("Quux?", SPLIT, 5)
        == similar_sentences("Norn", (), 5)
        == similar_sentences("", SPLIT, 5)
        == ()
    )


def test_similar_sentences_are_those_of_bm25() -> None:
    """Against the formula (k1 = 0.9, b = 0.4, the defaults of retrieval) over title and sentence."""
    from math import log

    question = "who wrote the book that Ada Moss read in Norn"
    texts = {(p.id, i): f"{p.text.partition(chr(10))[0] if p.id in ('Ada', 'Bo') else ''} {s.strip()}"
             for p in SPLIT for i, s in enumerate(p.sentences or (p.text,)) if s.strip()}  # fmt: skip
    words = {name: tokenize(text) for name, text in texts.items()}
    mean = sum(map(len, words.values())) / len(words)
    scores = dict.fromkeys(texts, 0.0)
    for word in set(tokenize(question)):
        having = [name for name in texts if word in words[name]]
        idf = log(1 + (len(texts) - len(having) + 0.5) / (len(having) + 0.5))
        for name in having:
            n = words[name].count(word)
            scores[name] += idf * n / (n + 0.9 * (1 - 0.4 + 0.4 * len(words[name]) / mean))
    expected = [name for name in sorted(scores, key=lambda name: -scores[name]) if scores[name]]
    assert list(similar_sentences(question, SPLIT, 50)) == expected


class Citing:
    """Answers, and cites the first and the third number; keeps its prompts and how they are decoded."""

    fingerprint, batch = "citing", 3

    def __init__(self, *replies: str) -> None:
        self.replies = replies or (" Vale\nEvidence: 1, 3",)
        self.prompts: list[str] = []
        self.decoding: list[Any] = []

    def generate(self, prompts: list[str], decoding: Any, draws: list[int]) -> list[str]:
        self.prompts += prompts
        self.decoding.append(decoding)
        return [self.replies[draw % len(self.replies)] for draw in draws]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def room(self, max_tokens: int) -> int | None:
        return None


@pytest.mark.parametrize("how", HOW)
def test_the_properties_of_all_methods(how: str, queries: Any, corpus: Any) -> None:
    odd = [Query("o0", ""), Query("o1", "what does Nobody of Nowhere do?"), Query("o2", "\x00 ? 😀")]
    asked = [*queries, *odd]

    def answers(some: Any, **more: Any) -> list[Any]:
        return run(standard_rag, some, corpus=corpus, generator=Citing(), evidence=how, **more)

    together = answers(asked)
    assert [a for a, _ in together] == [answers([query])[0][0] for query in asked]
    assert [a for a, _ in together] == [a for a, _ in answers(asked[::-1])[::-1]]
    assert all(trace.failure is None and trace.count("Retrieve") == 1 for _, trace in together)
    for answer, _ in together:
        known = {passage.id for passage in answer.passages}
        assert answer.evidence is not None and {id for id, _ in answer.evidence} <= known
        assert all(len(a.evidence) <= 1 for a, _ in answers(asked, evidence_limit=1))
    plain = run(standard_rag, asked, corpus=corpus, generator=Citing())
    assert all(answer.evidence is None and not answer.notes for answer, _ in plain)
    assert [a.passages for a, _ in plain] == [a.passages for a, _ in together]
    for value in (0, 51):  # a submission holds at most 50
        with pytest.raises(UserError, match=f"evidence_limit={value} is not allowed"):
            answers(asked, evidence_limit=value)


@pytest.mark.parametrize("how", ["retrieved", "similar"])
def test_without_citing_prompts_and_answers_are_as_before(how: str, queries: Any, corpus: Any, generator: Any) -> None:
    before = run(standard_rag, queries, corpus=corpus, generator=generator)
    prompts = generator.prompts.copy()
    generator.prompts.clear()
    after = run(standard_rag, queries, corpus=corpus, generator=generator, evidence=how)
    assert generator.prompts == prompts
    assert [replace(answer, evidence=None) for answer, _ in after] == [answer for answer, _ in before]


def test_a_model_cites_what_its_prompt_shows(queries: Any, corpus: Any) -> None:
    """Documents in memory are not split, so that a number is that of a document."""
    model = Citing()
    ((answer, _),) = run(
        standard_rag, queries[:1], corpus=corpus, generator=model, evidence="cite", documents=3,
        document_order="best_last", answer_style="short",
    )  # fmt: skip
    first, _, third, *_ = answer.passages
    assert (answer.text, answer.evidence) == ("Vale", ((first.id, 0), (third.id, 0)))
    (prompt,) = model.prompts
    assert prompt.index(f"[3] {third.text}") < prompt.index(f"[1] {first.text}") and "[4]" not in prompt
    assert prompt.startswith(template(name="cited_answer").instruction) and "Evidence:" in prompt.split("\n")[0]
    (decoding,) = model.decoding  # a task's own would end the reply at the end of its first line
    assert decoding.max_tokens == 96 and "\n" not in decoding.stop


def test_numbers_name_the_same_where_documents_are_dropped_to_fit(queries: Any, corpus: Any) -> None:
    class Narrow(Citing):
        def room(self, max_tokens: int) -> int:
            return 100 - max_tokens

    model = Narrow()
    ((answer, trace),) = run(
        standard_rag, queries[:1], corpus=corpus, generator=model, evidence="cite", evidence_tokens=10
    )
    (step,) = [step for step in trace.steps if step.ask == "Generate"]
    assert 0 < step.dropped_passages < 8 and f"[10] {answer.passages[9].text}" not in model.prompts[0]
    assert all(f"[{n}] {answer.passages[n - 1].text}" in model.prompts[0] for n in (1, 3))


def test_the_evidence_of_a_vote_is_that_of_the_first_sample_that_says_so(queries: Any, corpus: Any) -> None:
    model = Citing("Moor\nEvidence: 4", "vale\nEvidence: 2", "Vale.\nEvidence: 1")
    ((answer, _),) = run(standard_rag, queries[:1], corpus=corpus, generator=model, evidence="cite", samples=3)
    assert answer.text == "vale" and answer.evidence == ((answer.passages[1].id, 0),)


def test_the_prompts_of_citing_have_a_version_and_can_be_changed(queries: Any, corpus: Any, tmp_path: Path) -> None:
    ours = template(name="cited_answer")
    assert ours.version == "cited_answer-1" and "Evidence:" not in ours.instruction_closed
    file = tmp_path / "mine.toml"
    file.write_text('answer = "Reply:"\n')
    assert template(str(file), "cited_answer").version.startswith("cited_answer-1+")
    model = Citing()
    run(standard_rag, queries[:1], corpus=corpus, generator=model, evidence="cite", prompt_file=str(file))
    assert model.prompts[0].endswith("\nReply:")


def test_worked_examples_cite_nothing(queries: Any, corpus: Any) -> None:
    with pytest.raises(UserError, match="shots=2 and evidence=cite do not go together"):
        run(standard_rag, queries, corpus=corpus, generator=Citing(), evidence="cite", shots=2)
    (first, _), *_ = run(standard_rag, queries, corpus=corpus, generator=Citing(), evidence="retrieved", shots=2)
    assert first.evidence


def test_an_unknown_choice_is_named(queries: Any, corpus: Any) -> None:
    with pytest.raises(UserError, match=r"Unknown value of evidence 'cited'\. Did you mean 'cite'"):
        run(standard_rag, queries, corpus=corpus, generator=Citing(), evidence="cited")
