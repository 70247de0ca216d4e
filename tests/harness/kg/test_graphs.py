"""Which knowledge graph a question's lookups go to: the corpus decides whether there is one, ``kg=`` which one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Lookup, has_graph, lookup
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.kg.client import HttpGraph
from lm_eval_rag.harness.kg.embedded import EmbeddedGraph
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.tasks.crag_demo.graph import build_graph


class Named:
    """A graph that answers with its name."""

    def __init__(self, name: str) -> None:
        self.fingerprint = name

    def call(self, calls: Sequence[Lookup]) -> list[Any]:
        return [f"{self.fingerprint}: {dict(call.arguments)['query']}" for call in calls]


def asks(query: Query) -> Plan[Answer]:
    """Looks up, and says what went wrong."""
    try:
        return Answer(str((yield from lookup("open_search_entity_by_name", query=query.text))))
    except CallError as error:
        return Answer(f"failed: {error}")


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Corpus folders with a graph that is there, one that is not, none, and nothing said."""
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    monkeypatch.delenv("CRAG_MOCK_API_URL", raising=False)
    graph = build_graph()
    own = {"kg": f"{graph.parent.name}/{graph.name}"}
    kinds = {"own": own, "absent": {"kg": "crag_kg/abc"}, "without": {"kg": None}, "silent": {}}
    for name, meta in kinds.items():
        (tmp_path / "t" / name).mkdir(parents=True)
        (tmp_path / "t" / name / "meta.json").write_text(json.dumps(meta))
    return {name: f"t/{name}" for name in kinds}


def test_each_question_is_looked_up_in_the_graph_of_its_corpus(corpora: dict[str, str]) -> None:
    queries = [Query("a", "Ostrand", corpus=f"{corpora['own']}#a"), Query("b", "Ostrand", corpus=corpora["without"]),
               Query("c", "Dunmere", corpus=f"{corpora['own']}#c")]  # fmt: skip
    texts = [answer.text for answer, _ in run(asks, queries)]
    assert texts[0].startswith("['Ostrand'") and texts[2].startswith("['Dunmere")
    assert texts[1] == "failed: this task comes without a knowledge graph"


def test_the_graph_that_is_given_serves_all_but_the_tasks_without_one(corpora: dict[str, str]) -> None:
    queries = [*(Query(name, name, corpus=corpus) for name, corpus in corpora.items()), Query("q", "no corpus")]
    texts = [answer.text for answer, _ in run(asks, queries, kg=Named("given"))]
    none = "failed: this task comes without a knowledge graph"
    assert texts == ["given: own", "given: absent", none, "given: silent", "given: no corpus"]


def knows(query: Query) -> Plan[Answer]:
    """Says whether there is a graph."""
    return Answer(str((yield from has_graph())))


def test_a_method_can_tell_whether_there_is_a_graph(corpora: dict[str, str]) -> None:
    queries = [*(Query(name, "", corpus=f"{corpus}#q") for name, corpus in corpora.items()), Query("q", "")]
    (absent,) = [query for query in queries if query.id == "absent"]
    with pytest.raises(UserError, match="was not built"):  # when it is asked for, before anything is paid
        run(knows, [absent])
    built = [query for query in queries if query != absent]
    assert [answer.text for answer, _ in run(knows, built)] == ["True", "False", "False", "False"]
    given = [answer.text for answer, _ in run(knows, queries, kg=Named("given"))]
    assert given == ["True", "True", "False", "True", "True"]


def test_the_server_of_the_environment_stands_in_for_a_graph_that_was_not_built(
    corpora: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAG_MOCK_API_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(HttpGraph, "call", lambda self, calls: [f"server {self.url}"] * len(calls))
    ((answer, _),) = run(asks, [Query("a", "x", corpus=corpora["absent"])])
    assert answer.text == "server http://127.0.0.1:9"
    ((answer, _),) = run(asks, [Query("a", "Ostrand", corpus=corpora["own"])])
    assert answer.text.startswith("['Ostrand'")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "crag_kg.*abc was not built.*CRAG_MOCK_API_URL.*build crag_kg"),
        ("silent", "'q' needs Lookup.*kg=FOLDER"),
    ],
)
def test_a_graph_that_is_needed_and_not_at_hand_is_an_error(corpora: dict[str, str], name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(asks, [Query("q", "x", corpus=corpora[name])])


def test_the_models_arguments_name_a_graph_and_an_extractor(corpora: dict[str, str]) -> None:
    folder = build_graph()
    setup = read_arguments("asks", asks, {"kg": str(folder), "extractor": "faithful"})
    assert isinstance(setup.kg, EmbeddedGraph)
    assert setup.corpora.reading.extractor == "faithful"
    plain = read_arguments("asks", asks, {})
    assert plain.kg is None
    assert (
        len({setup.fingerprint, plain.fingerprint, read_arguments("asks", asks, {"kg": str(folder)}).fingerprint}) == 3
    )
    assert isinstance(read_arguments("asks", asks, {"kg": "http://localhost:8000"}).kg, HttpGraph)
    with pytest.raises(UserError, match="kg="):
        read_arguments("asks", asks, {"kg": "no/such/folder"})
    with pytest.raises(UserError, match="Unknown extractor 'slow'"):
        read_arguments("asks", asks, {"extractor": "slow"})
