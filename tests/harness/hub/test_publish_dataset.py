"""Publishing sets to the Hub double with the real client: dry run, upload, terms, faults."""

import hashlib
import json

import pytest
import yaml
from double import TOKEN

from lm_eval_rag.harness.common.errors import UserError

REPO = "acme/ruleqa"
COMMAND = ("dataset", "ruleqa_y", "--repo", REPO)
NAMES = ("corpus", "queries", "rules", "retriever_train", "generator_train")
BUILT = {"ruleqa_y/README.md", "ruleqa_y/meta.json", *(f"ruleqa_y/{name}.parquet" for name in NAMES)}
FILES = {"README.md", "eval.yaml", *BUILT}


def remote(hub):
    return hub.repositories["datasets", REPO]


def test_a_dry_run_lists_every_file_and_asks_nobody(publish, hub, client, cache, built):
    said = publish(*COMMAND, "--tag", "v1", "--private")
    assert not hub.requests and not hub.repositories
    assert said.startswith(f"dataset {REPO} (private), tag v1: {len(FILES)} files") and "Dry run" in said
    corpus = (cache / built / "corpus.parquet").read_bytes()
    assert f"{len(corpus):,}  {hashlib.sha256(corpus).hexdigest()}  ruleqa_y/corpus.parquet" in said
    listed = {line.split()[-1] for line in said.partition("-----")[0].splitlines()[1:]}
    assert listed == FILES
    assert yaml.safe_load(said.split("---\n")[1])["license"] == "cc"  # the card itself is shown


def test_upload_is_one_commit_and_a_tag(publish, hub, client, cache, built):
    said = publish(*COMMAND, "--tag", "v1", "--upload")
    files = remote(hub).files
    assert set(files) == {*FILES, ".gitattributes"} and not remote(hub).private
    for path in BUILT:
        assert files[path] == (cache / built / path.split("/")[1]).read_bytes()
    assert remote(hub).tags == {"v1": remote(hub).head} and remote(hub).head in said
    assert hub.requests["store"] == len(NAMES)  # the Parquet files went through LFS
    (_, message) = remote(hub).messages
    assert message.startswith("Publish ruleqa_y (small) with lm-eval-rag")


def test_what_lies_in_the_folder_besides_is_not_published(publish, hub, client, cache, built):
    index = cache / built / "bm25.npz"
    index.write_bytes(b"an index")
    try:
        publish(*COMMAND, "--upload")
    finally:
        index.unlink()
    assert set(remote(hub).files) == {*FILES, ".gitattributes"}


def test_a_private_repository(publish, hub, client):
    publish(*COMMAND, "--private", "--upload")
    assert remote(hub).private
    remote(hub).private = False
    with pytest.raises(UserError, match="is already public"):
        publish(*COMMAND, "--private", "--upload")


def test_a_version_does_not_change(publish, hub, client):
    publish(*COMMAND, "--tag", "v1", "--upload")
    with pytest.raises(UserError, match="already has the tag 'v1'"):
        publish(*COMMAND, "--tag", "v1", "--upload")
    publish(*COMMAND, "--tag", "v2", "--upload")  # another card, since it names its version
    assert len(remote(hub).commits) == 3 and hub.requests["store"] == len(NAMES)


def test_files_of_others_are_kept_unless_told(publish, hub, client):
    publish(*COMMAND, "--upload")
    remote(hub).commit({**remote(hub).files, "notes.txt": b"mine"}, "by hand")
    with pytest.raises(UserError, match=r"not in this publication: notes\.txt.*--replace"):
        publish(*COMMAND, "--upload")
    publish(*COMMAND, "--replace", "--upload")
    assert set(remote(hub).files) == {*FILES, ".gitattributes"}


@pytest.mark.parametrize(
    ("name", "terms"), [("ruleqa_i", "research and educational use only"), ("ruleqa_n", "not stated")]
)
def test_restricted_sets_need_consent_and_are_marked(name, terms, publish, hub, client):
    for names in ([name], ["ruleqa"]):
        with pytest.raises(UserError, match=rf"{name} \(.*{terms}.*--accept-terms") as raised:
            publish("dataset", *names, "--repo", REPO, "--upload")
        assert "ruleqa_y" not in str(raised.value)
    assert not hub.requests
    publish("dataset", name, "--repo", REPO, "--accept-terms", "--upload")
    card = remote(hub).files["README.md"].decode()
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["license"] == "other"
    assert front["license_name"] == ("research-only" if name == "ruleqa_i" else "not-stated")
    assert ("> **Research and educational use only.**" in card) == (name == "ruleqa_i") and terms in card


