"""The README's code runs as it stands there; its commands, and those of RESULTS.md, name what exists."""

import re
from pathlib import Path

import pytest

from lm_eval_rag import run
from lm_eval_rag._register import METHODS
from lm_eval_rag.cli import COMMANDS
from lm_eval_rag.harness.core.asks import generate, retrieve
from lm_eval_rag.harness.core.parameters import Positive
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.retrieval.fusion import round_robin
from lm_eval_rag.methods.prompts import template

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BOTH = README + (ROOT / "RESULTS.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


class Parrot:
    fingerprint, batch = "parrot", 4

    def generate(self, prompts, decoding, draws):
        return [" Vale\n" for _ in prompts]

    def loglikelihood(self, pairs):
        return [0.0 for _ in pairs]

    def count_tokens(self, text):
        return None

    def room(self, max_tokens):
        return None


def test_ones_own_documents():
    names: dict = {}
    exec(compile(BLOCKS[0], "README.md", "exec"), names)
    assert names["answer"].text == "Vale" and names["trace"].failure is None


def test_a_method_in_ten_lines():
    known = (Answer, Plan, Prompt, Query, generate, retrieve, round_robin, template)
    names = {thing.__name__: thing for thing in known if hasattr(thing, "__name__")} | {"Plan": Plan}
    names["Positive"] = Positive
    exec(compile(BLOCKS[1], "README.md", "exec"), names)
    documents = ["Ada Moss was born in Vale.", "Vale is the capital of Norn.", "Norn is cold."]
    ((answer, trace),) = run(names["two_step"], ["where was Ada Moss born?"], corpus=documents, generator=Parrot(), k=1)
    assert answer.text == "Vale" and [p.text for p in answer.passages][:1] == documents[:1]
    assert [step.ask for step in trace.steps] == ["Retrieve", "Generate", "Retrieve", "Generate"]
    assert len(BLOCKS[1].strip().splitlines()) <= 10


def test_what_it_names_exists():
    assert set(re.findall(r"--model (\w+)", BOTH)) <= set(METHODS)
    assert set(re.findall(r"`?lm-eval-rag ([\w-]+)", BOTH)) <= set(COMMANDS)
    for target in re.findall(r"make (\w+)", BOTH):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(((?!http)[^)]+)", BOTH))))
def test_local_links_lead_somewhere(link):
    path, _, anchor = link.partition("#")
    target = ROOT / (path or "README.md")
    assert target.exists()
    if anchor:
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
