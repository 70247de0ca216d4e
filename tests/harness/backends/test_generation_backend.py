"""Prompts are fitted by dropping the lowest-ranked passages; samples are numbered, and failures stay alone."""

import asyncio
import dataclasses
import random
import time

import pytest

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.backends.generation import GenerateBackend, LoglikelihoodBackend, OpenStream
from lm_eval_rag.harness.backends.lookup import Graphs
from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Generate, Loglikelihood
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.prompts import Messages, Prompt, Shot, Template
from lm_eval_rag.harness.core.types import Passage, Query, Rule
from lm_eval_rag.harness.generators.base import Completion, Decoding
from lm_eval_rag.harness.generators.batched import Batched
from lm_eval_rag.harness.generators.fit import Fitted, fit
from lm_eval_rag.harness.plugin.serving import Resources, backends

TEMPLATE = Template(
    "1", "Read.", "Read and follow.", "Answer.", "Docs:\n{documents}", "Rules:\n{rules}", "Q: {query}", "A:"
)
QUERY = Query("q", "who?")


class Words:
    """Answers with its sample and its prompt, counts words, fails where told."""

    fingerprint, batch = "words", 2

    def __init__(self, room=None, fails=(), counts=True):
        self._room, self.fails, self.counts, self.made = room, fails, counts, []

    def generate(self, prompts, decoding, samples):
        self.made += [(prompt, sample, decoding) for prompt, sample in zip(prompts, samples, strict=True)]
        return [
            CallError(f"no {prompt}") if prompt in self.fails else f"{sample} {prompt}"
            for prompt, sample in zip(prompts, samples, strict=True)
        ]

    def loglikelihood(self, pairs):
        self.made += pairs
        return [CallError("no") if prompt in self.fails else -float(len(prompt + word)) for prompt, word in pairs]

    def count_tokens(self, text):
        return len(text.split()) if self.counts else None

    def room(self, max_tokens):
        return None if self._room is None else self._room - max_tokens


def passages(rng, n):
    return tuple(Passage(f"d{i}", " ".join(["w"] * rng.randint(1, 6)), score=n - i) for i in range(n))


def prompt_of(rng):
    shots = tuple(Shot("why?", "so", passages(rng, rng.randint(0, 4))) for _ in range(rng.randint(0, 2)))
    rules = (Rule("a", "b"),) * rng.randint(0, 2)
    return Prompt(
        TEMPLATE, "who?", passages(rng, rng.randint(0, 8)), rules, shots, rng.choice(["best_first", "best_last"])
    )


# --- fit


@pytest.mark.parametrize("seed", range(60))
def test_fit_keeps_as_many_of_the_best_passages_as_fit(seed):
    rng = random.Random(seed)
    prompt, room, limit = prompt_of(rng), rng.randint(5, 60), rng.choice([None, rng.randint(5, 60)])
    most = max([len(prompt.passages), *(len(shot.passages) for shot in prompt.shots)])
    allowed = room - 3 if limit is None else min(room - 3, limit)
    fitting = [keep for keep in range(most + 1) if len(prompt.render(keep).split()) <= allowed]
    found = fit(prompt, Words(room), 3, limit)
    if not fitting:
        assert isinstance(found, CallError) and f"does not fit into {allowed} tokens" in str(found)
        return
    shown, rest = prompt.passages[: max(fitting)], prompt.passages[max(fitting) :]
    shots = tuple(dataclasses.replace(shot, passages=()) for shot in prompt.shots)
    alone = dataclasses.replace(prompt, passages=rest[:1], shots=shots).render()
    if found.cut:  # the first that is left out does not fit alone, and would keep out all after it
        assert len(alone.split()) > allowed >= len(found.text.split()) and len(found.shown) >= len(shown)
        return
    text = prompt.render(max(fitting))
    assert found == Fitted(text, len(text.split()), shown, len(rest))