def test_bad_names(publish, client):
    with pytest.raises(UserError, match=r"Unknown set 'ruleqa_x'.*Did you mean 'ruleqa_"):
        publish("dataset", "ruleqa_x", "--repo", REPO)
    for repo in ("ruleqa", "a/b/c", "a/b@v1", "a/b c"):
        with pytest.raises(UserError, match=r"is not a repository name\. Give ORG/NAME"):
            publish("dataset", "ruleqa_y", "--repo", repo)


# --- what goes wrong on the way


def test_no_token_and_a_token_that_may_not(publish, hub, client):
    client.setenv("HF_TOKEN", "hf_of_somebody_else")
    with pytest.raises(UserError, match=r"repository 'acme/ruleqa' could not be used.*HF_TOKEN"):
        publish(*COMMAND, "--upload")
    client.delenv("HF_TOKEN")
    with pytest.raises(UserError, match=r"needs a token of the Hub.*HF_TOKEN"):
        publish(*COMMAND, "--upload")
    assert not hub.repositories


def test_a_connection_that_is_cut_once_heals(publish, hub, client):
    cut = []

    def once(method, path):
        return method == "PUT" and not cut and not cut.append(path)

    hub.fault = once
    publish(*COMMAND, "--upload")
    assert cut and set(remote(hub).files) == {*FILES, ".gitattributes"}


def test_an_interrupted_upload_leaves_nothing_half_published_and_goes_on(publish, hub, client, cache, built):
    corpus = hashlib.sha256((cache / built / "corpus.parquet").read_bytes()).hexdigest()
    hub.fault = lambda method, path: path == f"/storage/{corpus}"
    with pytest.raises(
        UserError, match=r"'acme/ruleqa' could not be used.*Run the same command.*completely or not at all"
    ):
        publish(*COMMAND, "--tag", "v1", "--upload")
    assert set(remote(hub).files) == {".gitattributes"} and not remote(hub).tags and not hub.requests["commit"]
    sent = hub.requests["store"]
    hub.fault = lambda method, path: None
    publish(*COMMAND, "--tag", "v1", "--upload")
    assert set(remote(hub).files) == {*FILES, ".gitattributes"} and remote(hub).tags == {"v1": remote(hub).head}
    assert hub.requests["store"] == len(NAMES) and 0 < sent < len(NAMES)  # none was sent twice


@pytest.mark.parametrize("step", ["commit", "tag"])
def test_cut_at_the_commit_or_the_tag_the_second_try_ends_it(step, publish, hub, client):
    hub.fault = lambda method, path: f"/{step}/" in path
    with pytest.raises(UserError, match="could not be used"):
        publish(*COMMAND, "--tag", "v1", "--upload")
    commits = len(remote(hub).commits)
    assert commits == (1 if step == "commit" else 2) and not remote(hub).tags
    hub.fault = lambda method, path: None
    publish(*COMMAND, "--tag", "v1", "--upload")
    assert len(remote(hub).commits) == 2 and remote(hub).tags == {"v1": remote(hub).head}


def test_a_hub_that_nobody_reaches(publish, hub, client):
    from huggingface_hub import constants

    client.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"could not be used \(ConnectError"):
        publish(*COMMAND, "--upload")


def test_secrets_are_refused(publish, hub, client, cache, built):
    meta = cache / built / "meta.json"
    whole = meta.read_text()
    try:
        for secret in (TOKEN, "sk-proj-" + "a1B2" * 8):
            meta.write_text(json.dumps({**json.loads(whole), "oops": secret}))
            with pytest.raises(UserError, match=r"ruleqa_y/meta\.json, byte \d+: a") as raised:
                publish(*COMMAND, "--upload")
            assert secret not in str(raised.value)
    finally:
        meta.write_text(whole)
    assert not hub.requests


@pytest.mark.parametrize(
    ("name", "says"),
    [("../../secret", "lead out of .*small: ../../secret"), ("run.sh", r"ruleqa_y/run\.sh \(a program\)")],
)
def test_files_that_a_damaged_folder_names_are_checked(publish, hub, client, cache, built, name, says):
    folder = cache / built
    whole = (folder / "meta.json").read_text()
    meta = json.loads(whole)
    (folder / name).write_text("x")
    try:
        (folder / "meta.json").write_text(json.dumps({**meta, "files": {**meta["files"], name: 1}}))
        with pytest.raises(UserError, match=says):
            publish(*COMMAND, "--upload")
    finally:
        (folder / "meta.json").write_text(whole)
        (folder / name).unlink()
    assert not hub.requests
