"""The methods on whole records: the demo's, and the ten real ones with their pages, by a model that obeys forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.backends.lookup import Graphs
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import Lookup
from lm_eval_rag.harness.core.types import Answer, Query, Trace
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.plugin.trace_file import TraceFile, read_trace
from lm_eval_rag.methods.crag_hybrid import crag_hybrid
from lm_eval_rag.methods.crag_kg_baseline import crag_kg_baseline
from lm_eval_rag.methods.crag_llm_baseline import crag_llm_baseline
from lm_eval_rag.methods.crag_rag_baseline import crag_rag_baseline

pytest.importorskip("blingfire")
pytest.importorskip("resiliparse")

REPLIES = {
    "Static or dynamic:": "static",
    "Domain:": "finance",
    "Expression:": "round(10 / 4, 1)",
    "JSON:": '{"domain": "finance", "market_identifier": "playa hotels, VLMR", "metric": "EPS"}',
    "Numbers:": "3, 1",
    "Borne out (yes or no):": "yes",
    "Answer:": "forty-two",
    "===END===.": "## Reasoning:\nso\n## Answer:\nforty-two\n## False Premise:\nno\n",
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"graph_first": True, "verify": True},
    {"routing": True},
    {"rerank": "retriever", "depth": 30, "best_tables": 2},
    {"rerank": "generator", "depth": 15},
    {"parents": True, "best_pages": 2},
    {"chunk_extraction": False, "reasoning": False},
]
METHODS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (crag_llm_baseline, {}),
    (crag_rag_baseline, {}),
    (crag_kg_baseline, {}),
    *((crag_hybrid, options) for options in OPTIONS),
]
NAMES = [f"{method.__name__} {' '.join(options)}".strip() for method, options in METHODS]


class Obedient:
    """Replies in the form that a prompt's end asks for; keeps its prompts."""

    fingerprint = "obedient"
    batch = 8

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def generate(self, prompts: Sequence[str], decoding: Any, draws: Any) -> list[str]:
        self.prompts += prompts
        return [next(reply for end, reply in REPLIES.items() if prompt.endswith(end)) for prompt in prompts]

    def loglikelihood(self, pairs: Any) -> Any:
        raise AssertionError

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def room(self, max_tokens: int) -> int:
        return 3_000


def questions(build: Callable[..., str], task: str, **given: Any) -> list[Query]:
    """The queries of a built task."""
    from lm_eval_rag.tasks.crag.task import questions as asked

    rows = asked(build(**given) if task == "crag_demo" else build(task, **given))["test"]
    return [Query(row["id"], row["query"], row["time"], row["corpus"]) for row in rows]


@pytest.fixture(scope="module")
def demo() -> list[Query]:
    from lm_eval_rag.tasks.crag_demo.build import build

    return questions(build, "crag_demo")[:41]  # one of each type and domain, to save time


def check(results: Sequence[tuple[Answer, Trace]], method: Any) -> None:
    """Nothing failed, every prompt fitted, and what is counted as retrieved is what was."""
    assert [trace.failure for _, trace in results] == [None] * len(results)
    assert {answer.text for answer, _ in results} <= {"forty-two", "I don't know"}
    for answer, trace in results:
        assert len(answer.passages) <= 20 and (trace.count("Generate") or answer.abstained)
        assert all(step.prompt_tokens <= 3_000 * 5 for step in trace.steps)
    if method is crag_llm_baseline:
        assert {step.ask for _, trace in results for step in trace.steps} == {"Generate"}


@pytest.mark.parametrize(("method", "options"), METHODS, ids=NAMES)
def test_on_the_demo(demo: list[Query], method: Any, options: dict[str, Any]) -> None:
    model = Obedient()
    results = run(method, demo, generator=model, **options)
    check(results, method)
    if method is not crag_llm_baseline and "graph_first" not in options:
        assert any("Text: " in prompt for prompt in model.prompts) != ("routing" in options)
    if method is crag_kg_baseline:
        assert all("graph: VLMR (VLMR) eps: " in prompt for prompt in model.prompts if prompt.endswith("Answer:"))
    if "graph_first" in options:  # the graph is all that was looked at
        assert not any(step.ask in ("Pages", "Retrieve") for _, trace in results for step in trace.steps)


