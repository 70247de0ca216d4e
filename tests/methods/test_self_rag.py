"""Self-RAG: the gate, the judgements, the beam; in words and in the checkpoints' tokens; the script's inverted gate."""

from __future__ import annotations

import math

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import Generate, Loglikelihood
from lm_eval_rag.harness.core.written import Written
from lm_eval_rag.harness.scoring.normalise import count_words as words
from lm_eval_rag.methods.self_rag import self_rag
from lm_eval_rag.methods.self_rag_parts.reflection import LABELS

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
    assert played.answer.text == "Bo wrote it." and played.answer.notes == ("answer unparsed",)
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


def test_the_weight_of_usefulness_is_the_papers_and_the_scripts(play, documents):
    """Section 4.2 has 1.0, 1.0 and 0.5; FlashRAG 1 for all, and so the authors' script since 6947748, at HEAD too.

    A sentence that is only useful wins by the larger weight.
    """
    plain = (0.9, (0.8, 0.1, 0.1), (0.6, 0.1, 0.1, 0.1, 0.1), -3.0)
    useful = (0.3, (0.6, 0.1, 0.3), (0.02, 0.02, 0.02, 0.04, 0.9), -3.0)
    replies = [*logs(0.9, 0.1), documents("a", "b"), "Plain.", *judged(*plain), "Useful.", *judged(*useful)]
    for variant, weight in (("paper", 0.5), ("official", 1.0), ("flashrag", 1.0)):
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
    in_turn = [*first[:4], *GOOD[1:3], GOOD[0], *GOOD[3:]] if tokens else first
    theirs, ours = (
        play(self_rag, given, tokens=tokens, variant=name) for name, given in (("flashrag", in_turn), ("paper", first))
    )
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
        unscored = ["Bo."] if variant == "official" else ["Bo.", 0.0, *logs(*EVEN)]
        replies = [*logs(p, 1 - p), *([documents("a"), "Bo.", *GOOD] if retrieves else unscored)]
        played = play(self_rag, replies, variant=variant)
        assert ("Retrieve" in played.names) == retrieves, variant
    assert (math.log(0.95) / (math.log(0.95) + math.log(0.05)) > 0.2) is False


def test_without_retrieval_or_passages(play, abstains):
    never = play(self_rag, [*logs(0.1, 0.9), "Bo wrote it.", -1.0, *logs(*EVEN)])
    assert never.names[-5:] == ORDER["useful"] and "Documents" not in never.prompts("segment")[0]
    assert (never.answer.text, never.answer.passages, never.answer.notes) == ("Bo wrote it.", (), ("answer unparsed",))
    nothing = play(self_rag, [*logs(0.9, 0.1), (), "I don't know.", -1.0, *logs(*EVEN)])
    assert nothing.answer.abstained and nothing.answer.notes == ("nothing retrieved", "answer unparsed")
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
    assert played.answer.text == "B." and played.answer.notes == ("no log-probabilities: labels", "answer unparsed")
    assert "Retrieve" not in play(self_rag, ["No", "A.", "4"], scored=False).names
    undecided = play(self_rag, ["perhaps", documents("a"), "A.", "hm", "hm", "hm"], scored=False)
    assert undecided.answer.text == "A."  # 1/2 is above the threshold
    inverted = play(self_rag, ["Yes", "A."], scored=False, variant="official")
    assert "Retrieve" not in inverted.names


def test_replies_with_log_probabilities(play, documents):
    """Labels by the likeliest first tokens, p(segment) by its own tokens: Bo wins by relevance, Cy by probability."""

    def label(*tokens):
        return (Written("hm", [("hm", -3.0)], [(text, math.log(p)) for text, p in tokens]),)

    def segment(text, log):
        return (Written(f"{text} More.", [(text, log), (" More.", -50.0)]),)

    alike = [label(("fully", 0.5)), label(("3", 0.5))]
    worse, better = [label(("no", 0.9), ("yes", 0.1)), *alike], [label(("no", 0.1), (" Yes", 0.9)), *alike]
    retrieve = label(("No", 0.7), ("Yes", 0.3))  # above the threshold of 0.2
    replies = [retrieve, documents("a", "b"), segment("Al did.", -0.1), *worse, segment("Bo did.", -0.1), *better]
    played = play(self_rag, replies, scored="replies")
    assert played.names[1:] == ["retrieve", "Retrieve", *["segment", "relevant", "supported", "useful"] * 2]
    assert played.answer.text == "Bo did." and played.answer.notes == ("answer unparsed",)
    replies = [retrieve, documents("a", "c"), segment("Al did.", -5.0), *better, segment("Cy did.", -0.1), *better]
    assert play(self_rag, replies, scored="replies").answer.text == "Cy did."
    with pytest.raises(UserError, match="tokens=True needs log-probabilities of any text"):
        play(self_rag, [], tokens=True, scored="replies")


