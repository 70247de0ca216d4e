"""What methods of several steps share: the limit of calls, reading replies, labels, prompts of a user."""

from __future__ import annotations

import ast
import math
import random
import time
from collections import Counter

import pytest

from lm_eval_rag._register import METHODS, method_of
from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import generate, loglikelihood, retrieve, sample, together
from lm_eval_rag.harness.core.parameters import defaults, variant
from lm_eval_rag.harness.core.preparing import preparation_of
from lm_eval_rag.harness.core.types import Answer, Passage, Query
from lm_eval_rag.harness.core.written import Written
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.methods.crp.building import read_step
from lm_eval_rag.methods.prompts.worded import PARTS, wordings
from lm_eval_rag.methods.reasoning.judgements import ABSENT, begun, first_label, label_logs, shares
from lm_eval_rag.methods.reasoning.rationales import (
    answer_in,
    answer_or_first_line,
    answer_or_line,
    consistency,
    first_sentence,
    lines,
    overlap,
    sentences,
)
from lm_eval_rag.methods.reasoning.steps import final, limited, merged, within
from lm_eval_rag.methods.search_agent import PROTOCOLS, _call

LIMITED = [name for name in METHODS if "max_calls" in defaults(method_of(name))]


def asks(query: Query, *, max_calls: int = 3):
    """One retrieval, then three samples, a log-probability, and a generation."""
    passages = yield from retrieve(query.text, 2)
    yield from sample("p", 3, 1.0)
    yield from loglikelihood("p", "c")
    yield from generate("p")
    return Answer("done", passages)


@pytest.mark.parametrize(("most", "made"), [(1, 0), (2, 0), (3, 3), (4, 4), (5, 5), (9, 5)])
def test_a_method_ends_within_max_calls(most, made, play, documents, abstains):
    def replies(name, ask):
        served = {"Retrieve": documents("a", "b"), "text": ("x",) * 3, "text=c": -1.0}
        return served[name]

    played = play(limited(asks), replies, name="ircot", max_calls=most)
    assert played.calls == made
    assert [passage.id for passage in played.answer.passages] == ["a", "b"]
    assert played.answer.text == "done" if most >= 5 else abstains(played.answer, "max_calls reached")


def test_without_a_value_the_default_holds(play, documents, abstains):
    played = play(limited(asks), lambda name, ask: documents("a") if name == "Retrieve" else ("x",), name="ircot")
    assert abstains(played.answer, "max_calls reached") and played.calls == 3


def test_variants_of_a_limited_method_have_defaults_of_their_own(play, documents, abstains):
    quick = variant(limited(asks), "quick", max_calls=4)
    assert (quick.__name__, defaults(quick), defaults(limited(asks))) == ("quick", {"max_calls": 4}, {"max_calls": 3})
    replies = [documents("a"), ("x",) * 3, -1.0]
    assert abstains(play(quick, replies, name="ircot").answer, "max_calls reached")
    flashrag = variant(method_of("ircot"), "ircot_flashrag", variant="flashrag")
    assert play(flashrag, [documents("a"), "So the answer is Bo."], name="ircot").names == ["Retrieve", "thought"]


def test_failures_pass_through_the_limit():
    def careful():
        try:
            yield from generate("p")
        except CallError:
            return Answer("handled")
        return Answer("served")

    plan = within(careful(), 5)
    next(plan)
    with pytest.raises(StopIteration) as stop:
        plan.throw(CallError("down"))
    assert stop.value.value.text == "handled"


def endless(documents):
    """Replies of a model that says something new each time and never comes to an end."""
    counter = iter(range(10**6))

    def babbles(step, ask):
        if step == "Retrieve":
            return documents(*(f"{ask.text[:20]} {next(counter)}" for _ in range(ask.k)))
        if not hasattr(ask, "n"):
            return -5.0
        return tuple(f"Thought {next(counter)} about {next(counter)}." for _ in range(ask.n))

    return babbles


@pytest.mark.parametrize("name", LIMITED)
def test_by_default_no_limit_contradicts_the_parameters(name, play, documents):
    """However large the others are: a default that is a number would end every question in an abstention."""
    assert defaults(method_of(name))["max_calls"] is None
    counts = {key: value for key, value in defaults(method_of(name)).items() if type(value) is int}
    larger = {key: 2 * value for key, value in counts.items() if not key.endswith("_tokens")}
    assert "max_calls reached" not in play(method_of(name), endless(documents), **larger).answer.notes