def test_the_whole_system_shows_every_kind_of_reference_on_the_demo(demo: list[Query], tmp_path: Path) -> None:
    model = Obedient()
    results = run(crag_hybrid, demo, generator=model)
    asked = Counter(step.ask for _, trace in results for step in trace.steps)
    n = len(demo)
    assert (asked["Pages"], asked["Retrieve"], asked["Calculate"], asked["Generate"]) == (n, n, n, 5 * n)
    last = [prompt for prompt in model.prompts if "Calculation: round(10 / 4, 1) = 2.5" in prompt]
    assert len(last) == n
    for kind in ("graph: VLMR (VLMR) eps: ", "Answer from memory: forty-two", "Text: ", "Table: Page name: "):
        assert sum(kind in prompt for prompt in last) >= n // 2, kind
    with TraceFile(tmp_path / "trace.jsonl.gz") as file:
        for query, (_, trace) in zip(demo, results, strict=True):
            file.write("crag_demo", query, trace)
    lines: list[Any] = read_trace(tmp_path / "trace.jsonl.gz")
    written = [step for line in lines for step in line["steps"] if step["ask"] == "Generate"]
    assert {step["request"] for step in written} == set(model.prompts) and all(step["reply"] for step in written)


@pytest.fixture(scope="module")
def real(mirror: Path | None) -> Callable[[str], list[Query]]:
    from lm_eval_rag.tasks.crag.build import build

    if mirror is None:
        pytest.skip("needs the mirror's ten records")
    file = mirror / "crag" / "dev_data.jsonl.bz2"
    return lambda task: questions(build, task, data_files=str(file))


@pytest.mark.parametrize(("method", "options"), METHODS[:4], ids=NAMES[:4])
def test_on_ten_real_records_of_task_1(real: Any, method: Any, options: dict[str, Any]) -> None:
    model = Obedient()
    results = run(method, real("crag_task1"), generator=model, **options)
    check(results, method)
    assert len(results) == 10
    if method in (crag_hybrid, crag_kg_baseline):  # this task has no graph, and no prompt asks for what to look up
        assert all(trace.count("HasGraph") == 1 and not trace.count("Lookup") for _, trace in results)
        assert not any(prompt.endswith("JSON:") for prompt in model.prompts)
        assert all(len(answer.passages) > 3 for answer, _ in results)


@pytest.mark.parametrize(("method", "options"), METHODS[2:4], ids=NAMES[2:4])
def test_a_given_graph_is_in_the_prompts_of_task_2_and_not_in_those_of_task_1(
    real: Any, mirror: Path, method: Any, options: dict[str, Any]
) -> None:
    """As ``lm_eval --tasks crag_task1,crag_task2 --model_args kg=...`` runs them: one graph for both tasks."""

    class Known:
        """A graph in which every company has the same number."""

        fingerprint = "known"

        def call(self, calls: Sequence[Lookup]) -> list[Any]:
            return [["playa hotels"] if call.function == "finance_get_company_name" else 1234.5 for call in calls]

    without, with_graph = real("crag_task1")[:3], real("crag_task2")[:3]
    model = Obedient()
    results = run(method, [*without, *with_graph], generator=model, kg=Known(), journal=None, **options)
    prompts = [[str(step.request) for step in trace.steps if step.ask == "Generate"] for _, trace in results]
    facts = [any("1234.5" in prompt for prompt in prompts_of_one) for prompts_of_one in prompts]
    asked = [any(prompt.endswith("JSON:") for prompt in prompts_of_one) for prompts_of_one in prompts]
    assert facts == asked == [False] * len(without) + [True] * len(with_graph)


@pytest.mark.parametrize(
    ("method", "options"), [METHODS[2], METHODS[3], METHODS[4]], ids=[NAMES[2], NAMES[3], NAMES[4]]
)
def test_on_ten_real_records_of_task_2(real: Any, mirror: Path, method: Any, options: dict[str, Any]) -> None:
    """With the graph's one file that is at hand: companies are found, their earnings are not."""
    results = run(method, real("crag_task2"), generator=Obedient(), kg=mirror / "crag", **options)
    check(results, method)
    lookups = [step.request for _, trace in results for step in trace.steps if step.ask == "Lookup"]
    assert any(request.startswith("finance_get_company_name(query='playa hotels')") for request in lookups)
    assert any("PLYA" in step.reply for _, trace in results for step in trace.steps if step.ask == "Lookup")


@pytest.mark.parametrize(("method", "options"), METHODS[2:4], ids=NAMES[2:4])
def test_a_graph_that_is_missing_is_said_before_a_call_is_paid(
    demo: list[Query], method: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Graphs, "_folder", lambda self, corpus: "crag_kg/absent")
    model = Obedient()
    with pytest.raises(UserError, match=r"need a knowledge graph, and .*absent was not built"):
        run(method, demo, generator=model, journal=None, **options)
    assert model.prompts == []
