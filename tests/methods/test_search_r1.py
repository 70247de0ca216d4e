"""Search-R1's form to the letter: what its checkpoints read through a chat template, turn by turn.

The form is that of ``search_r1/llm_agent/generation.py`` at commit a14dc3a; the words of the prompt here are made up.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.generators import local
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.local import Continuation
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.methods.ircot import ircot
from lm_eval_rag.methods.search_agent import search_agent

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from search_r1_prompt import prompt_file

pytest.importorskip("transformers")

CHATML = (  # the form of Qwen2.5's template, which says something of its own where there is no system message
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nHelp.<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
INFER = 'prompt = f"""Find it. \\\nWrite <answer> x </answer>. Question: {question}\\n"""\nprompt = shown(prompt)\n'
GENERATION = """
def told(active):
    if not active:
        next_obs.append('')
    elif found:
        next_obs.append(f'\\n\\n<information>{search_results.pop(0).strip()}</information>\\n\\n')
    else:
        next_obs.append(f'\\nI wrote no call. \\
Once more.\\n')

def shown(results):
    for idx, title, text in results:
        format_reference += f"Doc {idx+1}(Title: {title}) {text}\\n"
"""
CORPUS = [Passage("a", "Vale\nVale is a book by Bo Reed."), Passage("b", "Norn\nNorn is a book by Al Moss.")]
QUESTION = Query("q", "who wrote vale")
OPENED = (
    "<|im_start|>system\nHelp.<|im_end|>\n<|im_start|>user\nFind it. Write <answer> x </answer>. Question: "
    "who wrote vale?\n<|im_end|>\n<|im_start|>assistant\n"
)
RESULTS = (
    '<information>Doc 1(Title: "Vale") Vale is a book by Bo Reed.\n'
    'Doc 2(Title: "Norn") Norn is a book by Al Moss.</information>'
)


@pytest.fixture
def scripted(little_llama, monkeypatch, tmp_path):
    """A local model with that template that writes the given turns, and the texts that it reads."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(little_llama)
    tokenizer.chat_template = CHATML
    generator = LMGenerator(ModelSpec("hf", {"pretrained": str(little_llama), "dtype": "float32"}, device="cpu"))
    generator.lm.tokenizer = tokenizer
    read = []

    def play(method, turns, **options):
        left = list(turns)

        def write(lm, texts, decoding, *others):
            read.extend(texts)
            return [Continuation(left.pop(0), 9, True) for _ in texts]

        monkeypatch.setattr(local, "continue_batch", write)
        ((answer, trace),) = run(method, [QUESTION], corpus=CORPUS, generator=generator, **options)
        assert not left and trace.failure is None
        return answer, read

    return play


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "search_r1.toml"
    path.write_text(prompt_file(INFER, GENERATION))
    return str(path)


def test_all_turns_are_one_reply(scripted, prompts):
    first, last = "<think> Which? </think>\n<search> vale book ", "<think>Bo.</think>\n<answer> Bo Reed "
    turns = [first, "\n<think>Hm.</think>", last]
    answer, read = scripted(search_agent, turns, protocol="search_r1", prompt_file=prompts, k=2)
    second = f"{OPENED}{first}</search>\n\n{RESULTS}\n\n"
    assert read == [OPENED, second, f"{second}\n<think>Hm.</think>\nI wrote no call. Once more.\n"]
    assert all(text.count("<|im_start|>user\n") == text.count("<|im_start|>assistant\n") == 1 for text in read)
    assert (answer.text, answer.notes, answer.rationale) == ("Bo Reed", ("malformed call",), "Which? Hm. Bo.")


def test_the_last_turn_is_asked_for_without_a_word(scripted, prompts):
    turns = [*["<search> vale book "] * 4, "<answer>Bo Reed"]
    answer, read = scripted(search_agent, turns, protocol="search_r1", prompt_file=prompts, k=2)
    assert read[-1] == OPENED + f"<search> vale book </search>\n\n{RESULTS}\n\n" * 4 and answer.text == "Bo Reed"


def test_without_a_template_the_text_is_the_same_without_its_marks(scripted, prompts, little_llama):
    """infer.py at that commit puts the prompt through a template only where the tokenizer has one."""
    generator = LMGenerator(
        ModelSpec("hf", {"pretrained": str(little_llama), "dtype": "float32"}, device="cpu"), chat=False
    )
    plan = search_agent(QUESTION, protocol="search_r1", prompt_file=prompts, k=2)
    next(plan)
    assert plan.send(("<search> vale book ",)).text == "vale book"
    text = generator.wrap(plan.send(tuple(CORPUS)).prompt.render())
    user = OPENED.split("user\n")[1].split("<|im_end|>")[0]
    assert text == f"{user}<search> vale book </search>\n\n{RESULTS}\n\n"


@pytest.mark.parametrize("variant", ["paper", "flashrag"])
def test_ircot_goes_on_in_its_reply(scripted, variant):
    turns = ["Vale is a book.", "So the answer is Bo Reed.", "The answer is Bo Reed."]
    turns = turns if variant == "paper" else turns[:2]  # flashrag has no reader
    answer, read = scripted(ircot, turns, variant=variant, k=1)
    assert read[0].endswith("Question: who wrote vale\nReasoning:<|im_end|>\n<|im_start|>assistant\n")
    assert read[1].endswith("Reasoning:<|im_end|>\n<|im_start|>assistant\nVale is a book.")
    assert answer.text == "Bo Reed" and all(text.count("assistant\n") == 1 for text in read)
