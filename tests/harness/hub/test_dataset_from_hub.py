"""Published sets as a task's data, as plain datasets and from the cache; what is missing, private, or damaged."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from double import TOKEN
from polars.testing import assert_frame_equal

from lm_eval_rag._register import tasks_folder
from lm_eval_rag.harness.checkpoints.download import fetch_folder
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.hub.publish import publish_main
from lm_eval_rag.tasks.ruleqa.build import build
from lm_eval_rag.tasks.ruleqa.published import TABLES, install, offered

REPO = "acme/ruleqa"


@pytest.fixture
def published(publish, hub, client):
    """The repository with the small set, tagged v1, and a later version of it."""
    publish("dataset", "ruleqa_y", "--repo", REPO, "--tag", "v1", "--upload")
    found = hub.repositories["datasets", REPO]
    found.commit({**found.files, "README.md": b"---\nlicense: cc\n---\nlater"}, "later")
    return found


@pytest.fixture
def copied(built, cache, tmp_path):
    """A local folder that holds the small set as a repository would."""
    shutil.copytree(cache / built, tmp_path / "copied" / "ruleqa_y")
    return tmp_path / "copied"


# --- folders by name


def test_a_revision_is_a_commit_on_disk(published, hub):
    first = fetch_folder(f"{REPO}@v1", kind="dataset")
    assert first.name == published.tags["v1"] != published.head == fetch_folder(REPO, kind="dataset").name
    assert fetch_folder(f"{REPO}@{published.tags['v1']}", kind="dataset") == first
    assert {path.relative_to(first).as_posix() for path in first.rglob("*") if path.is_file()} == set(
        published.commits[published.tags["v1"]]
    )


def test_a_local_folder_stays_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "acme" / "ruleqa").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert fetch_folder("acme/ruleqa") == Path("acme/ruleqa") and fetch_folder(tmp_path) == tmp_path


def test_offline_serves_what_is_there_whole(published, hub, client):
    from huggingface_hub import constants

    folder = fetch_folder(f"{REPO}@v1", kind="dataset")
    client.setattr(constants, "HF_HUB_OFFLINE", True)
    asked = hub.requests.total()
    assert fetch_folder(f"{REPO}@v1", kind="dataset") == folder and hub.requests.total() == asked
    with pytest.raises(UserError, match=r"'v2' is incomplete in the cache .*HF_HUB_OFFLINE=1 forbids"):
        fetch_folder(f"{REPO}@v2", kind="dataset")
    (folder / "ruleqa_y" / "rules.parquet").unlink()
    with pytest.raises(UserError, match="is incomplete in the cache"):
        fetch_folder(f"{REPO}@v1", kind="dataset")


def test_without_network_too(published, hub, client):
    from huggingface_hub import constants

    folder = fetch_folder(f"{REPO}@v1", kind="dataset")
    client.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert fetch_folder(f"{REPO}@v1", kind="dataset") == folder
    with pytest.raises(
        UserError,
        match=r"'acme/other' is incomplete in the cache .*be downloaded from .*127\.0\.0\.1:9.*Check the network",
    ):
        fetch_folder("acme/other")


def test_what_is_not_there(published, hub, client):
    with pytest.raises(UserError, match=r"revision 'v9' is not on http.*no such tag, branch or commit"):
        fetch_folder(f"{REPO}@v9", kind="dataset")
    for name, kind in (("acme/other", "dataset"), (REPO, "model")):
        with pytest.raises(UserError, match=rf"The {kind} repository '{name}' is not on http.*HF_TOKEN"):
            fetch_folder(name, kind=kind)
    with pytest.raises(UserError, match="is not a folder on this machine and not a Hub id"):
        fetch_folder("/no/such/folder/here")


def test_a_private_repository_opens_with_a_token_only(published, hub, client):
    published.private = True
    client.delenv("HF_TOKEN")
    with pytest.raises(UserError, match=r"or is private.*HF_TOKEN"):
        fetch_folder(REPO, kind="dataset")
    client.setenv("HF_TOKEN", TOKEN)
    assert (fetch_folder(REPO, kind="dataset") / "README.md").is_file()


def test_a_download_that_was_cut_goes_on(published, hub, client):
    hub.fault = lambda method, path: method == "GET" and path.startswith("/storage/")
    with pytest.raises(UserError, match=r"could not be used|not whole"):
        fetch_folder(REPO, kind="dataset")
    hub.fault = lambda method, path: None
    assert (fetch_folder(REPO, kind="dataset") / "ruleqa_y" / "corpus.parquet").stat().st_size


# --- sets of a task


def test_an_installed_set_holds_what_was_built(published, hub, cache, built):
    corpus, version = install("ruleqa_y", f"{REPO}@v1")
    assert version == f"{REPO}@{published.tags['v1']}"
    assert corpus == install("ruleqa_y", REPO)[0] != built  # named by its content
    for name in TABLES:
        ours, theirs = (pl.read_parquet(cache / one / f"{name}.parquet") for one in (built, corpus))
        assert_frame_equal(ours, theirs)
    opened, wanted = open_corpus(corpus), open_corpus(built)
    assert opened.texts == wanted.texts and opened.rules() == wanted.rules()
    assert [(query.text, answer) for query, answer in opened.examples()] == [
        (query.text, answer) for query, answer in wanted.examples()
    ]
    assert opened.fingerprint == corpus.split("/")[1]


def test_only_the_set_that_is_asked_for_is_downloaded(published, hub, client):
    files = published.files
    others = {path.replace("ruleqa_y", "ruleqa_w"): data for path, data in files.items() if path != "README.md"}
    others["ruleqa_w/corpus.parquet"] = b"big"
    hub.stored["3" * 64] = b"big"
    published.commit({**files, **others}, "another set")
    _, version = install("ruleqa_y", REPO)
    root = fetch_folder(REPO, kind="dataset", only=("ruleqa_y/*", "*/meta.json"))
    assert version.endswith(root.name) and not (root / "ruleqa_w" / "corpus.parquet").exists()
    with pytest.raises(UserError, match=r"does not contain ruleqa_i\. It contains: ruleqa_w, ruleqa_y"):
        install("ruleqa_i", REPO)


def test_other_rows_than_the_checksums_are_refused(copied, monkeypatch, tmp_path):
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "empty"))
    path = copied / "ruleqa_y" / "rules.parquet"
    table = pl.read_parquet(path)
    table.with_columns(support=pl.col("support") + 1).write_parquet(path)
    meta = json.loads((copied / "ruleqa_y" / "meta.json").read_text())
    meta["checksums"]["corpus"] = "0" * 64  # so that it is no set that is installed already
    (copied / "ruleqa_y" / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(UserError, match=r"is damaged: the rows of \w+\.parquet do not match their checksum"):
        install("ruleqa_y", str(copied))
    assert not list((tmp_path / "empty").rglob("*.parquet"))


def test_changed_rows_with_their_checksum_are_another_set(copied, cache, built):
    from lm_eval_rag.tasks.ruleqa.tables import checksum

    path, meta = copied / "ruleqa_y" / "rules.parquet", copied / "ruleqa_y" / "meta.json"
    table = pl.read_parquet(path).head(3)
    table.write_parquet(path)
    said = json.loads(meta.read_text())
    said["checksums"]["rules"] = checksum(table)
    meta.write_text(json.dumps(said))
    corpus, version = install("ruleqa_y", str(copied))
    assert version == str(copied) and len(open_corpus(corpus).rules()) == 3
    assert len(open_corpus(built).rules()) == 17 and open_corpus(built).fingerprint != open_corpus(corpus).fingerprint


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "corpus.parquet").write_bytes(b"PAR1"), r"corpus\.parquet cannot be read"),
        (lambda folder: (folder / "queries.parquet").unlink(), r"queries\.parquet cannot be read"),
        (lambda folder: (folder / "meta.json").write_text("{"), r"meta\.json cannot be read"),
        (lambda folder: (folder / "meta.json").write_text('{"task": "ruleqa_y"}'), r"meta\.json cannot be read"),
        (lambda folder: (folder / "meta.json").unlink(), r"does not contain ruleqa_y. It contains: no RuleQA set"),
    ],
)
def test_damage(damage, message, copied, cache, monkeypatch, tmp_path):
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "empty"))
    damage(copied / "ruleqa_y")
    with pytest.raises(UserError, match=message):
        install("ruleqa_y", str(copied))


@pytest.fixture
def task(tmp_path):
    """``task(metadata, **dataset_kwargs)``: ruleqa_y, loaded as the command line or a YAML of one's own asks for it."""
    from lm_eval.tasks import TaskManager

    def load(metadata=None, **given):
        ours = tasks_folder() / "ruleqa" / "ruleqa_y.yaml"
        said = f"include: {ours}\ntask: ruleqa_y\ndataset_kwargs: {json.dumps(given)}\n"
        (tmp_path / "yaml").mkdir(exist_ok=True)
        (tmp_path / "yaml" / "mine.yaml").write_text(said)
        manager = TaskManager(include_defaults=False, include_path=str(tmp_path / "yaml"), metadata=metadata)
        return manager.load(["ruleqa_y"])["tasks"]["ruleqa_y"]

    return load