def test_the_last_segment_goes_on_to_the_answer(play, documents):
    """A model that was told one sentence often writes two; the answer is not lost with the second."""
    reply = "Ed Wood was directed by Al. So the answer is Al. That is all."
    alone = play(self_rag, [*logs(0.9, 0.1), documents("a"), reply, *GOOD])
    assert alone.answer.text == "Al" and alone.answer.notes == ()
    assert "segment=Ed Wood was directed by Al. So the answer is Al." in alone.names
    again = [*logs(0.1, 0.9), "So the answer is Bo.", 0.0, *logs(*EVEN)]
    first = play(self_rag, [*logs(0.9, 0.1), documents("a"), reply, *GOOD, *again], segments=2, beam=1)
    assert "segment=Ed Wood was directed by Al." in first.names and first.answer.text == "Bo"


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


# --- the authors' script for short answers (1fcdc42, run_short_form.py)

RELEVANT, NOT_RELEVANT = (0.8, 0.1), (0.1, 0.8)
NONE = (0.01, 0.02, 0.01)  # another token is likelier than all of these
OPEN = logs(0.05, 0.95)  # its gate is inverted


def script(relevant, supported, useful, p):
    """A candidate's score with --use_seqscore --use_groundness --use_utility; None where no such token was written."""
    score = p + relevant[0] / sum(relevant)
    if supported is not None:
        score += (supported[0] + 0.5 * supported[1]) / sum(supported)
    if useful is not None:
        score += sum(worth * share for worth, share in zip((-1, -0.5, 0, 0.5, 1), useful, strict=True)) / sum(useful)
    return score


def written(text, relevant, supported, useful, p):
    """Replies for one candidate of a checkpoint: its text, then what is asked in turn."""
    log = words(text) * math.log(p)
    return [text, *logs(*relevant), log, *logs(*(supported or NONE)), *logs(*(useful or (0.02,) * 5))]


CANDIDATES = {
    "Bo": (RELEVANT, (0.3, 0.6, 0.1), (0.1, 0.1, 0.1, 0.1, 0.5), 0.9),
    "Cy wrote it. He was old.": (NOT_RELEVANT, None, (0.01, 0.01, 0.02, 0.05, 0.9), 0.6),
    "Di": (RELEVANT, (0.9, 0.05, 0.05), None, 0.3),
    "Ed": (RELEVANT, (0.1, 0.1, 0.8), (0.6, 0.1, 0.1, 0.1, 0.1), 0.99),
    "Flo and Bo": (RELEVANT, (0.3, 0.6, 0.1), (0.1, 0.1, 0.1, 0.1, 0.5), 0.5),  # as Bo, but for its p
    "Gil": ((0.3, 0.01), (0.3, 0.6, 0.1), EVEN, 0.9),
    "Hal": ((0.3, 0.3), (0.3, 0.6, 0.1), EVEN, 0.95),
}


@pytest.mark.parametrize(
    "names",
    [("Bo", "Ed"), ("Cy wrote it. He was old.", "Ed"), ("Di", "Bo"), ("Flo and Bo", "Bo"), ("Hal", "Gil"),
     tuple(CANDIDATES)],
)  # fmt: skip
def test_the_script_chooses_the_same_whole_answer(play, documents, names):
    scores = {name: script(*CANDIDATES[name]) for name in names}
    replies = [*OPEN, documents(*"abcdefg"[: len(names)])]
    for name in names:
        replies += written(name, *CANDIDATES[name])
    played = play(self_rag, replies, variant="official", tokens=True)
    assert played.answer.text == max(scores, key=scores.__getitem__)


def test_a_missing_token_scores_0_not_what_its_label_would(play, documents):
    """Without a ground token support is 0, though the share of [Fully supported] among the labels would be 1."""
    absent, weak = (0.2, 0.0001, 0.0001), (0.1, 0.3, 0.6)
    cases = {"Bo": (RELEVANT, weak, EVEN, 0.5), "Cy": (RELEVANT, absent, EVEN, 0.5)}
    replies = [*OPEN, documents("a", "b")]
    for text, case in cases.items():
        replies += written(text, *case)
    assert play(self_rag, replies, variant="official", tokens=True).answer.text == "Bo"
    assert script(*cases["Bo"]) > script(RELEVANT, None, EVEN, 0.5)
    assert script(*cases["Cy"]) > script(*cases["Bo"])


