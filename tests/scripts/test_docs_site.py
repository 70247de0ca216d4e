"""scripts/docs_site: the generated pages of the documentation, which `make docs` builds; there warnings are errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag._register import MODELS
from lm_eval_rag.describe.metrics import metric_names
from lm_eval_rag.describe.models import model
from lm_eval_rag.describe.retrievers import retriever_names
from lm_eval_rag.describe.tasks import about_tasks, names_in_files, task, task_names

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "docs_site"))

import ask_figures  # noqa: E402
import error_pages  # noqa: E402
import generated_pages  # noqa: E402
import page_anchors  # noqa: E402
import page_links  # noqa: E402
import site_nav  # noqa: E402


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return generated_pages.generated_pages(ROOT, lambda name: f"figure of {name}")


def leaves(nav: Any) -> list[str]:
    """All pages of a navigation."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in leaves(part)]


def test_every_entry_of_a_registry_has_its_page(pages: dict[str, str]) -> None:
    for name in MODELS:
        text = pages[f"methods/{name}.md"]
        assert text.startswith(f"# {name}\n") and f"figure of {name}" in text
        assert all(f"| `{argument.name}` | {argument.type} |" in text for argument in model(name).arguments)
        assert f"[{name}]({name}.md)" in pages["methods/index.md"]
    for name in task_names():
        text = pages[f"tasks/{name}.md"]
        assert text.startswith(f"# {name}\n") and task(name).summary in text and "| terms |" in text
    assert {f"### {name}" for name in metric_names()} <= set(pages["metrics.md"].splitlines())
    assert {f"## {name}" for name in retriever_names()} <= set(pages["retrievers.md"].splitlines())


def test_papers_and_files_are_links(pages: dict[str, str]) -> None:
    assert "[arXiv:2212.10509](https://arxiv.org/abs/2212.10509)" in pages["methods/ircot.md"]
    assert "[icews14/train.txt](https://raw.githubusercontent.com/" in pages["tasks/ruleqa_i.md"]
    assert "## Files" not in pages["tasks/ruleqa_demo.md"]