def test_a_task_by_metadata_and_by_its_yaml(published, hub, cache, built, task):
    asked = pl.read_parquet(cache / built / "queries.parquet").filter("in_main")
    corpus = install("ruleqa_y", REPO)[0]
    loaded = [
        task({"dataset": f"{REPO}@v1"}),
        task(dataset=f"{REPO}@v1"),
        task({"dataset": "acme/other"}, dataset=f"{REPO}@v1"),  # the YAML's own counts
    ]
    for one in loaded:
        docs = list(one.test_docs())
        assert [doc["query"] for doc in docs] == asked["text"].to_list() and docs[0]["corpus"] == corpus
        assert one.config.metadata["dataset"] == f"{REPO}@{published.tags['v1']}"
        assert len(list(one.fewshot_docs())) == 150


def test_a_set_as_it_was_built_takes_no_options(published, hub, task):
    with pytest.raises(UserError, match=r"is already built, so seed cannot be set"):
        task({"dataset": REPO}, seed=1)


# --- other processes: the clients as users start them


READ = """
import sys
from datasets import load_dataset
repo, revision = sys.argv[1:3]
asked = load_dataset(repo, "ruleqa_y", revision=revision)
assert list(asked) == ["test"] and asked["test"].num_rows == 200, asked
if "offline" not in sys.argv:  # datasets' own cache wants the configuration's name
    assert load_dataset(repo, revision=revision)["test"].column_names == asked["test"].column_names
assert load_dataset(repo, "ruleqa_y_corpus", revision=revision, split="corpus").num_rows == 2997
assert load_dataset(repo, "ruleqa_y_rules", revision=revision)["rules"][0]["repeat"] is False
train = load_dataset(repo, "ruleqa_y_train", revision=revision)
assert {name: part.num_rows for name, part in train.items()} == {"retriever": 150, "generator": 150}, train
print("rows", asked["test"][0]["answers"])
"""


