"""Cards and terms: what the Hub's own reader makes of them, which sources are open, which bytes are secrets."""

from importlib.resources import files

import pytest
from huggingface_hub import DatasetCard, ModelCard

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.sources import Source, read_manifest
from lm_eval_rag.harness.hub import terms
from lm_eval_rag.harness.hub.cards import DataSet, configurations, dataset_card
from lm_eval_rag.harness.hub.contents import Item, refuse_secrets
from lm_eval_rag.tasks.ruleqa.published import TABLES, offered


def made(licence, stated):
    return Source("a/b", "owner/name", "c" * 40, "a/b", "0" * 64, 1, licence, stated)


@pytest.mark.parametrize(
    ("licence", "stated", "identifier"),
    [
        ("CC0 (Wikidata)", "none stated in the repository", "cc0-1.0"),
        ("CC BY (YAGO)", "none stated in the repository", "cc"),
        ("CC BY 2.5 (Freebase)", "none stated in the repository", "cc-by-2.5"),
        ("MIT (repository)", "Wikidata CC0", "mit"),
        ("Apache-2.0 (repository)", "Freebase CC BY 2.5", "apache-2.0"),
        ("CC BY-NC 4.0", "", None),
        ("CC BY-ND", "", None),
        ("MITRE", "", None),
        ("none stated", "not stated", None),
        ("MIT", "research use only", None),
        ("Harvard Dataverse doi:10.7910/DVN/28075", "research and educational use only", None),
    ],
)
def test_licences(licence, stated, identifier):
    assert terms.identifier(made(licence, stated)) == identifier


def test_the_manifest_of_ruleqa():
    manifest = read_manifest(files("lm_eval_rag.tasks.ruleqa") / "sources.toml")
    held = {source.path.split("/")[0] for source in terms.restricted(manifest.values())}
    assert held == {"icews14", "nell995"}


def test_what_is_offered():
    sets = offered()
    assert [one.name for one in sets["ruleqa"]] == [f"ruleqa_{letter}" for letter in "iywfn"]
    assert set(sets) - {"ruleqa"} == {
        one for letter in "iywfn" for one in (f"ruleqa_{letter}", f"ruleqa_{letter}_fresh")
    }
    for name in ("ruleqa_i", "ruleqa_i_fresh", "ruleqa_n"):
        with pytest.raises(UserError, match=rf"{name} .*--accept-terms"):
            terms.check({name: sets[name][0].sources.values()}, accepted=False)
    open_sets = {name: sets[name][0].sources.values() for name in ("ruleqa_y", "ruleqa_w", "ruleqa_f")}
    terms.check(open_sets, accepted=False)
    assert terms.licence(open_sets["ruleqa_w"]) == {"license": ["cc0-1.0", "mit"]}
    assert {"apache-2.0", "cc-by-2.5"} <= set(terms.licence(open_sets["ruleqa_f"])["license"])
    assert terms.licence([]) == {"license": "apache-2.0"}


def test_every_table_has_a_configuration():
    found = configurations(["ruleqa_y", "ruleqa_w"])
    paths = [part["path"] for one in found for part in one["data_files"]]
    assert sorted(paths) == sorted(f"{name}/{table}.parquet" for name in ("ruleqa_y", "ruleqa_w") for table in TABLES)
    assert [one["config_name"] for one in found if one.get("default")] == ["ruleqa_y"]
    assert len({one["config_name"] for one in found}) == len(found)


@pytest.mark.parametrize(("rows", "size"), [(999, "n<1K"), (1000, "1K<n<10K"), (500_000, "100K<n<1M")])
def test_the_hubs_reader_reads_the_card(rows, size):
    meta = {"counts": {"corpus": rows, **dict.fromkeys(TABLES[1:], 0)}, "hash": "abc"}
    one = DataSet("ruleqa_y", "YAGO", {"y": made("CC BY (YAGO)", "none stated")}, lambda: "")
    card = DatasetCard(dataset_card({"ruleqa_y": (one, meta)}, "acme/ruleqa", "v1"))
    assert card.data.license == "cc" and card.data.size_categories == size
    assert card.data.to_dict()["configs"][0]["config_name"] == "ruleqa_y"
    assert '"dataset": "acme/ruleqa@v1"' in card.text and f"| {rows} |" in card.text


def test_the_hubs_reader_reads_a_models_card(tmp_path):
    from lm_eval_rag.harness.hub.measured import Measured
    from lm_eval_rag.harness.hub.model_card import About, model_card

    rows = [Measured("ruleqa_i", "em", 0.25, 0.01, 100, 100), Measured("ruleqa_y", "em", 1, None, 5, 10)]
    about = About(tmp_path, "acme/tiny", None, None, rows, "mit", "acme/base", ["acme/ruleqa@v1"], [])
    data = ModelCard(model_card(about)).data
    assert (data.license, data.base_model, data.datasets, data.model_name) == (
        "mit",
        "acme/base",
        ["acme/ruleqa"],
        "tiny",
    )
    measured = [(one.dataset_type, one.dataset_name, one.metric_type, one.metric_value) for one in data.eval_results]
    assert measured == [
        ("ruleqa_i", "ruleqa_i", "em", 0.25),
        ("ruleqa_y", "ruleqa_y (first 5 of 10 questions)", "em", 1),
    ]


SECRETS = {
    "Hugging Face": "hf_" + "aB3" * 12,
    "API key": "sk-" + "aB3_" * 8,
    "GitHub": "ghp_" + "a1" * 18,
    "GitLab": "glpat-" + "a1" * 12,
    "AWS": "AKIA" + "A1B2" * 4,
    "Google": "AIza" + "a1b2c" * 7,
    "Slack": "xoxb-" + "12345" * 3,
    "private key": "-----BEGIN RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("kind", SECRETS)
def test_secrets_are_found_and_not_repeated(kind, tmp_path):
    path = tmp_path / "notes.json"
    path.write_text("x" * 9 + '"' + SECRETS[kind])
    for item in (Item.of("notes.json", path), Item.of("notes.json", path.read_bytes())):
        with pytest.raises(UserError, match=rf"notes\.json, byte 10: an? .*{kind}") as raised:
            refuse_secrets([Item.of("empty", b""), item])
        assert SECRETS[kind] not in str(raised.value)


def test_values_of_this_process_are_secrets_and_words_are_not(monkeypatch):
    words = Item.of("a.txt", b"the task-specific-and-risk-averse-model hf_hub_download AKIA sk-learn")
    refuse_secrets([words])
    for name, value in (("MY_SERVICE_TOKEN", "correct horse battery"), ("HF_TOKEN", "no_known_form_at_all")):
        monkeypatch.setenv(name, value)
        with pytest.raises(UserError, match=rf"the value of {name}"):
            refuse_secrets([Item.of("a.txt", b"so " + value.encode())])
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.setenv("TOKEN_FILE", "/home/somebody/token")
    refuse_secrets([Item.of("a.txt", b"false /home/somebody/token")])