def test_labels_are_asked_for_where_the_checkpoint_writes_them(play, documents):
    cases = {"Bo": (RELEVANT, (0.3, 0.6, 0.1), EVEN, 0.5), "Cy": (NOT_RELEVANT, None, EVEN, 0.5)}
    replies = [*OPEN, documents("a", "b")]
    for text, case in cases.items():
        replies += written(text, *case)
    played = play(self_rag, replies, variant="official", tokens=True)
    begun = f"### Instruction:\n{QUESTION}\n\n### Response:\n[Retrieval]<paragraph>"
    asked = [ask.prompt.removeprefix(begun) for name, ask in played.asks if isinstance(ask, Generate | Loglikelihood)]
    assert list(dict.fromkeys(asked[2:])) == [
        "a</paragraph>",  # the generation begins here, too: nothing is forced
        "a</paragraph>[Relevant]",
        "a</paragraph>[Relevant]Bo",
        "a</paragraph>[Relevant]Bo[Partially supported]",
        "b</paragraph>",
        "b</paragraph>[Irrelevant]",
        "b</paragraph>[Irrelevant]Cy",
    ]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("[Relevant]Bo wrote it.[Partially supported] So the answer is Bo.[Utility:5]</s>",
         "Bo wrote it. So the answer is Bo."),
        ("# Bo", "Bo"), (": Bo", "Bo"), ("Bo\n<paragraph>Vale</paragraph>", "Bo Vale"),
    ],
)  # fmt: skip
def test_the_whole_generation_is_the_answer_and_without_retrieval_nothing_is_scored(play, reply, text):
    played = play(self_rag, [*logs(0.95, 0.05), reply], variant="official", tokens=True)
    assert played.answer.text == text and played.calls == 3


@pytest.mark.parametrize(
    ("given", "passages", "tokens"),
    [({"variant": "official"}, 10, 100), ({"variant": "official", "closed": True}, 5, 50), ({}, 5, 100),
     ({"variant": "flashrag"}, 5, 100), ({"variant": "flashrag", "closed": True}, 5, 100),
     ({"variant": "official", "k": 3, "segment_tokens": 7}, 3, 7)],
)  # fmt: skip
def test_the_readmes_passages_and_tokens(play, documents, given, passages, tokens):
    def served(name, ask):
        return documents("a") if name == "Retrieve" else "Bo." if isinstance(ask, Generate) else -1.0

    played = play(self_rag, served, **given)
    assert {ask.k for name, ask in played.asks if name == "Retrieve"} == {passages}
    assert {ask.max_tokens for _, ask in played.asks if isinstance(ask, Generate)} == {tokens}


@pytest.mark.parametrize("variant", ["official", "flashrag", "paper"])
def test_closed_adds_up_the_scores_of_equal_answers(play, documents, variant):
    """Twice a middling "true" beats one good "false"; without it the best passage decides."""
    middling = judged(0.6, (0.5, 0.3, 0.2), EVEN)
    replies = [*logs(0.5, 0.5), documents("a", "b", "c"), "true", *middling, "false", *GOOD, "true", *middling]
    sums = play(self_rag, replies, variant=variant, closed=True)
    assert sums.answer.text == "true" and play(self_rag, replies, variant=variant).answer.text == "false"


def test_in_words_an_unreadable_label_scores_0_for_the_scripts(play, documents):
    """Undecided support is 1/2 for the paper; the script gives it nothing."""
    replies = ["No", documents("a", "b"), "A.", "yes", "hm", "3", "B.", "yes", "partially", "3"]
    assert play(self_rag, replies, scored=False, variant="official").answer.text == "B."
    retrieved = ["Yes", *replies[1:]]
    assert play(self_rag, retrieved, scored=False).answer.text == "A."  # alike, so the first
    assert play(self_rag, retrieved, scored=False, variant="flashrag").answer.text == "B."


@pytest.mark.parametrize("variant", ["official", "flashrag"])
def test_the_scripts_have_one_segment(play, variant):
    with pytest.raises(UserError, match=rf"segments=2 is not allowed with variant={variant}"):
        play(self_rag, [], variant=variant, segments=2)


def test_tokens_need_log_probabilities(play):
    with pytest.raises(UserError, match=r"tokens=True needs log-probabilities.*Take generator=hf"):
        play(self_rag, [], tokens=True, scored=False)


def test_it_abstains_at_its_limit(play, documents, abstains):
    played = play(self_rag, [*logs(0.9, 0.1), documents("a"), "Bo.", 0.0], max_calls=6)
    assert abstains(played.answer, "max_calls reached") and played.answer.passages == documents("a")
