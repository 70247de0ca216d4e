"""IRCoT: thoughts and retrievals in turn, the cap on passages, the reader; the authors' code, and FlashRAG's."""

from __future__ import annotations

import pytest

from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.methods.ircot import ircot

THOUGHT = "Dr. Ada Moss read Vale. It was long."


def test_thoughts_and_retrievals_in_turn(play, documents):
    played = play(
        ircot,
        [documents("a", "b"), THOUGHT, documents("b", "c"), "So the answer is Bo.",
         "Bo wrote it. The answer is Bo Reed."],
        k=2,
    )  # fmt: skip
    assert played.names == ["Retrieve", "thought", "Retrieve", "thought", "cot"]
    assert played.queries[1] == "Dr. Ada Moss read Vale."  # the first sentence alone
    first, second = played.prompts("thought")
    assert first.endswith("Reasoning:") and second.endswith("Reasoning: Dr. Ada Moss read Vale.")
    assert "Documents:\na\nb\nc\n" in second and "Documents:\na\nb\nc\n" in played.prompts("cot")[0]
    assert "Dr. Ada" not in played.prompts("cot")[0]  # the reader sees the passages, not the thoughts
    assert (played.answer.text, played.answer.notes) == ("Bo Reed", ())


def test_the_number_of_a_step_is_no_thought(play, documents):
    steps = ["1. Ada Moss read Vale.\n2. Bo wrote Vale.", "2. So the answer is Bo."]
    played = play(ircot, [documents("a"), steps[0], documents("b"), steps[1], "The answer is Bo."])
    assert played.queries[1] == "Ada Moss read Vale." and played.answer.text == "Bo"


@pytest.mark.parametrize(("variant", "sentences"), [("paper", 8), ("official", 10)])
def test_the_last_sentence_is_no_query(play, documents, variant, sentences):
    """As many retrievals as sentences: the question's, and one of each sentence but the last."""
    count = iter(range(1000))

    def endless(name, ask):
        if name == "Retrieve":
            return documents(*(f"d{next(count)}" for _ in range(ask.k)))
        return "The answer is x." if name == "cot" else f"Thought {next(count)}."

    played = play(ircot, endless, variant=variant)
    assert played.names.count("thought") == played.names.count("Retrieve") == sentences
    assert played.names[-2:] == ["thought", "cot"]
    assert len(played.answer.passages) == 15 and played.prompts("cot")[0].count("\nd") == 15
    assert [passage.id for passage in played.answer.passages[:4]] == ["d0", "d1", "d2", "d3"]
    assert played.answer.notes == ("no answer in thoughts",)


def test_a_blank_thought_ends_the_thoughts(play, documents):
    played = play(ircot, [documents("a"), " \n", "The answer is x."])
    assert played.names == ["Retrieve", "thought", "cot"]
    assert played.answer.notes == ("no answer in thoughts", "blank thought")


@pytest.mark.parametrize(("reader", "reply", "notes"), [("cot", "Vale", ("answer unparsed",)), ("direct", "Vale", ())])
def test_readers(play, documents, reader, reply, notes):
    played = play(ircot, [documents("a"), "The answer is b.", reply], reader=reader)
    assert played.names[-1] == reader and (played.answer.text, played.answer.notes) == ("Vale", notes)


def test_empty_retrieval_and_refusal(play, abstains):
    played = play(ircot, [(), "Thought.", (), "The answer is x.", "I don't know"], sentences=2)
    assert "Documents" not in played.prompts("cot")[0] and played.answer.abstained
    over = play(ircot, lambda name, ask: () if name == "Retrieve" else "On and on.", max_calls=4)
    assert abstains(over.answer, "max_calls reached") and over.calls == 4


# --- as the authors' code has it

REPLIES = ["Ada Moss read Vale.", "Thus she knew Bo.", "So the answer is Bo.", "So the answer is Bo Reed."]


