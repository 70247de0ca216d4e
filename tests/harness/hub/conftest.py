"""The Hub double, the real client pointed at it, and a small RuleQA set of a made-up world to publish."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for double.py, which the tests here share

from double import TOKEN, Hub

from lm_eval_rag.harness.data.sources import Source
from lm_eval_rag.harness.hub.cards import DataSet

REPO = "acme/ruleqa"


def source(licence="CC BY (YAGO)", terms="none stated in the repository", path="yago/train.txt"):
    return Source(path, "owner/name", "c" * 40, path, "0" * 64, 1, licence, terms)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """Servers on this machine are asked directly, whatever proxy the environment names."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")


@pytest.fixture
def hub():
    with Hub() as server:
        yield server


@pytest.fixture
def client(hub, tmp_path, monkeypatch):
    """The real client of this process, which asks the double, with a cache of its own, a token and short waits."""
    from huggingface_hub import constants
    from huggingface_hub.utils import _http

    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    changed = {
        "ENDPOINT": hub.url, "HUGGINGFACE_CO_URL_TEMPLATE": template, "HF_HUB_OFFLINE": False,
        "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_DISABLE_XET": True,
        "HF_TOKEN_PATH": str(tmp_path / "none"), "HF_STORED_TOKENS_PATH": str(tmp_path / "none"),
    }  # fmt: skip
    for name, value in changed.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(_http.time, "sleep", lambda seconds: None)
    return monkeypatch


@pytest.fixture
def elsewhere(hub, tmp_path):
    """``elsewhere(*command)``: a Python process that asks the double with a fresh cache; variables may be changed."""

    def run(*command, **variables):
        environment = {
            **os.environ,
            "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0", "HF_TOKEN": TOKEN, **variables,
        }  # fmt: skip
        done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=120)
        done.said = done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def built(cache):
    """The corpus id of a small set in RuleQA-Y's form: the made-up world of ruleqa_demo."""
    from lm_eval_rag.harness.data.folders import write_folder
    from lm_eval_rag.tasks.ruleqa.making import Built, write_set
    from lm_eval_rag.tasks.ruleqa.partners import partners
    from lm_eval_rag.tasks.ruleqa.slices import SUPPORT
    from lm_eval_rag.tasks.ruleqa.specs import SPECS
    from lm_eval_rag.tasks.ruleqa.tables import with_aliases
    from lm_eval_rag.tasks.ruleqa_demo.build import make_world, tables

    made_from = {"task": "ruleqa_y", "version": 0, "parameters": {}, "sources": {}, "hash": "small"}
    world = tables(make_world(0))
    world["queries"] = with_aliases(world["queries"], {})
    counts = {"dropped": {}, "moved": {}, "pool": dict.fromkeys(SUPPORT, 1), "noise": {}}
    set_ = Built(world, counts, partners(world["corpus"]))
    write_folder(
        cache / "ruleqa_y" / "small", "small", lambda folder: write_set(folder, set_, SPECS["ruleqa_y"], made_from, {})
    )
    return "ruleqa_y/small"


@pytest.fixture
def offered(built):
    """One open set, one for research only, one that says nothing; all have the rows of ``built``."""
    terms = {
        "ruleqa_y": source(),
        "ruleqa_i": source("Harvard Dataverse doi:10.7910/DVN/28075", "research and educational use only", "icews14/a"),
        "ruleqa_n": source("none stated", "not stated", "nell995/a"),
    }
    sets = {name: DataSet(name, name.upper(), {one.path: one}, lambda: built) for name, one in terms.items()}
    return {"ruleqa": tuple(sets.values()), **{name: (one,) for name, one in sets.items()}}


@pytest.fixture
def publish(offered, capsys):
    """``publish(*argv)``: what the command says."""
    from lm_eval_rag.harness.hub.publish import publish_main

    def publish(*argv):
        assert publish_main(list(argv), offered=offered) == 0
        return capsys.readouterr().out

    return publish
