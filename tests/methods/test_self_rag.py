"""Self-RAG: the gate, the judgements, the beam; in words and in the checkpoints' tokens; the script's inverted gate."""

from __future__ import annotations

import math

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import Generate
from lm_eval_rag.harness.scoring.normalise import count_words as words
from lm_eval_rag.methods.self_rag import LABELS, self_rag

QUESTION = "Who wrote the book that Ada Moss read?"
ORDER = {  # the labels in the order in which they are asked
    "relevant": ["relevant=yes", "relevant=no"],
    "supported": ["supported=fully", "supported=partially", "supported=no"],
    "useful": [f"useful={n}" for n in range(1, 6)],
}


def logs(*probabilities: float) -> list[float]:
    return [math.log(p) for p in probabilities]


def judged(
    relevant: float, supported: tuple[float, ...], useful: tuple[float, ...], segment: float = 0.0
) -> list[float]:
    """Log-probabilities of a segment and of its three judgements."""
    return [segment, *logs(relevant, 1 - relevant), *logs(*supported), *logs(*useful)]


EVEN = (0.2,) * 5
GOOD, BAD = judged(0.9, (0.8, 0.1, 0.1), EVEN), judged(0.3, (0.1, 0.1, 0.8), EVEN)


def test_each_passage_leads_to_a_candidate_and_the_best_wins(play, documents):
    played = play(self_rag, [*logs(0.5, 0.5), documents("a", "b"), "Bad.", *BAD, "Bo wrote it.", *GOOD], k=2)
    one = ["segment", "segment={}", *ORDER["relevant"], *ORDER["supported"], *ORDER["useful"]]
    expected = ["HasLoglikelihood", "retrieve=yes", "retrieve=no", "Retrieve"]
    for text in ("Bad.", "Bo wrote it."):
        expected += [name.format(text) for name in one]
    assert played.names == expected and played.queries == [QUESTION]
    assert played.answer.text == "Bo wrote it." and played.answer.notes == ()
    assert [passage.id for passage in played.answer.passages] == ["b", "a"]  # the winner's first
    assert ["Documents:\na\n" in prompt for prompt in played.prompts("segment")] == [True, False]
    assert "Documents:\nb\nQuestion: " in played.prompts("supported=no")[1]
    assert "Statement: Bo wrote it." in played.prompts("supported=no")[1]


def reference(relevant, supported, useful, segment, text, weights=(1.0, 1.0, 1.0)):
    """The score of the paper's section 3.3, restated."""
    s_relevant = relevant
    s_supported = (supported[0] + 0.5 * supported[1]) / sum(supported)
    s_useful = sum((i - 2) / 2 * p for i, p in enumerate(useful)) / sum(useful)
    critique = weights[0] * s_relevant + weights[1] * s_supported + weights[2] * s_useful
    return math.exp(segment) ** (1 / words(text)) + critique


@pytest.mark.parametrize(
    "weights", [(1.0, 1.0, 1.0), (1.0, 1.0, 0.5), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 2.0, 0.0)]
)
def test_the_best_by_the_papers_score(play, documents, weights):
    cases = [
        (0.9, (0.2, 0.2, 0.6), (0.1, 0.1, 0.1, 0.1, 0.6), -3.0),
        (0.5, (0.7, 0.2, 0.1), (0.2, 0.2, 0.2, 0.2, 0.2), -1.0),
        (0.6, (0.1, 0.8, 0.1), (0.05, 0.05, 0.1, 0.2, 0.6), -9.0),
    ]
    replies = [*logs(0.9, 0.1), documents("a", "b", "c")]
    texts = ["One.", "Two words here.", "Three."]
    for case, text in zip(cases, texts, strict=True):
        replies += [text, *judged(*case)]
    given = dict(zip(("w_relevant", "w_supported", "w_useful"), weights, strict=True))
    scores = [reference(*case, text, weights) for case, text in zip(cases, texts, strict=True)]
    assert play(self_rag, replies, k=3, **given).answer.text == texts[scores.index(max(scores))]