def with_documents(documents, replies):
    """A list of passages before each reply but the last two, an answer and a reader's."""
    return [part for reply in replies[:-1] for part in (documents("a"), reply)] + replies[-1:]


def test_official_asks_again_with_the_last_fact(play, documents):
    official = play(ircot, with_documents(documents, REPLIES), variant="official")
    assert official.queries == ["wrote the book that Ada Moss read?", "Ada Moss read Vale.", "Ada Moss read Vale."]
    paper = play(ircot, with_documents(documents, REPLIES))
    assert paper.queries == ["Who wrote the book that Ada Moss read?", "Ada Moss read Vale.", "Thus she knew Bo."]


@pytest.mark.parametrize(
    ("thought", "query"),
    [
        ("thus, Bo wrote it.", None),
        ("So it was Bo.", None),
        ("So, it was Bo.", None),
        ("That is, Bo wrote it.", None),
        ("Therefore it was Bo.", None),
        ("Hence Bo wrote it.", None),
        ("She lived 1,990 - 50.5 = 1,939.5 years.", None),
        ("In all 3 + 4 = 7 books.", None),
        ("Sofia Moss is Thus Hill, which Bo saw.", "Sofia Moss Thus Hill, Bo saw."),
        ("It has 3 + 4 books.", "It has 3 + 4 books."),
    ],
)
def test_official_takes_no_reasoning_as_query(play, documents, thought, query):
    played = play(ircot, with_documents(documents, [thought, "The answer is x.", "x"]), variant="official")
    assert played.queries[1] == (query or "wrote the book that Ada Moss read?")


def test_official_asks_nothing_with_question_words_alone(play, documents):
    replies = [documents("a"), "Where is", "The answer is x.", "The answer is x."]
    assert play(ircot, replies, variant="official").names == ["Retrieve", "thought", "thought", "cot"]
    assert play(ircot, [*replies[:2], (), *replies[2:]]).queries[1] == "Where is"


def test_official_leaves_out_long_passages_and_cuts_the_others(play, documents):
    long, cut = (" ".join([f"w{n}"] * n) for n in (601, 600))
    replies = [documents(long, cut, "c"), "The answer is x.", "The answer is x."]
    official = play(ircot, replies, variant="official")
    assert [passage.text for passage in official.answer.passages] == [cut, "c"]  # whole, as recall reads them
    for prompt in (*official.prompts("thought"), *official.prompts("cot")):
        assert "w601" not in prompt and prompt.count("w600") == 350
    paper = play(ircot, replies)
    assert paper.prompts("cot")[0].count("w601") == 601 and len(paper.answer.passages) == 3


@pytest.mark.parametrize(("variant", "thoughts"), [("paper", 1), ("official", 2)])
def test_official_does_not_end_at_another_form_of_the_answer(play, documents, variant, thoughts):
    replies = [documents("a"), "Answer: Bo.", *[documents("b"), "The answer is: Bo."][: 2 * thoughts - 2], "x"]
    assert play(ircot, replies, variant=variant, reader="direct").names.count("thought") == thoughts


@pytest.mark.parametrize(
    ("reply", "official", "paper"),
    [
        ("The answer is Bo.", "Bo", "Bo"),
        ("Bo wrote it.\nThe answer is Cy.", "Bo wrote it.", "Cy"),
        ("The answer is: Bo. So the answer is Cy..", "Cy.", "Cy"),
        ("Answer: Bo", "Answer: Bo", "Bo"),
    ],
)
def test_official_reads_the_first_line(play, documents, reply, official, paper):
    for variant, answer in (("official", official), ("paper", paper)):
        played = play(ircot, [documents("a"), "The answer is b.", reply], variant=variant)
        assert played.answer.text == answer
        assert ("answer unparsed" in played.answer.notes) == (variant == "official" and answer in reply[: len(answer)])


# --- as FlashRAG has it