def test_the_lowest_ranked_are_dropped_first_wherever_they_stand():
    found = tuple(Passage(f"d{i}", f"word{i} x x x", score=9.0 - i) for i in range(5))
    for order in ("best_first", "best_last"):
        prompt = Prompt(TEMPLATE, "who?", found, order=order)
        needed = len(prompt.render(2).split())
        fitted = fit(prompt, Words(needed + 3), 3)
        assert fitted.dropped == 3 and [i for i in range(5) if f"word{i}" in fitted.text] == [0, 1]
        assert (fitted.text.index("word0") < fitted.text.index("word1")) == (order == "best_first")


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("order", ["best_first", "best_last"])
def test_a_passage_longer_than_the_room_does_not_keep_out_the_others(place, order):
    found = [Passage("a", "a a a a"), Passage("b", "b b b b")]
    found.insert(place, Passage("long", " ".join(f"l{i}" for i in range(10_000))))
    prompt = Prompt(TEMPLATE, "who?", tuple(found), order=order)
    frame = len(dataclasses.replace(prompt, passages=(Passage("", ""),)).render().split())
    fitted = fit(prompt, Words(frame + 32), 2)
    assert [passage.id for passage in fitted.shown] == [passage.id for passage in found]
    assert fitted.shown[place].text == " ".join(f"l{i}" for i in range(10)), "a third of the room"
    assert all(passage.text in fitted.text for passage in fitted.shown) and (fitted.dropped, fitted.cut) == (0, 1)


def test_passages_that_fit_alone_are_never_cut():
    prompt = Prompt(TEMPLATE, "who?", tuple(Passage(name, f"{name} " * 20) for name in "abc"))
    room = len(dataclasses.replace(prompt, passages=prompt.passages[:1]).render().split())
    fitted = fit(prompt, Words(room), 0)
    assert fitted == Fitted(prompt.render(1), room, prompt.passages[:1], dropped=2)
    assert fit(prompt, Words(room - 1), 0).cut == 3


def test_a_text_of_megabytes_is_not_tokenised():
    class Counting(Words):
        read = 0

        def count_tokens(self, text):
            self.read += len(text)
            return super().count_tokens(text)

    prompt, model = Prompt(TEMPLATE, "who?", (Passage("a", "word " * 2_000_000), Passage("b", "b"))), Counting(100)
    fitted = fit(prompt, model, 10)
    assert fitted.cut == 1 and fitted.text.count("word") > 30 and model.read < 100_000
    assert isinstance(fit("word " * 2_000_000, model, 10), CallError) and model.read < 100_000


def test_without_any_limit_nothing_is_dropped():
    prompt = prompt_of(random.Random(0))
    assert fit(prompt, Words(), 3) == Fitted(prompt.render(), len(prompt.render().split()), prompt.passages)


def test_a_model_that_does_not_count_is_judged_by_bytes():
    prompt = Prompt(TEMPLATE, "ü" * 30, passages(random.Random(0), 5))
    limit = len(prompt.render(3).encode()) // 3
    found = fit(prompt, Words(counts=False), 3, limit)
    assert found.text == prompt.render(3) and (found.tokens, found.dropped) == (0, 2)


@pytest.mark.parametrize(("room", "fits"), [(7, True), (6, False)])
def test_a_plain_text_fits_or_not(room, fits):
    found = fit("one two three four", Words(room), 3)
    assert found == Fitted("one two three four", 4) if fits else isinstance(found, CallError)


# --- Generate


def serve(asks, generator, journal=None, decoding=None, limit=None):
    journal = Journal(None) if journal is None else journal  # an empty journal is falsy
    backend = GenerateBackend(OpenStream(generator), journal=journal, decoding=decoding or Decoding(), limit=limit)
    return answers(backend, [(QUERY, ask) for ask in asks])


def answers(backend, asked):
    async def main():
        try:
            return await asyncio.gather(*(backend.answer(query, ask) for query, ask in asked))
        finally:
            await backend.close()

    return asyncio.run(main())


