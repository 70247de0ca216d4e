"""What a method runs with by itself, and what gives way to the user; which checkpoint goes with which prompt."""

import importlib.util
import json

import pytest

from lm_eval_rag._register import method_of
from lm_eval_rag.harness.checkpoints.note import Note, write_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import generate, retrieve
from lm_eval_rag.harness.core.parameters import Natural, preset_of, runs_with
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Answer, Passage
from lm_eval_rag.harness.generators import packages
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import EMBEDDED, ModelSpec
from lm_eval_rag.harness.plugin import arguments
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.methods.prompts import template

PRESET = {
    "retriever": "bm25",
    "retriever_k1": 1.2,
    "generator": "local-completions",
    "gen_model": "m",
    "gen_base_url": "http://u/v1",
}


@runs_with(**PRESET)
def method(query, *, n_rules: Natural = 3, prompt_file: str | None = None):
    found = yield from retrieve(query.text, 1)
    text = yield from generate(Prompt(template(prompt_file), query.text, found))
    return Answer(text, found)


def plain(query, *, n_rules: Natural = 3):
    yield from retrieve(query.text, 1)


def test_the_decorator_leaves_the_method_as_it_is():
    def bare(query):
        """Words."""

    assert runs_with(generator="x")(bare) is bare and preset_of(plain, {}) == {}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, set(PRESET)),
        ({"n_rules": 2, "gen_model": "other"}, set(PRESET)),
        ({"retriever": "bm25"}, set(PRESET)),  # its own: the options stay
        ({"retriever": "lucene"}, {"generator", "gen_model", "gen_base_url"}),
        ({"generator": "hf"}, {"retriever", "retriever_k1"}),
        ({"generator": "hf", "retriever": "lucene"}, set()),
    ],
)
def test_what_the_user_names_takes_its_presets_options_with_it(given, kept):
    assert preset_of(method, given) == {key: PRESET[key] for key in kept}


def test_the_preset_is_under_what_is_given():
    setup = read_arguments("m", method, {"retriever_b": 0.5, "gen_model": "other", "n_rules": 1})
    assert setup.corpora.retriever == "bm25" and setup.corpora.options == {"k1": 1.2, "b": 0.5}
    assert setup.generator.spec.name == "local-completions"
    assert setup.generator.spec.arguments == {"model": "other", "base_url": "http://u/v1"} and setup.parameters == {
        "n_rules": 1
    }
    assert setup.fingerprint != read_arguments("m", method, {"gen_model": "other", "n_rules": 1}).fingerprint


def test_without_a_preset_the_defaults_stay():
    setup = read_arguments("p", plain, {})
    assert (setup.corpora.retriever, dict(setup.corpora.options), setup.generator.spec.name) == ("bm25", {}, "tiny")


@pytest.mark.parametrize("key", ["gen_pretrained", "gen_peft"])
def test_a_checkpoint_needs_no_generator_beside_it(key, tmp_path):
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "tiny"}')
    for each in (method, plain):
        spec = read_arguments("m", each, {key: str(tmp_path)}).generator.spec
        assert spec.name == "hf" and spec.arguments == {key[4:]: str(tmp_path)}
    named = read_arguments("m", plain, {key: str(tmp_path), "generator": "tiny"}).generator.spec
    assert named.name == "tiny"


# --- checkpoints


def noted(folder, *, mode="rgft", prompt="ruleqa-1"):
    folder.mkdir(exist_ok=True)
    write_note(folder, Note("generator", mode, prompt))
    return {"gen_pretrained": str(folder)}


def test_a_checkpoint_for_another_wording_is_refused_when_it_is_given(tmp_path):
    shipped = template(None)
    parts = {name: getattr(shipped, name) for name in shipped.__dataclass_fields__}
    wording = tmp_path / "mine.toml"
    wording.write_text("\n".join(f"{name} = {json.dumps(text)}" for name, text in {**parts, "version": "mine"}.items()))
    read_arguments("m", method, noted(tmp_path / "c") | {"prompt_file": str(wording), "gen_pretrained": str(tmp_path)})
    with pytest.raises(UserError, match=r"tuned on prompts of version 'ruleqa-1'.*are of version 'mine'.*prompt_file="):
        read_arguments("m", method, noted(tmp_path / "c") | {"prompt_file": str(wording)})


def test_a_changed_part_without_a_version_is_refused_by_a_checkpoint_too(tmp_path):
    """The file says nothing of its version, so that it is found out when the method has read it, before it is asked."""
    (tmp_path / "mine.toml").write_text('answer = "So:"')
    given = noted(tmp_path / "c") | {"prompt_file": str(tmp_path / "mine.toml")}
    setup = read_arguments("m", method, given)
    with pytest.raises(UserError, match=r"version 'ruleqa-1'; the method's are of version 'ruleqa-1\+[0-9a-f]{8}'"):
        run(setup.bound(), ["a?"], corpus=[Passage("d", "a b")], generator=setup.generator)