def scored(**scores: float) -> tuple[Passage, ...]:
    return tuple(Passage(name, name, score) for name, score in scores.items())


def test_flashrag_shows_the_worst_passage_first_after_a_thought(play):
    replies = [
        scored(a=3.0, b=1.0),
        "Ada read Vale.",
        scored(c=2.0, b=0.5),
        "So the answer is: Bo.",
        "The answer is B.",
    ]
    official = play(ircot, replies[:-1], variant="flashrag", k=2)
    first, second = official.prompts("thought")
    assert "Documents:\na\nb\n" in first and "Documents:\nb\nc\na\n" in second  # sorted after a thought alone
    paper = play(ircot, replies, k=2)
    assert "Documents:\na\nb\nc\n" in paper.prompts("thought")[1]
    assert [passage.id for passage in official.answer.passages] == ["a", "c", "b"]  # ours: best first for recall
    assert official.answer.passages[2].score == 1.0  # the better of its two scores
    kept = official.asks[3][1].prompt.render(2)  # where the prompt has room for two
    assert "Documents:\nc\na\n" in kept and "b" not in kept.split("Documents:")[1].split()


def test_flashrag_has_no_reader(play):
    played = play(ircot, [scored(a=2.0, b=1.0), "So the answer is: Bo."], variant="flashrag")
    assert played.names == ["Retrieve", "thought"] and played.answer.text == "Bo"
    assert [passage.id for passage in played.answer.passages] == ["a", "b"]


def test_flashrag_stops_at_any_full_stop(play):
    replies = [scored(a=1.0), THOUGHT, scored(a=1.0)]
    assert play(ircot, replies, variant="flashrag", sentences=1).queries[1] == "Dr."
    paper = play(ircot, [*replies, "The answer is x.", "x"], reader="direct")
    assert paper.queries[1] == "Dr. Ada Moss read Vale."


@pytest.mark.parametrize(
    ("replies", "answer"),
    [
        (["The answer is Bo.", "It is so.", "So the answer is: Vale."], "Vale"),
        (["Answer: Bo.", "so the answer is Bo.", "So the answer is Vale."], "Vale"),
        (["Ada read.", "The answer is Bo.", "It is long."], "Ada read. The answer is Bo. It is long"),
        (["So the answer is: Bo Reed, So the answer is: Vale."], "Bo Reed,"),
    ],
)
def test_flashrag_ends_with_its_words_alone(play, documents, replies, answer):
    asked = [documents("a"), *[part for reply in replies for part in (reply, documents("a"))]]
    ended = replies[-1].startswith("So ")
    played = play(ircot, asked[: -1 if ended else None], variant="flashrag", sentences=3)
    assert (played.answer.text, played.names.count("thought")) == (answer, len(replies))
    assert ("no answer in thoughts" in played.answer.notes) == (not ended)


def test_flashrag_goes_on_after_a_blank_thought(play, documents):
    replies = [documents("a"), " \n", documents("b"), "So the answer is: Bo."]
    played = play(ircot, replies, variant="flashrag")
    assert played.queries[1] == "" and (played.answer.text, played.answer.notes) == ("Bo", ())
    assert "Documents:\na\nb\n" in played.prompts("thought")[1]


@pytest.mark.parametrize(("sentences", "thoughts"), [(None, 2), (5, 5)])
def test_flashrag_thinks_twice_or_five_times(play, documents, sentences, thoughts):
    def endless(name, ask):
        return documents(*(f"{ask.text[-9:]}{i}" for i in range(ask.k))) if name == "Retrieve" else "No end"

    given = {} if sentences is None else {"sentences": sentences}
    played = play(ircot, endless, variant="flashrag", k=20, **given)
    assert played.names.count("thought") == thoughts and len(played.answer.passages) > 15  # all are kept
    assert played.answer.text == "No end No end" if thoughts == 2 else played.answer.text.endswith("No end")