def test_the_weight_of_usefulness_is_the_papers_and_flashrags(play, documents):
    """Section 4.2 has 1.0, 1.0 and 0.5, FlashRAG 1 for all; a sentence that is only useful wins by the larger one."""
    plain = (0.9, (0.8, 0.1, 0.1), (0.6, 0.1, 0.1, 0.1, 0.1), -3.0)
    useful = (0.3, (0.6, 0.1, 0.3), (0.02, 0.02, 0.02, 0.04, 0.9), -3.0)
    replies = [*logs(0.9, 0.1), documents("a", "b"), "Plain.", *judged(*plain), "Useful.", *judged(*useful)]
    for variant, weight in (("paper", 0.5), ("official", 0.5), ("flashrag", 1.0)):
        by_name = {"Plain.": plain, "Useful.": useful}
        scores = {text: reference(*case, text, (1.0, 1.0, weight)) for text, case in by_name.items()}
        given = [*logs(0.5, 0.5), *replies[2:]]
        best = max(scores, key=scores.__getitem__)
        assert (
            play(self_rag, given, variant=variant).answer.text
            == best
            == play(self_rag, given, variant=variant, w_useful=weight).answer.text
        )
        assert best == ("Useful." if weight == 1.0 else "Plain.")


@pytest.mark.parametrize(("tokens", "asked"), [(False, "one short sentence"), (True, "Give a short answer")])
def test_flashrag_keeps_the_whole_reply_and_asks_for_a_short_answer(play, documents, tokens, asked):
    first = [*logs(0.95, 0.05), documents("a"), "Bo wrote it.\nIn 1912.[Utility:5]", *GOOD]
    theirs, ours = (play(self_rag, first, tokens=tokens, variant=name) for name in ("flashrag", "paper"))
    assert (theirs.answer.text, ours.answer.text) == ("Bo wrote it. In 1912.", "Bo wrote it.")
    (prompt,) = [str(_text(ask)) for ask in theirs.asks if isinstance(ask[1], Generate)]
    assert asked in prompt and "Retrieve" in theirs.names  # its gate is the paper's, not the inverted one


def _text(asked):
    prompt = asked[1].prompt
    return prompt if isinstance(prompt, str) else prompt.render()


@pytest.mark.parametrize(
    ("p", "paper", "official"),
    [(0.95, True, False), (0.5, True, True), (0.25, True, True), (0.15, False, True), (0.05, False, True)],
)
def test_the_scripts_gate_inverts_the_decision(play, documents, p, paper, official):
    """At 0.95 the paper retrieves and the script does not; at 0.05 it is the other way round."""
    for variant, retrieves in (("paper", paper), ("official", official)):
        replies = [*logs(p, 1 - p), *([documents("a"), "Bo.", *GOOD] if retrieves else ["Bo.", 0.0, *logs(*EVEN)])]
        played = play(self_rag, replies, variant=variant)
        assert ("Retrieve" in played.names) == retrieves, variant
    assert (math.log(0.95) / (math.log(0.95) + math.log(0.05)) > 0.2) is False


def test_without_retrieval_or_passages(play, abstains):
    never = play(self_rag, [*logs(0.1, 0.9), "Bo wrote it.", -1.0, *logs(*EVEN)])
    assert never.names[-5:] == ORDER["useful"] and "Documents" not in never.prompts("segment")[0]
    assert (never.answer.text, never.answer.passages, never.answer.notes) == ("Bo wrote it.", (), ())
    nothing = play(self_rag, [*logs(0.9, 0.1), (), "I don't know.", -1.0, *logs(*EVEN)])
    assert nothing.answer.abstained and nothing.answer.notes == ("nothing retrieved",)
    assert abstains(play(self_rag, [*logs(0.9, 0.1), (), " "]).answer, "blank answer")