def test_load_dataset(published, hub, elsewhere, cache, built):
    first = pl.read_parquet(cache / built / "queries.parquet")["answers"][0].to_list()
    done = elsewhere("-c", READ, REPO, "v1")
    assert f"rows {first}" in done.stdout, done.said
    asked = hub.requests.total()
    offline = elsewhere("-c", READ, REPO, "v1", "offline", HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    assert f"rows {first}" in offline.stdout and hub.requests.total() == asked, offline.said


def test_end_to_end(published, built, elsewhere, tmp_path, cache, client, undescribed):
    """The command line with a published set, in a process of its own, beside the set that it was published from."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    options = ["--tasks", "ruleqa_y", "--model", "rule_vote", "--limit", "5", "--log_samples"]
    options += ["--output_path", str(tmp_path / "hub"), "--metadata", json.dumps({"dataset": f"{REPO}@v1"})]
    fresh = {"LM_EVAL_RAG_CACHE": str(tmp_path / "cache"), "LM_EVAL_RAG_MIRROR": str(tmp_path / "no_mirror")}
    done = elsewhere("-m", "lm_eval", "run", *options, **fresh)
    assert done.returncode == 0, done.said[-3000:]
    (theirs,) = [json.loads(path.read_text()) for path in (tmp_path / "hub").rglob("results_*.json")]
    (asked_there,) = [path.read_text().splitlines() for path in (tmp_path / "hub").rglob("samples_*.jsonl")]

    client.setattr("lm_eval_rag.tasks.ruleqa.build.build", lambda task: built)
    manager = TaskManager(include_defaults=False, include_path=str(tasks_folder()))
    arguments = {"model": "rule_vote", "model_args": "journal=off", "tasks": ["ruleqa_y"], "limit": 5}
    local = json.loads(json.dumps(simple_evaluate(**arguments, task_manager=manager), default=str))

    assert theirs["results"]["ruleqa_y"] == local["results"]["ruleqa_y"]
    assert theirs["configs"]["ruleqa_y"]["metadata"]["dataset"] == f"{REPO}@{published.tags['v1']}"
    assert len(asked_there) == 5
    for here, line in zip(local["samples"]["ruleqa_y"], asked_there, strict=True):
        there = json.loads(line)
        corpora = here["doc"].pop("corpus"), there["doc"].pop("corpus")
        assert corpora[0] == built != corpora[1] and here["doc"]["answers"] == there["doc"]["answers"]
        keys = ("answer", "passages", "rules")
        assert [here["doc"]["_rag"][key] for key in keys] == [there["doc"]["_rag"][key] for key in keys]
    assert_frames_equal(cache / built, tmp_path / "cache" / corpora[1])


def test_the_real_set_there_and_back(mirror, client, tmp_path, cache, once):
    real = once("ruleqa_y", lambda: build("ruleqa_y"))
    assert publish_main(["dataset", "ruleqa_y", "--repo", REPO, "--tag", "v1", "--upload"], offered=offered()) == 0
    client.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    client.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path / "no_mirror"))
    assert_frames_equal(cache / real, tmp_path / "cache" / install("ruleqa_y", f"{REPO}@v1")[0])


def assert_frames_equal(folder, other):
    for name in TABLES:
        assert_frame_equal(*(pl.read_parquet(one / f"{name}.parquet") for one in (folder, other)))