def test_samples_are_numbered_and_journalled_apart(tmp_path):
    path, first, second = tmp_path / "j.sqlite", Words(), Words()
    (two,) = serve([Generate("p", n=2, temperature=0.7)], first, Journal(path))
    (four,) = serve([Generate("p", n=4, temperature=0.7)], second, Journal(path))
    assert two.value == ("0 p", "1 p") and four.value == ("0 p", "1 p", "2 p", "3 p")
    assert [sample for _, sample, _ in first.made] == [0, 1] and [sample for _, sample, _ in second.made] == [2, 3]
    assert not four.step.journalled  # not all of it
    (again,) = serve([Generate("p", n=4, temperature=0.7)], Words(fails={"p"}), Journal(path))
    assert (
        again.value == four.value and again.step.journalled and again.step.seconds == pytest.approx(four.step.seconds)
    )


@pytest.mark.parametrize(("temperature", "samples"), [(0.7, [0, 1, 2, 3]), (0.0, [0, 1])])
def test_a_repeated_question_is_sampled_anew_but_not_decoded_anew(temperature, samples):
    generator = Words()
    backend = GenerateBackend(OpenStream(generator))
    ask = Generate("p", n=2, temperature=temperature)
    first, second = answers(backend, [(QUERY, ask), (dataclasses.replace(QUERY, repeat=1), ask)])
    assert [sample for _, sample, _ in generator.made] == samples
    assert (first.value == second.value) == (temperature == 0)


@pytest.mark.parametrize(
    "other",
    [{"temperature": 0.5}, {"max_tokens": 9}, {"stop": ("x",)}, {"prompt": "other"}, {"thinking": True}],
    ids=str,
)
def test_the_journal_tells_requests_apart(tmp_path, other):
    ask, generator = Generate("p", temperature=0.1, max_tokens=3, stop=("\n",)), Words()
    serve([ask], generator, Journal(tmp_path / "j.sqlite"))
    serve([dataclasses.replace(ask, **other), ask], generator, Journal(tmp_path / "j.sqlite"))
    assert len(generator.made) == 2


@pytest.mark.parametrize(
    ("thinks", "finish", "fails"), [(False, "stop", True), (True, "stop", False), (True, "length", True)]
)
def test_a_thought_without_an_answer(thinks, finish, fails):
    """A model that is known to think may answer nothing; of another one a stop string has ended the thought."""

    class Thinker(Words):
        def generate(self, prompts, decoding, samples):
            return [Completion(" ", finish, "Rome or") if finish == "stop" else Completion("", finish, "Rome or")]

    model = Thinker()
    model.thinks = thinks
    (reply,) = serve([Generate("p")], model)
    assert isinstance(reply, CallError) == fails and (not fails or "gen_thinking_tokens=4096" in str(reply))


class Likely(Words):
    """Gives each word of a reply ln P = -1, and the likeliest first tokens."""

    gives_logs = True

    def generate(self, prompts, decoding, samples):
        found = []
        for text in super().generate(prompts, decoding, samples):
            tokens = tuple((f" {word}", -1.0) for word in text.split())
            first = tuple((f"t{i}", -float(i)) for i in range(decoding.alternatives))
            found.append(Completion(text, tokens=tokens, first=first))
        return found


def test_replies_keep_their_log_probabilities_in_the_journal(tmp_path):
    path, model = tmp_path / "j.sqlite", Likely()
    for _ in range(2):
        (reply,) = serve([Generate("p q", n=2, temperature=1.0, alternatives=2)], model, Journal(path))
        assert reply.value == ("0 p q", "1 p q") and [text.log() for text in reply.value] == [-3.0, -3.0]
        assert reply.value[0].log("0 p") == -2.0 and reply.value[1].first == (("t0", 0.0), ("t1", -1.0))
    assert len(model.made) == 2 and reply.step.journalled
    serve([Generate("p q", n=2, temperature=1.0)], model, Journal(path))  # without alternatives it is another request
    assert len(model.made) == 4
    (plain, _) = serve([Generate("p"), Generate("p", alternatives=9)], words := Words())
    assert type(plain.value[0]) is str and len(words.made) == 1  # who gives none is not asked for them


BEGUN = (  # one text, in the forms in which a chat template is asked to go on
    "one two three",
    Messages("", "one", "two three", " "),
    Messages("", "one ", "two three"),
    Messages("", "one two", "three", " "),
)