def test_segments_and_beam(play, documents):
    """Two answers go on; each is continued by what its last segment retrieves, and the sums of scores decide."""
    fine, poor = judged(0.9, (0.9, 0.05, 0.05), EVEN), judged(0.1, (0.1, 0.1, 0.8), EVEN)
    middle = judged(0.6, (0.5, 0.3, 0.2), EVEN)
    played = play(
        self_rag,
        [*logs(0.9, 0.1), documents("a", "b", "c"), "Poor.", *poor, "Middle.", *middle, "Fine.", *fine,
         *logs(0.9, 0.1), documents("d"), "Lost.", *poor,
         *logs(0.9, 0.1), documents("e"), "So the answer is Bo.", *fine],
        segments=2, k=3,
    )  # fmt: skip
    assert played.queries == [QUESTION, f"{QUESTION} Fine.", f"{QUESTION} Middle."]
    assert played.prompts("segment")[3].endswith("Answer: Fine.")
    assert played.answer.text == "Bo"  # Middle. So the answer is Bo. beats Fine. Lost.
    assert [passage.id for passage in played.answer.passages] == ["b", "e", "c", "d"]


def test_ended_answers_are_not_continued(play, documents):
    played = play(self_rag, [*logs(0.9, 0.1), documents("a"), "The answer is Bo.", *GOOD], segments=3)
    assert played.answer.text == "Bo" and played.names.count("segment") == 1
    blank = play(self_rag, [*logs(0.9, 0.1), documents("a"), "One.", *GOOD, *logs(0.9, 0.1), documents("b"), " "],
                 segments=3)  # fmt: skip
    assert blank.answer.text == "One." and blank.names.count("segment") == 2


def test_without_log_probabilities_the_labels_written_count(play, documents):
    replies = ["Yes", documents("a", "b"), "A.", "no", "partially", "3", "B.", "yes", "Fully.", "5"]
    played = play(self_rag, replies, scored=False)
    assert played.names[1:] == ["retrieve", "Retrieve", *["segment", "relevant", "supported", "useful"] * 2]
    assert played.answer.text == "B." and played.answer.notes == ("no log-probabilities: labels",)
    assert "Retrieve" not in play(self_rag, ["No", "A.", "4"], scored=False).names
    undecided = play(self_rag, ["perhaps", documents("a"), "A.", "hm", "hm", "hm"], scored=False)
    assert undecided.answer.text == "A."  # 1/2 is above the threshold
    inverted = play(self_rag, ["Yes", "A.", "4"], scored=False, variant="official")
    assert "Retrieve" not in inverted.names


def test_the_checkpoints_tokens(play, documents):
    replies = [*logs(0.9, 0.1), documents("a"), "[Relevant]Bo wrote it.[Fully supported][Utility:5]</s>", *GOOD]
    played = play(self_rag, replies, tokens=True)
    begun = f"### Instruction:\n{QUESTION}\n\n### Response:\n"
    with_passage = f"{begun}[Retrieval]<paragraph>a</paragraph>"
    texts = {ask.continuation: ask.prompt for name, ask in played.asks if name.startswith("text=")}
    assert texts["[Retrieval]"] == texts["[No Retrieval]"] == begun
    assert texts["[Irrelevant]"] == with_passage and texts["Bo wrote it."] == f"{with_passage}[Relevant]"
    assert texts["[Partially supported]"] == f"{with_passage}[Relevant]Bo wrote it."
    assert texts["[Utility:1]"] == f"{with_passage}[Relevant]Bo wrote it.[Fully supported]"
    assert set(texts) == {mark for _, marks, _ in LABELS.values() for mark in marks} | {"Bo wrote it."}
    assert played.answer.text == "Bo wrote it."
    none = play(self_rag, [*logs(0.1, 0.9), "Bo.", 0.0, *logs(*EVEN)], tokens=True)
    assert none.asks[3][1].prompt == f"{begun}[No Retrieval]"


def test_tokens_need_log_probabilities(play):
    with pytest.raises(UserError, match=r"tokens=True needs log-probabilities.*Take generator=hf"):
        play(self_rag, [], tokens=True, scored=False)


def test_it_abstains_at_its_limit(play, documents, abstains):
    played = play(self_rag, [*logs(0.9, 0.1), documents("a"), "Bo.", 0.0], max_calls=4)
    assert abstains(played.answer, "max_calls reached") and played.answer.passages == documents("a")