@pytest.mark.parametrize(
    ("text", "message"), [(None, "does not exist"), ("= =", "is not a TOML text"), ("answer = 3", "no text: answer")]
)
@pytest.mark.parametrize("name", ["standard_prompting", "standard_rag", "rulerag_icl"])
def test_a_bad_prompt_file_ends_a_run_before_anything_is_asked(name, text, message, tmp_path):
    """There is neither corpus nor generator, which would be missed first if anything was asked."""
    path = tmp_path / "bad.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=message):
        run(method_of(name), ["a?"], prompt_file=str(path))


def test_a_checkpoint_for_another_wording_is_refused_when_it_is_asked(tmp_path):
    spec = read_arguments("m", method, noted(tmp_path / "c", prompt="old")).generator
    with pytest.raises(UserError, match=r"version 'old'; the method's are of version 'ruleqa-1'. Allowed is 'old'"):
        run(method, ["a?"], corpus=[Passage("d", "a b")], generator=spec)


def test_a_checkpoint_tuned_without_rules_is_given_none(tmp_path, caplog):
    given = noted(tmp_path / "c", mode="ssft")
    assert read_arguments("m", method, given).parameters == {"n_rules": 0} and not caplog.text
    assert read_arguments("m", method, {**given, "n_rules": 2}).parameters == {"n_rules": 2}
    assert "tuned without rules (ssft); n_rules=2" in caplog.text
    assert read_arguments("m", method, noted(tmp_path / "c")).parameters == {}


def test_a_damaged_note_says_so(tmp_path):
    (tmp_path / "rulerag.json").write_text("{")
    with pytest.raises(UserError, match=r"rulerag.json is damaged"):
        read_arguments("m", method, {"gen_pretrained": str(tmp_path)})


def test_an_embedded_checkpoint_that_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(EMBEDDED, "tiny_rgft", tmp_path / "none")
    with pytest.raises(UserError, match=r"generator=tiny_rgft is not in this installation.*gen_pretrained="):
        read_arguments("p", plain, {"generator": "tiny_rgft"})


def test_an_adapter_names_its_base(tmp_path):
    config = tmp_path / "adapter_config.json"
    for named, expected in (("tiny", str(EMBEDDED["tiny"])), ("org/base", "org/base")):
        config.write_text(json.dumps({"base_model_name_or_path": named}))
        spec = ModelSpec("hf", {"peft": str(tmp_path)})
        assert (spec.resolved["pretrained"], spec.resolved["peft"]) == (expected, str(tmp_path))
    assert ModelSpec("hf", {"peft": str(tmp_path), "pretrained": "x"}).resolved["pretrained"] == "x"
    config.unlink()
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UserError, match=r"is no PEFT adapter.*gen_pretrained="):
        ModelSpec("hf", {"peft": str(tmp_path)}).resolved  # noqa: B018


def test_a_revision_behind_the_name():
    found = ModelSpec("hf", {"pretrained": "org/name@v1"}).resolved
    assert (found["pretrained"], found["revision"]) == ("org/name", "v1")
    assert "revision" not in ModelSpec("hf", {"pretrained": "org/name"}).resolved


def test_a_note_on_the_hub_is_read_and_a_missing_one_is_none(monkeypatch, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    noted(tmp_path / "c", prompt="hub-1")
    asked = []

    def download(name, *, revision, allow_patterns, **others):
        asked.append((name, allow_patterns, revision))
        return str(tmp_path / "c")

    monkeypatch.setattr(hub, "snapshot_download", download)
    assert LMGenerator(ModelSpec("hf", {"pretrained": "org/name@v1"})).prompt_version == "hub-1"
    assert asked == [("org/name", ["rulerag.json"], "v1")]

    def missing(*arguments, **options):
        raise hub.errors.LocalEntryNotFoundError("offline")

    monkeypatch.setattr(hub, "snapshot_download", missing)
    assert ModelSpec("hf", {"pretrained": "org/name"}).note is None


def test_without_torch_the_extra_is_named_before_anything_runs(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name in ("torch", "transformers") else find(name))
    with pytest.raises(UserError, match=r'generator=hf needs torch.*pip install -e ".*\[hf\]"'):
        read_arguments("m", method, {"gen_pretrained": "org/name"})
    assert arguments.read_arguments("p", plain, {})  # a method that may need no generator is not stopped
