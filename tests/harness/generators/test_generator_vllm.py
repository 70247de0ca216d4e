"""vLLM through lm_eval's own class over a double of the engine: what it is given, adapters, errors in one line.

What it writes is in test_generator_contract.py; that the real engine takes the arguments, a double cannot show.
"""

import asyncio
import json
import shutil
import time
from collections import Counter
from functools import partial

import pytest

from lm_eval_rag.harness.checkpoints.note import Note, write_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.plugin.arguments import _batch_size, read_arguments
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.methods.rulerag_icl import rulerag_icl
from lm_eval_rag.methods.self_rag import self_rag

pytestmark = pytest.mark.usefixtures("vllm")


def generator_of(folder, chat=False, system=None, **arguments):
    given = {"dtype": "float32", "gpu_memory_utilization": 0.5, **arguments}
    given |= {"pretrained": str(folder)} if folder else {}
    return LMGenerator(ModelSpec("vllm", given, batch_size="auto"), chat=chat, seed=3, system=system)


def slow_down(generator, monkeypatch):
    """A step of the engine takes 10 ms."""
    engine = generator.lm.model.llm_engine
    monkeypatch.setattr(engine, "step", lambda step=engine.step: time.sleep(0.01) or step())


def test_it_gets_its_arguments_and_token_ids(vllm, little_llama, direct):
    generator = generator_of(little_llama, max_model_len=500)
    prompts = ["who visited", "Time who praised Rules", "what"]
    generator.generate(prompts, Decoding(7, ("\n", "END")), [0, 0, 0])
    (engine,) = vllm.made
    assert engine.arguments["model"] == str(little_llama) and engine.arguments["max_model_len"] == 500
    assert engine.arguments["gpu_memory_utilization"] == 0.5 and "device" not in engine.arguments
    ids = [direct.ids(prompt) for prompt in prompts]
    assert sorted(sent["prompt_token_ids"] for sent, _, _ in engine.calls) == sorted(ids)
    for _, one, _ in engine.calls:
        assert (one.max_tokens, one.temperature) == (7, 0.0) and {"\n", "END"} <= set(one.stop)
    assert generator.count_tokens(prompts[1]) == len(ids[1]) and generator.room(20) == 480


def test_it_draws_by_seed(vllm, little_llama):
    generator_of(little_llama).generate(["who", "who"], Decoding(7, ("\n",), 0.5), [0, 1])
    sampling = [params for _, params, _ in vllm.made[0].calls]
    assert sorted(one.seed for one in sampling) == [3, 4] and {one.temperature for one in sampling} == {0.5}


def test_a_stop_string_that_is_a_special_token_ends_a_text(vllm, little_llama):
    generator_of(little_llama).generate(["who"], Decoding(7, ("<|assistant|>", "x")), [0])
    ((_, sampling, _),) = vllm.made[0].calls
    assert sampling.skip_special_tokens and sampling.stop_token_ids == [4]  # as in hf, whose texts show none


def test_it_chats_with_a_system_message(vllm, little_llama, direct):
    generator_of(little_llama, chat=None, system="Time").generate(["who"], Decoding(), [0])
    ((sent, _, _),) = vllm.made[0].calls
    assert direct.tokenizer.decode(sent["prompt_token_ids"]) == "<|system|>Time<|user|>who<|assistant|>"


def test_it_batches_by_itself():
    """lm_eval's default of 1 would send it one prompt after the other."""
    assert [_batch_size("vllm", given) for given in (None, 1, "1", "auto", 8)] == ["auto", "auto", "auto", "auto", 8]
    assert LMGenerator(ModelSpec("vllm", {}, batch_size="auto")).batch == 128


def test_a_long_reply_holds_nobody_up(vllm, little_llama, direct, monkeypatch):
    """Replies come as they finish, and what is asked meanwhile joins what is in flight."""
    generator, order = generator_of(little_llama), []
    slow_down(generator, monkeypatch)

    async def main():
        stream = generator.stream()

        async def ask(name, tokens, prompt="who visited"):
            order.append((name, await stream.generate(prompt, Decoding(tokens, ()), 0)))

        async def chain():  # each ask waits for the one before
            for i in range(5):
                await ask(f"short {i}", 2)

        await asyncio.gather(ask("long", 60), chain())
        await stream.close()

    asyncio.run(main())
    assert [name for name, _ in order] == [*(f"short {i}" for i in range(5)), "long"]
    assert [len(sent) for sent in (vllm.made[0].calls, vllm.made[0].llm_engine.flying)] == [6, 0]
    long = order[-1][1]
    assert (long.finish, long.completion_tokens, long.prompt_tokens) == (
        "length",
        60,
        len(direct.ids("who visited")),
    ) and long.seconds > 0


def test_closing_aborts_what_is_in_flight(vllm, little_llama, monkeypatch):
    """An engine outlives a task: the next one must not pay for, or be given, what the last one left."""
    generator = generator_of(little_llama)

    async def main():
        stream = generator.stream()
        asked = [asyncio.ensure_future(stream.generate("who", Decoding(200, ()), 0)) for _ in range(3)]
        while len(vllm.made[0].llm_engine.flying) < 3:
            await asyncio.sleep(0.001)
        await stream.close()
        assert not any(one.done() for one in asked)
        for one in asked:
            one.cancel()

    slow_down(generator, monkeypatch)
    asyncio.run(main())
    engine = vllm.made[0].llm_engine
    assert len(engine.aborted) == 3 and not engine.flying
    assert generator.generate(["who"], Decoding(3, ()), [0])


