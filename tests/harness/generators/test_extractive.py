"""Extractive decoding: every continuation is a span of a document in the prompt, or empty, in any batch."""

import random
import re

import pytest

from lm_eval_rag.harness.backends.generation import GenerateBackend, OpenStream
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import Generate
from lm_eval_rag.harness.core.driver import Driver
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Answer, Passage, Query
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.extractive import Grounded, Sources, spans_of
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.methods.prompts import template

WORDS = [
    "Zürich",
    "Ada",
    "O'Neil",
    "St. Gallen",
    "Niño",
    "U.S.",
    "co-founder",
    "東京",
    "Vale",
    "42",
    '"Moss"',
    "(Iraq)",
    "Lévy",
]


def names(rng, n):
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 3))) for _ in range(n)]


def passages(rng, facts):
    """Six passages; with facts all but one of them state one."""
    made = []
    for i in range(6):
        subject, object = names(rng, 2)
        fact = (subject, "visits", object) if facts and i else None
        made.append(Passage(f"d{i}", f"Time 2014-01-0{i + 1} {subject} visits {object}.", -float(i), fact=fact))
    return tuple(made)


@pytest.fixture(scope="module")
def generator():
    return LMGenerator(ModelSpec("tiny", {"extractive": True}))


def grounded(rng, facts):
    shown = passages(rng, facts)
    prompt = Prompt(template(), f"what does {shown[2].text.split()[2]} visits ?", shown)
    return Grounded(prompt.render(), Sources.of(shown)), shown


def is_span(text, shown):
    """Restated: runs of whole words of one document, or a name where the document states a fact with it."""
    if any(p.fact and text in p.fact[::2] for p in shown):
        return True
    edge = r"(?<![^\s\"'`.,;:!?()\[\]]){}(?![^\s\"'`.,;:!?()\[\]])"
    return any(p.fact is None and re.search(edge.format(re.escape(text)), p.text) for p in shown)


@pytest.mark.parametrize(("facts", "temperature"), [(True, 0.0), (False, 3.0)])
def test_every_continuation_is_a_span_and_does_not_depend_on_the_batch(generator, facts, temperature):
    rng = random.Random(7)
    asked = [grounded(rng, facts) for _ in range(5)]
    decoding = Decoding(max_tokens=12, temperature=temperature)
    prompts, samples = [prompt for prompt, _ in asked], [0] * len(asked)
    together = generator.complete(prompts, decoding, samples)
    for reply, (_, shown) in zip(together, asked, strict=True):
        assert reply.text and is_span(reply.text, shown) and reply.finish == "stop"
        assert any(reply.text in passage.text for passage in shown)
    assert len({reply.text for reply in together}) > 2
    alone = [generator.complete([prompt], decoding, [0])[0].text for prompt in prompts[:2]]
    assert alone == [reply.text for reply in together[:2]]


def test_without_it_a_small_model_writes_what_no_document_says(generator):
    rng = random.Random(7)
    asked = [grounded(rng, True) for _ in range(5)]
    plain = LMGenerator(ModelSpec("tiny"))
    plain.lm = generator.lm
    texts = plain.generate([str(prompt) for prompt, _ in asked], Decoding(max_tokens=12), [0] * 5)
    assert not all(is_span(text.strip(), shown) for text, (_, shown) in zip(texts, asked, strict=True))


def test_the_spans_are_those_of_the_sources(generator):
    """Counted by hand: 3 words have 6 runs; a name is one span; the limit and stop strings leave out the rest."""
    read = generator.lm.tokenizer
    spans = spans_of(read, Sources(texts=("Ada met Bo.",)), "Answer:", 32, ("\n",))
    assert set(spans.texts.values()) == {"Ada", "Ada met", "Ada met Bo", "met", "met Bo", "Bo"}
    assert set(spans_of(read, Sources(("St. Gallen",), ()), "Answer:", 32, ()).texts.values()) == {"St. Gallen"}
    assert not spans_of(read, Sources(("a" * 200,), ()), "Answer:", 4, ()).texts
    assert set(spans_of(read, Sources(("A | B", "C"), ()), "Answer:", 32, ("|",)).texts.values()) == {"C"}
    begun = {read.decode(ids) for ids in spans.edges[0]}
    assert begun and all(text.startswith(" ") for text in begun)  # as an answer stands after its cue


def test_a_name_that_does_not_stand_in_its_text_is_none():
    shown = [Passage("a", "He met Bo.", fact=("Ada", "met", "Bo")), Passage("b", "No more.", fact=("X", "r", "Y"))]
    assert Sources.of(shown) == Sources(("Bo",), ("No more.",))


def test_without_documents_it_writes_nothing_and_plain_texts_are_not_restricted(generator):
    closed = Grounded("what does A visit ?\nAnswer:", Sources())
    texts = generator.generate([closed, str(closed)], Decoding(max_tokens=8), [0, 0])
    assert texts[0] == "" and texts[1] != ""


def test_a_method_gets_spans_of_the_documents_that_fit_into_its_prompt(generator):
    shown = passages(random.Random(3), True)
    prompt = Prompt(template(), "what does Ada visits ?", shown)
    limit = generator.count_tokens(prompt.render(2))

    def method(query):
        (text,) = yield Generate(prompt)
        return Answer(text)

    backend = GenerateBackend(OpenStream(generator), Journal(None), Decoding(max_tokens=12), limit)
    ((answer, trace),) = Driver(method, {Generate: backend}).run([Query("q", "?")])
    assert is_span(answer.text, shown[:2]) and trace.steps[0].dropped_passages == 4


def test_the_journal_never_serves_one_for_the_other():
    def fingerprint(**arguments):
        return LMGenerator(ModelSpec("tiny", arguments)).fingerprint

    assert fingerprint(extractive=True) != fingerprint()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("vllm", {"pretrained": "x"}),
        ("local-completions", {"model": "x", "base_url": "http://localhost:1/v1/completions"}),
        ("local-chat-completions", {"model": "x", "base_url": "http://localhost:1/v1/chat/completions"}),
        ("dummy", {}),
    ],
)
def test_servers_and_vllm_refuse_it_in_one_line(name, arguments):
    with pytest.raises(UserError, match=r"gen_extractive=True is not possible with generator=") as raised:
        ModelSpec(name, {**arguments, "extractive": True}).check()
    assert "\n" not in str(raised.value)
    with pytest.raises(UserError, match="give True or False"):
        ModelSpec("tiny", {"extractive": "yes"}).check()


def test_the_method_of_its_name_keeps_it_with_another_generator():
    from lm_eval_rag.harness.plugin.arguments import read_arguments
    from lm_eval_rag.methods.rulerag_ft import rulerag_ft, rulerag_ft_extractive

    for given in ({}, {"generator": "tiny"}, {"gen_pretrained": "a/b"}):
        assert read_arguments("m", rulerag_ft_extractive, given).generator.extractive
        assert not read_arguments("m", rulerag_ft, given).generator.extractive
    with pytest.raises(UserError, match="gen_extractive=True is not possible with generator=dummy"):
        read_arguments("m", rulerag_ft_extractive, {"generator": "dummy"})
    assert not read_arguments(
        "m", rulerag_ft_extractive, {"generator": "dummy", "gen_extractive": False}
    ).generator.extractive