def test_pages_lead_to_what_results_says(pages: dict[str, str]) -> None:
    link = "[With the embedded models](../results.md#with-the-embedded-models)"
    assert link in pages["methods/rulerag_ft.md"]
    headings = re.findall(r"^#{2,3} (.+)$", (ROOT / "RESULTS.md").read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {page_anchors.anchor(heading) for heading in headings}
    linked = set(re.findall(r"\(\.\./results\.md#([^)]+)\)", "".join(pages.values())))
    assert len(anchors) == len(headings) and linked <= anchors


def test_every_page_has_what_was_measured_or_the_command_that_measures_it(pages: dict[str, str]) -> None:
    for kind, title, names in (("methods", "Measured", list(MODELS)), ("tasks", "Baselines", task_names())):
        for name in names:
            section = pages[f"{kind}/{name}.md"].partition(f"\n## {title}\n")[2].partition("\n## ")[0]
            ours = section.partition("### Published")[0]
            usage = (model(name) if kind == "methods" else task(name)).usage
            assert ("| --- |" in ours) != ("None recorded." in ours and usage in ours), name
    assert "### Published, not verified" in pages["methods/ircot.md"] and "| 50 % |" in pages["methods/ircot.md"]
    assert "None recorded." in pages["tasks/bamboogle.md"] and "Search-R1, table 2" in pages["tasks/bamboogle.md"]


def test_tasks_have_a_card(pages: dict[str, str]) -> None:
    files = (ROOT / "tasks").rglob("*.yaml")
    groups = {name for file in files for name in re.findall(r"^group: (\S+)$", file.read_text("utf-8"), re.MULTILINE)}
    for name in task_names():
        card = pages[f"tasks/{name}.md"].partition("\n## Card\n")[2].partition("\n## ")[0]
        facts = set(re.findall(r"^\| (\w+) \|", card, re.MULTILINE))
        wanted = (
            {"source", "terms"} if name in groups else {"source", "terms", "questions", "corpora", "slices", "gold"}
        )
        assert wanted <= facts, name


def test_only_embedded_tasks_show_their_questions(pages: dict[str, str]) -> None:
    shown = {path for path, text in pages.items() if "## Examples" in text}
    assert shown == {"tasks/ruleqa_demo.md", "tasks/crag_demo.md", "tasks/reasoning_demo.md"}
    for path in shown:
        assert pages[path].count('"answers": [') == 3, "three questions of different kinds"
    slices = re.findall(r'"slice": "(\w+)"', pages["tasks/ruleqa_demo.md"])
    assert sorted(slices) == ["direct", "rule_required", "unreachable"]
    assert "made-up text" in pages["tasks/ruleqa_i.md"] and "## A question" not in pages["tasks/ruleqa.md"]


def test_the_form_of_a_question_has_the_columns_of_the_task() -> None:
    """Of those whose data cannot be shown."""
    from lm_eval_rag.tasks.crag import task as crag
    from lm_eval_rag.tasks.ruleqa import task as ruleqa
    from lm_eval_rag.tasks.wikipedia import task as wikipedia

    for name, about in about_tasks().items():
        if not about.form:
            continue
        columns = {
            "ruleqa": ruleqa.COLUMNS,
            "crag": [*crag.COLUMNS, "corpus"],
            "wikipedia": [*wikipedia.COLUMNS, *wikipedia.EXTRA.get(str(about.form.get("scoring")), ())],
        }
        assert list(about.form) == columns[names_in_files()[name]], name


def test_the_navigation_lists_every_page_once(pages: dict[str, str]) -> None:
    listed = leaves(site_nav.nav(ROOT))
    written = {path.name for path in (ROOT / "docs").glob("*.md")}
    root = {page for file, page in page_links.ROOT_PAGES.items() if (ROOT / file).is_file()}
    assert len(listed) == len(set(listed)) and set(listed) == written | root | set(pages)


@pytest.mark.parametrize(
    ("page", "given", "expected"),
    [
        ("index.md", "[a](docs/crag.md)", "[a](crag.md)"),
        ("index.md", "[a](RESULTS.md)", "[a](results.md)"),
        ("index.md", "[scores](harness/scoring)", "[scores](metrics.md)"),
        ("running.md", "[CONTRIBUTING](../CONTRIBUTING.md#a-method)", "[CONTRIBUTING](contributing.md#a-method)"),
        ("crag.md", "[RESULTS.md](../RESULTS.md#crag-table-2)", "[RESULTS.md](results.md#crag-table-2)"),
        ("crag.md", "[harness/kg/functions.py](../harness/kg/functions.py)", "harness/kg/functions.py"),
        ("running.md", "[tiny](../harness/x/README.md)", "tiny (`harness/x/README.md`)"),
        ("methods/ircot.md", "[running](../running.md)", "[running](../running.md)"),
        ("index.md", "[a](https://x.org) [b](#c) ![d](e.png)", "[a](https://x.org) [b](#c) ![d](e.png)"),
        ("index.md", "![a board](docs/leaderboard.png)", "![a board](leaderboard.png)"),
        ("index.md", "```\n[a](docs/crag.md)\n```\n", "```\n[a](docs/crag.md)\n```\n"),
    ],
)
def test_links(page: str, given: str, expected: str) -> None:
    assert page_links.relinked(given, page, ROOT) == expected


@pytest.mark.parametrize(
    ("name", "steps", "note"),
    [
        ("rulerag_icl", ["match rules", "retrieve", "generate"], "default parameters"),
        ("external", ["ask the system"], "default parameters"),
        ("rag", ["(retrieve → generate) × 2"], "the method file in README (`two_step`)"),
    ],
)
def test_a_figure_shows_what_a_method_asks_for(name: str, steps: list[str], note: str) -> None:
    drawn = ask_figures.figure(name)
    assert re.findall(r"<li>(.+?)</li>", drawn) == ["question", *steps, "answer"]
    assert note in drawn.partition("</ol>")[2]


@pytest.mark.parametrize(
    ("steps", "folded"),
    [
        ("r g", ["r", "g"]),
        ("r r r g", ["r × 3", "g"]),
        ("r g r g r g a", ["(r → g) × 3", "a"]),
        ("g l l g l l s", ["(g → l × 2) × 2", "s"]),
        ("", []),
    ],
)
def test_steps_that_repeat_are_one_box(steps: str, folded: list[str]) -> None:
    assert ask_figures.folded(steps.split()) == folded


def test_a_long_chain_ends() -> None:
    drawn = ask_figures.chain([f"step {number}" for number in range(50)])
    assert drawn.count("<li>") == ask_figures.SHOWN + 3 and "<li>...</li><li>answer</li>" in drawn


SOURCE = """
def f(n):
    if n:
        raise UserError(f"n={n!r} is not *allowed*: " "give 1 or more.")
    raise MachineError("The disk is " + full)
    raise UserError(f"{n}")
    raise ValueError("not ours, but three words")
"""


def test_messages_of_errors() -> None:
    assert error_pages.messages(SOURCE) == ["n=… is not \\*allowed\\*: give 1 or more.", "The disk is …"]


def test_the_page_of_errors_has_those_of_every_part(pages: dict[str, str]) -> None:
    text = pages["errors.md"]
    assert text.count("\n- ") > 250
    assert {"## harness/core", "## harness/plugin", "## tasks/crag", "## src/lm_eval_rag"} <= set(text.splitlines())
    assert "Two documents have the id …. Give each document its own id." in text