@pytest.mark.parametrize(
    ("name", "given", "calls"),
    [
        ("self_rag", {"segments": 5, "k": 5}, 89 + 4 * 178),
        ("ircot", {"sentences": 15}, 16),
        ("iter_retgen", {"iterations": 11}, 11),
        ("chain_of_knowledge", {"sentences": 20}, 5 + 3 * 20),
        ("search_agent", {"max_searches": 12}, 13),
        ("tree_of_thoughts", {"steps": 4}, 5 + 5 * 3 + 3 * (25 + 25 * 3) + 1),
    ],
)
def test_large_parameters_are_followed_to_the_end(name, given, calls, play, documents):
    played = play(method_of(name), endless(documents), **given)
    assert played.calls == calls and played.answer.notes != ("max_calls reached",)


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize("most", [1, 2, 5, 9])
def test_every_method_of_several_steps_keeps_its_limit(name, most, play, documents):
    babbles = endless(documents)
    played = play(method_of(name), babbles, max_calls=most)
    assert played.calls <= most and isinstance(played.answer, Answer)
    assert bool(played.answer.abstained) == (played.answer.text == "I don't know")
    _, whole = played, play(method_of(name), babbles)
    retrieved = {f"{ask.text[:20]}" for step, ask in whole.asks if step == "Retrieve"}
    shown = {passage.id.rpartition(" ")[0] for passage in whole.answer.passages}
    if preparation_of(method_of(name)) is None:  # others retrieve what was prepared: see their own tests
        assert shown <= retrieved if name == "ircot" else shown == retrieved  # IRCoT keeps 15 passages
    assert len({passage.id for passage in whole.answer.passages}) == len(whole.answer.passages)


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize("reply", ["", "   \n\n", "?!.", "the answer is", "\x00", "{question} {0} %s", "a" * 5_000])
@pytest.mark.parametrize("scored", [True, False])
def test_malformed_replies_end_in_an_answer_or_a_clear_abstention(name, reply, scored, play, documents):
    for passages in ((), documents("d1 is odd.", "{d2}")):

        def replies(step, ask, passages=passages):
            if step == "Retrieve":
                return passages[: ask.k]
            return reply if hasattr(ask, "n") else -1.0

        played = play(method_of(name), replies, scored=scored)
        answer = played.answer
        assert answer.abstained == (answer.text == "I don't know") and answer.text.strip()
        assert not answer.abstained or answer.notes
        assert len(set(answer.notes)) == len(answer.notes)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("So the answer is Vale.", "Vale"),
        ("The answer is: 3.5", "3.5"),
        ("The answer is A. No, the answer is **B**.", "B"),
        ("Answer: Ada Moss\nmore", "Ada Moss"),
        ("the final answer is yes", "yes"),
        ("I cannot say.", None),
        ("the answer is", None),
        ("the answer is.", None),
        ("The answering machine", None),
        ("The answer to this question is Bo.", "Bo"),
        ("The answer is Paris. It is stated in document 2.", "Paris"),
        ("Answer: Paris! The documents say so.", "Paris"),
        ("So the answer is Sgt. Pepper.", "Sgt. Pepper"),
        ("So the answer is St. The\u00f3.", "St. The\u00f3"),
        ("The answer is Who Is He? It", "Who Is He"),
    ],
)
def test_stated_answers(text, answer):
    assert answer_in(text) == answer


def test_without_a_stated_answer_the_last_line_counts():
    assert answer_or_line("One.\n\nVale\n ") == "Vale" and answer_or_line(" ") == ""
    assert answer_or_line("So the answer is") == "" and answer_or_line("Vale\nFinal answer:") == "Vale"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Paris\n\nExplanation: The documents say so.", "Paris"),
        ("\n- **Paris**\n", "Paris"),
        ("Sure.\nThe answer is:\nParis", "Paris"),
        ("The answer is", ""),
        (" \n", ""),
    ],
)
def test_of_a_reply_that_should_be_the_bare_answer_the_first_line_counts(text, answer):
    assert answer_or_first_line(text) == answer


def test_numbers_before_sentences_are_none():
    text = "1. Ed Wood was directed by Tim Burton.\n2) He was born in 1958. So\n- it is."
    assert sentences(text) == ["Ed Wood was directed by Tim Burton.", "He was born in 1958.", "So", "it is."]
    assert first_sentence(text) == "Ed Wood was directed by Tim Burton." and first_sentence("1.\n") == ""
    assert sentences("1958 was long. 3.5 is it.") == ["1958 was long.", "3.5 is it."]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Dr. Ada Moss lives in the U.S. today. It rains! Why?", ["Dr. Ada Moss lives in the U.S. today.", "It rains!",
                                                                   "Why?"]),
        ("It costs 3.5 francs. J. Reed paid.", ["It costs 3.5 francs.", "J. Reed paid."]),
        ("no stop\nnext line", ["no stop", "next line"]),
        ('He said "no." Then he left', ['He said "no."', "Then he left"]),
        (" \n ", []),
    ],
)  # fmt: skip
def test_sentences(text, parts):
    assert sentences(text) == parts