@pytest.mark.parametrize(("continues", "asked"), [(True, 4), (False, 1), (None, 1)])
def test_the_journal_knows_where_a_reply_begins_if_that_is_how_it_is_sent(tmp_path, continues, asked):
    generator, path = Words(), tmp_path / "j.sqlite"
    if continues is not None:
        generator.continues = continues
    for prompt in (*BEGUN, *BEGUN):
        serve([Generate(prompt)], generator, Journal(path))
    assert len(generator.made) == asked and {text for text, *_ in generator.made} == {"one two three"}
    generator.made.clear()
    for prompt in (*BEGUN, *BEGUN):
        answers(
            LoglikelihoodBackend(OpenStream(generator), journal=Journal(path)), [(QUERY, Loglikelihood(prompt, "x"))]
        )
    assert len(generator.made) == asked


def test_a_reply_that_is_begun_is_counted_and_never_dropped():
    prompt = Prompt(TEMPLATE, "who?", tuple(Passage(f"d{i}", "one two") for i in range(3)), begun="It was Ada who")
    needed = len(prompt.render(1).split())
    (reply,) = serve([Generate(prompt)], Words(), limit=needed + 1)
    assert reply.step.request == prompt.render(1) and reply.step.prompt_tokens == needed
    assert reply.step.dropped_passages == 2 and reply.step.request.begun == "It was Ada who"
    alone = dataclasses.replace(prompt, passages=())
    assert isinstance(fit(alone, Words(8), 0), Fitted) and isinstance(fit(alone, Words(7), 0), CallError)


def test_the_task_decodes_unless_the_ask_says_how():
    generator, task = Words(), Decoding(max_tokens=7, stop=("END",), temperature=0.3)
    asks = [Generate("a"), Generate("b", temperature=0.0, max_tokens=2, stop=()), Generate("c", max_tokens=1)]
    assert [reply.value for reply in serve(asks, generator, decoding=task)] == [("0 a",), ("0 b",), ("0 c",)]
    used = {prompt: decoding for prompt, _, decoding in generator.made}
    assert used == {
        "a": task,
        "b": Decoding(max_tokens=2, stop=(), temperature=0.0),
        "c": Decoding(max_tokens=1, stop=("END",), temperature=0.3),
    }


def test_a_failed_call_fails_its_ask_alone_and_is_not_stored(tmp_path):
    asks = [Generate("a"), Generate("bad"), Generate("x y z"), Generate("c", n=2)]
    replies = serve(asks, Words(room=34, fails={"bad"}), Journal(tmp_path / "j.sqlite"), limit=2)
    assert [isinstance(reply, Served) for reply in replies] == [True, False, False, True]
    assert str(replies[1]) == "no bad" and "does not fit into 2 tokens" in str(replies[2])
    healed = Words()
    assert serve(asks[:2], healed, Journal(tmp_path / "j.sqlite"))[1].value == ("0 bad",)
    assert [prompt for prompt, *_ in healed.made] == ["bad"]


def test_a_generator_is_told_that_an_earlier_run_was_answered(tmp_path):
    """So that the few questions that always fail do not end the next run, as first requests."""

    class Noting(Words):
        noted = 0

        def note_answered(self):
            self.noted += 1

    for prompts, noted in ((("a", "b"), 0), (("c",), 0), (("d", "a"), 1)):
        generator = Noting(fails=("b",))
        serve([Generate(prompt) for prompt in prompts], generator, Journal(tmp_path / "j.sqlite"))
        assert generator.noted == noted


def test_one_failed_sample_fails_the_ask_but_the_others_are_kept(tmp_path):
    class Second(Words):
        def generate(self, prompts, decoding, samples):
            found = super().generate(prompts, decoding, samples)
            return [CallError("no") if sample == 1 else text for sample, text in zip(samples, found, strict=True)]

    (reply,) = serve([Generate("p", n=3)], Second(), Journal(tmp_path / "j.sqlite"))
    assert isinstance(reply, CallError)
    healed = Words()
    (reply,) = serve([Generate("p", n=3)], healed, Journal(tmp_path / "j.sqlite"))
    assert reply.value == ("0 p", "1 p", "2 p") and [sample for _, sample, _ in healed.made] == [1]


