"""The README's code runs unchanged; commands and links in all user documents refer to something that exists."""

import re
from pathlib import Path

import pytest

from lm_eval_rag import run
from lm_eval_rag._register import MODELS
from lm_eval_rag.cli import COMMANDS
from lm_eval_rag.harness.scoring import PLAIN

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = {
    path: path.read_text(encoding="utf-8") for path in [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]
}
TEXT = "\n".join(DOCUMENTS.values())
LINKS = [(path, link) for path, text in DOCUMENTS.items() for link in re.findall(r"\]\(((?!http)[^)]+)", text)]
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
    assert names["trace"].failure is None and names["answer"].text
    assert [passage.id for passage in names["answer"].passages] == ["d0"], "norn shares no word with the question"


def test_a_method_in_ten_lines():
    names: dict = {}
    exec(compile(BLOCKS[1], "README.md", "exec"), names)
    documents = ["Ada Moss was born in Vale.", "Vale is the capital of Norn.", "Norn is cold."]
    ((answer, trace),) = run(names["two_step"], ["where was Ada Moss born?"], corpus=documents, generator=Parrot(), k=1)
    assert answer.text == "Vale" and [p.text for p in answer.passages][:1] == documents[:1]
    assert [step.ask for step in trace.steps] == ["Retrieve", "Generate", "Retrieve", "Generate"]
    assert len(BLOCKS[1].partition("def ")[2].strip().splitlines()) <= 8


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 120


def test_every_task_method_and_score_is_named():
    named = {name for words in re.findall(r"`([^`\n]+)`", README) for name in braces(words)}
    yaml = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("tasks/*/*.yaml"))
    tasks = set(re.findall(r"^(?:task|group): *(\w+)$", yaml, re.MULTILINE))
    assert {"ruleqa_i", "hotpotqa_200", "crp_table1"} <= tasks and tasks <= named
    assert set(MODELS) <= named
    parts = {"crag_correct", "crag_missing", "crag_hallucination"}  # "crag_score and its parts"
    assert {re.sub(r"@\d+", "@k", metric.name) for metric in PLAIN} - parts <= named


def braces(words):
    """``a_{b,c}`` names ``a_b`` and ``a_c``."""
    before, _, rest = words.partition("{")
    inside, _, after = rest.partition("}")
    return [before + one + after for one in inside.split(",")]


def test_commands_exist():
    assert set(re.findall(r"--model (\w+)", TEXT)) <= set(MODELS)
    assert set(re.findall(r"`?lm-eval-rag ([a-z][\w-]*)", TEXT)) <= set(COMMANDS)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:`|^ {4})make ([\w-]+)", TEXT, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize(("path", "link"), sorted(set(LINKS)), ids=lambda value: str(value).removeprefix(f"{ROOT}/"))
def test_local_links_lead_somewhere(path, link):
    name, _, anchor = link.partition("#")
    target = path.parent / name if name else path
    assert target.exists()
    if anchor:
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