def test_lines_have_no_bullets():
    assert lines("1. Who?\n\n- What?\n* (2) x\n3.5 is it\n-") == ["Who?", "What?", "(2) x", "3.5 is it"]


def test_sentences_lose_nothing():
    rng = random.Random(0)
    for _ in range(300):
        text = "".join(rng.choice("ab A.!? \n\"'Dr") for _ in range(rng.randrange(60)))
        assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "loop", ["\n", "!", "Dr. ", "a.", "the answer ", "<search>", "Search:\n", "(", " ", "so the ", "**", "a__", ":\n",
             "sure! ", "not no "],
)  # fmt: skip
def test_a_reply_that_loops_is_read_at_once(loop):
    text, began = loop * (300_000 // len(loop)) + "x", time.process_time()
    sentences(text), answer_or_line(text), consistency([text, text]), first_label(text, ("yes", "no")), read_step(text)
    first_sentence(text), answer_or_first_line(text)
    for protocol in PROTOCOLS.values():
        _call(text, protocol)
    assert time.process_time() - began < 5


def test_overlap_is_dice_of_bags():
    assert overlap("red green", "red blue") == 0.5 and overlap("a b", "c d") == 0 and overlap("Red!", "red") == 1
    rng = random.Random(1)
    for _ in range(200):
        a, b = ([rng.choice("stuvwx") * 2 for _ in range(rng.randrange(1, 8))] for _ in range(2))
        common = sum(min(count, Counter(b)[word]) for word, count in Counter(a).items())
        assert overlap(" ".join(a), " ".join(b)) == pytest.approx(2 * common / (len(a) + len(b)))


def test_words_are_counted_with_signs():
    assert count_words("Vale, in 1994.") == 5 and count_words("") == 1


def test_consistency_is_the_most_frequent_answer():
    agreed = consistency(["X. The answer is vale.", "No.", "One. Two. The answer is Moor.", "The answer is the Moor."])
    assert (agreed.answer, agreed.rationale, agreed.votes) == ("Moor", "One. Two.", 2)
    assert consistency(["nothing"]).votes == 0 and consistency(["nothing"]).rationale == "nothing"


def test_merged_keeps_the_first_of_each(documents):
    lists = [documents("a", "b"), documents("b", "c"), documents("d")]
    assert [p.id for p in merged(lists)] == ["a", "b", "c", "d"] and len(merged(lists, 3)) == 3


def test_a_blank_answer_abstains(abstains):
    assert abstains(final(" "), "blank answer") and final("I don't know.").abstained and not final(" x ").abstained


def test_labels_are_whole_words():
    assert first_label("Well: NO, not yes", ("yes", "no")) == "no" and first_label("nothing", ("no",)) is None
    assert first_label("I say [Utility:4]", ("[Utility:5]", "[Utility:4]")) == "[Utility:4]"


def test_label_probabilities(play):
    def plan(scored):
        def method(query):
            return Answer(str((yield from label_logs("p", ("yes", "no"), scored))))

        return method

    assert play(plan("texts"), [-1.0, -2.0], name="ircot").answer.text == "{'yes': -1.0, 'no': -2.0}"
    assert play(plan(""), ["No!"], name="ircot").answer.text == str({"yes": ABSENT, "no": 0.0})
    probabilities = shares({"yes": math.log(0.6), "no": math.log(0.2)})
    assert probabilities["yes"] == pytest.approx(0.75) and sum(probabilities.values()) == pytest.approx(1)
    assert shares({1: -math.inf, 2: -math.inf}) == {1: 0.5, 2: 0.5} and shares({1: ABSENT, 2: ABSENT})[1] == 0.5


def test_a_label_in_words_has_two_forms_and_a_token_one(play):
    given = {" yes": 0.1, " Yes": 0.4, " no": 0.2, " No": 0.0, " 5": 0.3, "[Yes]": 0.5}

    def asked(labels, space):
        def method(query):
            logs = yield from label_logs("p", labels, "texts", space)
            return Answer(" ".join(f"{label} {math.exp(log):.3f}" for label, log in logs.items()))

        def reply(name, ask):
            return math.log(given[ask.continuation]) if given[ask.continuation] else -math.inf

        played = play(method, reply, name="ircot")
        return played.answer.text, played.calls

    assert asked(("yes", "no", "5"), " ") == ("yes 0.500 no 0.200 5 0.300", 5)
    assert asked(("[Yes]",), "") == ("[Yes] 0.500", 1)


def test_labels_among_the_likeliest_first_tokens(play):
    """Probabilities of " Yes" and "YE" add up; "Y" may begin anything, "un" no label, and "part" two."""

    def method(query):
        return Answer(str((yield from label_logs("p", ("yes", "no"), "replies"))))

    first = [(" Yes", math.log(0.4)), ("YE", math.log(0.1)), ("Y", math.log(0.1)), ('"no', math.log(0.3)), ("un", -4.0)]
    played = play(method, [(Written("Yes.", [(" Yes", math.log(0.4)), (".", -0.1)], first),)], name="ircot")
    logs = ast.literal_eval(played.answer.text)
    assert logs == pytest.approx({"yes": math.log(0.5), "no": math.log(0.3)})
    assert played.asks[0][1].alternatives == 20
    for reply in ("Score: no", Written("Score: no", [("Score: no", -1.0)], [("Score", -0.1)])):
        written = play(method, [(reply,)], name="ircot").answer.text  # no token begins a label, so the reply tells
        assert written == str({"yes": ABSENT, "no": 0.0})
    tokens = [("part", -2.0), ("...", -2.0), ("", -3.0), ("Fully", -2.0), ("3", -3.0)]
    found = begun(tokens, ("party", "partly", "fully", "3"))  # the first two may have as much as the unlikeliest
    assert found == {"party": -3.0, "partly": -3.0, "fully": -2.0, "3": -3.0}
    assert begun([("yes", math.log(0.7)), ("x", math.log(0.2))], ("yes", "no"))["no"] == pytest.approx(math.log(0.1))
    assert begun([("yes", 0.0), ("Yes", math.log(1e-9))], ("yes", "no")) == {"yes": 0.0, "no": ABSENT}
    assert begun([("perhaps", -0.1), ("yes", -9999.0)], ("yes", "no")) == begun([], ("yes",)) == {}


# --- prompts


def test_a_users_prompts_may_leave_out_what_they_do_not_change(tmp_path):
    ours = wordings("ircot")
    mine = tmp_path / "mine.toml"
    mine.write_text('[thought]\ninstruction = "Think."\ntext = "Q {question} {{literally}}"\n')
    theirs = wordings("ircot", str(mine))
    rendered = theirs["thought"].prompt(question="who?").render()
    assert rendered == "Think.\nQ who? {literally}\nReasoning:"
    assert theirs["cot"].text == ours["cot"].text
    version = theirs["thought"].template.version
    assert version != ours["thought"].template.version == theirs["cot"].template.version.split("+")[0]
    assert {wording.template.version for wording in theirs.values()} == {version}


def test_lists_have_the_form_of_the_file(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('[plain_results]\nitem = "({number}) {title}: {text}"\n')
    texts = ["A title\nwith {braces}\nand more", "alone"]
    shown = wordings("search_agent", str(mine))["plain_results"].prompt(results=texts).render()
    assert shown == "Results:\n(1) A title: with {braces}\nand more\n(2) alone: \n"
    assert wordings("search_agent")["plain_results"].prompt(results=texts).render() == (
        "Results:\n1. A title\nwith {braces}\nand more\n2. alone\n"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[thoughts]\ntext = "{question}"', "Did you mean 'thought'"),
        ("thought = 3", r"\[thought\] may have the texts"),
        ("[thought]\ntext = 3", r"\[thought\] may have the texts"),
        ('[thought]\nwords = "x"', "found words"),
        ('[thought]\ntext = "no field"', r"needs the fields question and no others; found none"),
        ('[thought]\ntext = "{question} {answer}"', "found answer, question"),
        ('[thought]\ndocuments = "x"', "needs the fields documents"),
        ('[thought]\nitem = "{number}"', "item needs the field text, and may have number and title; found number"),
        ('[thought]\nitem = "{text} {rank}"', "found rank, text"),
        ('[thought]\ntext = "{question"', "Write a literal brace twice"),
        ("version = 3", "give a text"),
        ("version = ", "is not a TOML text"),
    ],
)
def test_bad_prompts_are_refused_before_anything_is_asked(content, message, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text(content)
    with pytest.raises(UserError, match=message):
        next(method_of("ircot")(Query("q", "?"), prompt_file=str(mine)))


@pytest.mark.parametrize("name", LIMITED)
def test_prompts_are_complete(name):
    for step, wording in wordings(name).items():
        assert wording.template.version.startswith(f"{name}-"), step
        assert wording.text and set(PARTS) >= {"text"}
        if not step.startswith("search_r1_"):  # what stands in the reply of its checkpoints
            assert wording.template.instruction and "{" in wording.text


def test_calls_of_plans_that_run_together_count():
    def plan():
        yield from retrieve("a", 1)
        yield from together([generate("b"), generate("c")])
        return Answer("never")

    budget = within(plan(), 1)
    next(budget)
    both = budget.send((Passage("p", "text"),))
    first, second = both.plans
    next(first)
    with pytest.raises(CallError) as over:
        next(second)
    with pytest.raises(StopIteration) as stop:
        budget.throw(over.value)
    answer = stop.value.value
    assert answer.abstained and answer.notes == ("max_calls reached",) and [p.id for p in answer.passages] == ["p"]