def test_several_engines_of_one_model_are_given_batches(little_llama):
    """lm_eval runs them through Ray, a list at a time."""
    several = LMGenerator(ModelSpec("vllm", {"pretrained": "x", "data_parallel_size": 2}, batch_size="auto"))
    assert not several.streams and generator_of(little_llama).streams


def test_self_rag_gets_from_it_what_it_gets_from_hf(little_llama):
    """In the checkpoints' tokens: the 62 calls of a question with five passages, of which 57 are log-probabilities."""
    corpus = [{"id": str(i), "text": f"who visited Time {i}"} for i in range(5)]
    method = partial(self_rag, tokens=True, variant="flashrag", threshold=-1.0, segment_tokens=9)
    here = LMGenerator(ModelSpec("hf", {"pretrained": str(little_llama), "dtype": "float32"}, device="cpu"), chat=False)
    (answer, trace), (wanted, known) = (
        run(method, ["who visited Time"], corpus=corpus, generator=generator)[0]
        for generator in (generator_of(little_llama), here)
    )
    asked = Counter(step.ask for step in trace.steps)
    assert (asked["Generate"], asked["Loglikelihood"]) == (5, 57)
    assert answer == wanted and [step.ask for step in trace.steps] == [step.ask for step in known.steps]
    logs, right = ([float(s.reply) for s in one.steps if s.ask == "Loglikelihood"] for one in (trace, known))
    assert logs == pytest.approx(right, abs=1e-3)


# --- adapters


@pytest.mark.parametrize("name", ["peft", "lora_local_path"])
def test_an_adapter_means_the_same_as_for_hf(vllm, little_llama, lora, name):
    prompts, how = ["who visited", "Time who praised Rules", "what"], Decoding(8, ())
    here = LMGenerator(ModelSpec("hf", {"peft": str(lora), "dtype": "float32"}, device="cpu"), chat=False)
    wanted = here.generate(prompts, how, [0] * 3)
    found = generator_of(None, **{name: str(lora)}).generate(prompts, how, [0] * 3)  # the adapter names its base
    assert found == wanted != generator_of(little_llama).generate(prompts, how, [0] * 3)
    engine = vllm.made[0]
    assert engine.arguments["model"] == str(little_llama)
    assert engine.arguments["enable_lora"] and engine.arguments["max_lora_rank"] == 16  # its ranks are 2 and 9
    assert {one.path for _, _, one in engine.calls} == {str(lora)} and "peft" not in engine.arguments


@pytest.mark.parametrize("name", ["peft", "lora_local_path"])
def test_the_adapters_note_is_read(lora, tmp_path, name):
    folder = shutil.copytree(lora, tmp_path / "adapter")
    write_note(folder, Note("generator", "ssft", prompt="ruleqa-0"))
    given = {"generator": "vllm", f"gen_{name}": str(folder)}
    setup = read_arguments("rulerag_icl", rulerag_icl, given)
    assert setup.parameters["n_rules"] == 0 and setup.generator.prompt_version == "ruleqa-0"
    assert not setup.generator.chat  # tuned on raw prompts, though its base has a chat template


def test_an_adapter_that_vllm_cannot_run_says_so(lora, tmp_path):
    folder = shutil.copytree(lora, tmp_path / "adapter")
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, "r": 600}))
    with pytest.raises(UserError, match=r"has rank 600; vLLM runs up to 512: give generator=hf"):
        generator_of(None, peft=str(folder)).generate(["p"], Decoding(), [0])
    (folder / "adapter_config.json").write_text(json.dumps({**config, "peft_type": "IA3"}))
    with pytest.raises(UserError, match=r"is of type IA3; vLLM runs LORA alone"):
        generator_of(None, peft=str(folder)).generate(["p"], Decoding(), [0])


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("hf", {"lora_local_path": "x"}, r"gen_lora_local_path is vLLM's name of gen_peft"),
        ("vllm", {"lora_local_path": "x", "peft": "y"}, r"Give gen_peft alone"),
        ("local-chat-completions", {"peft": "x", "base_url": "http://127.0.0.1"}, r"start the server with the adapter"),
    ],
)
def test_an_adapter_where_it_has_no_place_is_refused(name, given, said):
    with pytest.raises(UserError, match=said):
        ModelSpec(name, given).check()


# --- errors of the engine


def test_an_engine_that_does_not_start_is_one_line(little_llama):
    with pytest.raises(UserError, match=r"cannot be built: .*LoRAConfig max_lora_rank Input should be") as raised:
        generator_of(little_llama, enable_lora=True, max_lora_rank=17).generate(["p"], Decoding(), [0])
    assert "\n" not in str(raised.value)


def test_an_engine_that_dies_is_one_line_and_the_run_goes_on_with_the_same_command(vllm, little_llama, monkeypatch):
    def die(*arguments, **options):
        raise RuntimeError("EngineCore encountered an issue.\nSee stack trace above")

    generator = generator_of(little_llama)
    generator.generate(["p"], Decoding(), [0])
    monkeypatch.setattr(vllm.made[0].llm_engine, "step", die)
    for call in (lambda: generator.generate(["p"], Decoding(), [0]), lambda: generator.loglikelihood([("p", "q")])):
        with pytest.raises(UserError, match=r"stopped: EngineCore .*See stack trace above.*same command") as raised:
            call()
        assert "\n" not in str(raised.value)


def test_bits_are_asked_for_in_vllms_own_way(little_llama):
    with pytest.raises(UserError, match=r"gen_load_in_4bit: only transformers.*gen_quantization=bitsandbytes"):
        generator_of(little_llama, load_in_4bit=True).generate(["p"], Decoding(), [0])
