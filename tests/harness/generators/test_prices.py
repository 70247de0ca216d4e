"""Prices by argument and by table."""

import json

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.generators.spec import ModelSpec

CHAT = "local-chat-completions"
URL = {"model": "gpt-4o-mini", "base_url": "http://localhost:1/v1"}
TOML = '["gpt-4o-mini"]\nin = 0.15\nout = 0.6\n["org/model"]\nin = 1\nout = 2\n'
JSON = json.dumps({"gpt-4o-mini": {"in": 0.15, "out": 0.6}})


@pytest.mark.parametrize(("name", "text"), [("p.toml", TOML), ("P.JSON", JSON)])
@pytest.mark.parametrize(
    ("arguments", "prices"),
    [
        ({}, (0.15, 0.6)),
        ({"price_in": 3}, (3.0, 0.6)),
        ({"price_out": 0}, (0.15, 0.0)),
        ({"price_in": 3, "price_out": 4.5}, (3.0, 4.5)),
        ({"price_in": 3, "price_out": 4, "model": "not in the table"}, (3.0, 4.0)),
    ],
)
def test_a_table_and_arguments_that_win_over_it(tmp_path, name, text, arguments, prices):
    (tmp_path / name).write_text(text)
    spec = ModelSpec(CHAT, {**URL, "prices": str(tmp_path / name), **arguments})
    spec.check()
    assert spec.prices == prices


def test_a_local_model_is_found_by_its_checkpoint(tmp_path):
    (tmp_path / "p.toml").write_text(TOML)
    assert ModelSpec("hf", {"pretrained": "org/model", "prices": str(tmp_path / "p.toml")}).prices == (1.0, 2.0)


def test_without_prices_there_is_no_cost():
    assert ModelSpec(CHAT, URL).prices is None
    assert ModelSpec(CHAT, {**URL, "price_in": 2}).prices == (2.0, 0.0)


def test_prices_change_no_answer_and_no_fingerprint(tmp_path):
    (tmp_path / "p.toml").write_text(TOML)
    identities = [ModelSpec(CHAT, {**URL, **more}).identity for more in ({}, {"prices": str(tmp_path / "p.toml")})]
    assert digest(identities[0]) == digest(identities[1])


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "p.toml",
            "[other]\nin = 1\nout = 1\n",
            r"Unknown model in gen_prices= 'gpt-4o-mini'.*Add it",
        ),
        ("p.toml", "[x", r"cannot be read: "),
        ("p.json", "[1]", "is not a table of models"),
        ("p.json", '{"gpt-4o-mini": {"in": 1}}', "Needed: a file of the form"),
        ("p.json", '{"gpt-4o-mini": {"in": -1, "out": 1}}', "Needed: a file of the form"),
        ("p.json", '{"gpt-4o-mini": {"in": NaN, "out": 1}}', "Needed: a file of the form"),
        ("p.yaml", "", "is not a file of prices"),
        ("p.toml", None, "it does not exist"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, name, text, says):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=says) as raised:
        ModelSpec(CHAT, {**URL, "prices": str(tmp_path / name)}).check()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("value", [-1, True, "much", float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["price_in", "price_out"])
def test_prices_that_are_none(name, value):
    with pytest.raises(UserError, match=f"gen_{name}={value!r} is not allowed: give US dollars per million tokens"):
        ModelSpec(CHAT, {**URL, name: value}).check()
