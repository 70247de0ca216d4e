"""A run goes to the Hub and comes back the same."""

import pytest
import yaml

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.plugin.retrieve_cli import Wanted, make_run
from lm_eval_rag.harness.retrieval import make_retriever

REPO = "acme/runs"


@pytest.fixture
def corpus():
    return Corpus.of(Passage(f"d{i}", f"Alba visited Bern in {i}") for i in range(30))


@pytest.fixture
def run(corpus, tmp_path):
    wanted = Wanted(("some_task",), [Query("q", "Who visited Bern in 7?"), Query("r", "Alba?")], "bm25", {}, 9)
    make_run(wanted, tmp_path / "bm25.parquet", corpus)
    return tmp_path / "bm25.parquet"


def test_a_published_run_serves_the_same(publish, hub, client, run, corpus):
    said = publish("run", str(run), "--repo", REPO, "--licence", "cc-by-sa-4.0", "--tag", "v1", "--upload")
    assert "Published" in said and set(hub.repositories["datasets", REPO].files) >= {"README.md", "bm25.parquet"}
    card = yaml.safe_load(said.split("---\n")[1])
    assert card["license"] == "cc-by-sa-4.0" and "text-retrieval" in card["task_categories"]
    assert corpus.fingerprint in said and f"retriever_path={REPO}@v1" in said
    for name in (REPO, f"{REPO}@v1"):
        served = make_retriever("run", corpus, path=name)
        for text in ("Who visited Bern in 7?", "Alba?"):
            assert served.search([text], 9) == make_retriever("bm25", corpus).search([text], 9)
    with pytest.raises(UserError, match="is refused: it was made over"):
        make_retriever("run", Corpus.of([Passage("a", "b")]), path=REPO)
    with pytest.raises(UserError, match="is not on"):
        make_retriever("run", corpus, path="acme/none")


def test_only_runs_are_published(publish, client, run, tmp_path):
    other = tmp_path / "other.parquet"
    other.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="missing or damaged"):
        publish("run", str(run), str(other), "--repo", REPO, "--licence", "mit")
    with pytest.raises(UserError, match="different names"):
        publish("run", str(run), str(run), "--repo", REPO, "--licence", "mit")
    with pytest.raises(SystemExit):
        publish("run", str(run), "--repo", REPO)
