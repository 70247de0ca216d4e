"""Local models take turns on a GPU; what is on a CPU stays, and what was released is built again."""

import gc
import weakref
from types import SimpleNamespace

import pytest

from lm_eval_rag.harness.generators import lm, memory
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.memory import make_room, release, release_all
from lm_eval_rag.harness.generators.spec import ModelSpec


class Model:
    """In place of an lm_eval model."""

    def __init__(self, device):
        self.device, self.itself = SimpleNamespace(type=device), self  # models are held in cycles


@pytest.fixture
def generator(monkeypatch):
    """``generator(name, device)``: one whose model is built, and lies there."""
    monkeypatch.setattr(memory, "BUILT", weakref.WeakSet())
    monkeypatch.setattr(lm, "BUILT", memory.BUILT)
    monkeypatch.setattr(lm, "build", lambda spec: Model(spec.device))

    def make(name, device, **arguments):
        one = LMGenerator(ModelSpec(name, arguments, device=device))
        one.load()
        return one

    return make


def held(one):
    return "lm" in vars(one)


@pytest.mark.parametrize(("device", "stays"), [("cuda", False), ("mps", False), ("cpu", True)])
def test_a_model_on_a_gpu_is_let_go_of_and_built_again(generator, device, stays):
    one = generator("hf", device)
    first = weakref.ref(one.lm)
    gc.disable()
    try:
        release(one)
        assert held(one) == stays and (first() is not None) == stays
    finally:
        gc.enable()
    assert isinstance(one.lm, Model) and one in memory.BUILT


def test_room_is_made_by_all_others_on_a_gpu(generator):
    large, here = generator("hf", "cuda"), generator("hf", "cpu")
    judge = LMGenerator(ModelSpec("hf", {}, device="cuda"))
    make_room(judge)
    assert not held(large) and held(here)
    judge.load()
    large.load()
    make_room(judge)  # which has its place already
    assert held(judge) and held(large)
    release_all()
    assert not held(judge) and not held(large) and held(here)


@pytest.mark.parametrize(
    "spec",
    [
        ModelSpec("openai-chat-completions", {"model": "m"}),
        ModelSpec("local-completions", {"base_url": "http://127.0.0.1"}),
        ModelSpec("hf", {}, device="cpu"),
        ModelSpec("tiny"),
    ],
    ids=str,
)
def test_who_needs_no_gpu_takes_no_place(generator, spec):
    large = generator("hf", "cuda")
    make_room(LMGenerator(spec))
    make_room(object())  # a generator of the user's
    release(object())
    assert held(large)


@pytest.mark.usefixtures("vllm")
def test_the_processes_of_vllms_engine_end(vllm, little_llama):
    one = LMGenerator(ModelSpec("vllm", {"pretrained": str(little_llama)}, batch_size="auto"), chat=False)
    before = one.generate(["who"], Decoding(3, ()), [0])
    (engine,) = vllm.made
    ended = []
    engine.llm_engine.engine_core = SimpleNamespace(shutdown=lambda: ended.append(True))
    release(one)
    assert ended == [True] and not held(one)
    assert one.generate(["who"], Decoding(3, ()), [0]) == before and len(vllm.made) == 2