def test_the_step_tells_tokens_and_drops():
    prompt = Prompt(TEMPLATE, "who?", tuple(Passage(f"d{i}", "one two three") for i in range(4)))
    (reply,) = serve([Generate(prompt, n=2)], Words(), limit=len(prompt.render(3).split()))
    step = reply.step
    assert step.request == prompt.render(3) and step.dropped_passages == 1
    assert step.prompt_tokens == 2 * len(prompt.render(3).split())
    assert step.completion_tokens == sum(len(text.split()) for text in reply.value)


@pytest.mark.parametrize(("told", "expected"), [(0.0, None), (7.5, 7.5)])
def test_a_reply_without_its_seconds_has_its_share_of_the_batch(told, expected):
    class Ended(Words):
        def complete(self, prompts, decoding, samples):
            time.sleep(0.02)
            return [Completion(prompt, "stop", seconds=told) for prompt in prompts]

    (served,) = serve([Generate("a b")], Ended())
    assert served.step.seconds == expected if expected else 0.02 <= served.step.seconds < 5


def test_batches_are_no_larger_than_the_generator_likes():
    sizes = []

    class Counting(Words):
        def generate(self, prompts, decoding, samples):
            sizes.append(len(prompts))
            return super().generate(prompts, decoding, samples)

    replies = serve([Generate(f"p{i}", n=3) for i in range(3)], Counting())
    assert max(sizes) <= Words.batch and sum(sizes) == 9
    assert [reply.value[2] for reply in replies] == ["2 p0", "2 p1", "2 p2"]


# --- Loglikelihood


def test_log_probabilities_come_through_the_journal(tmp_path):
    asks = [(QUERY, Loglikelihood(prompt, word)) for prompt, word in (("a", "bc"), ("bad", "x"), ("a", "d"))]
    generator = Words(fails={"bad"})
    replies = answers(LoglikelihoodBackend(OpenStream(generator), journal=Journal(tmp_path / "j.sqlite")), asks)
    assert [reply.value for reply in replies if isinstance(reply, Served)] == [-3.0, -2.0]
    assert isinstance(replies[1], CallError)
    again = answers(LoglikelihoodBackend(OpenStream(generator), journal=Journal(tmp_path / "j.sqlite")), asks)
    assert [reply.step.journalled for reply in again if isinstance(reply, Served)] == [True, True]
    assert sorted(generator.made) == [("a", "bc"), ("a", "d"), ("bad", "x"), ("bad", "x")]


def test_log_probabilities_leave_room_for_the_continuation():
    prompt = Prompt(TEMPLATE, "who?", tuple(Passage(f"d{i}", "one two three") for i in range(4)))
    room = len(prompt.render(2).split()) + 3
    generator = Words(room)
    (reply,) = answers(LoglikelihoodBackend(OpenStream(generator)), [(QUERY, Loglikelihood(prompt, "one two three"))])
    assert generator.made == [(prompt.render(2), "one two three")] and reply.step.dropped_passages == 2
    (failed,) = answers(LoglikelihoodBackend(OpenStream(Words(2))), [(QUERY, Loglikelihood("a b c", "d"))])
    assert isinstance(failed, CallError)


def test_all_asks_of_a_generator_share_its_stream():
    """Two streams would step one engine from two threads, and double a server's limits."""
    opened = []

    class Streamed(Words):
        def stream(self):
            opened.append(self)
            return Batched(self)

    resources = Resources(Corpora("bm25", {}), Graphs(None), Journal(None))
    served = backends(resources, Streamed(100))

    async def main():
        await asyncio.gather(
            served[Generate].answer(QUERY, Generate("a b")),
            served[Loglikelihood].answer(QUERY, Loglikelihood("a", "b")),
        )
        for ask in (Generate, Loglikelihood):
            await served[ask].close()

    asyncio.run(main())
    assert len(opened) == 1
