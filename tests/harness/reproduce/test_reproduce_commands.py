"""Every command that a page prints is one that runs: lm_eval's own parser reads it, and every name in it is checked."""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.core.parameters import defaults
from lm_eval_rag.harness.plugin.arguments import LM_EVALS, read_arguments
from lm_eval_rag.harness.plugin.retrieve_cli import retriever_options
from lm_eval_rag.harness.reproduce.check_table import check_retriever
from lm_eval_rag.harness.reproduce.running import jobs
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.table_spec import Row, Table
from lm_eval_rag.harness.scoring.judge.choose import judges_of, rationale_judges
from lm_eval_rag.tasks.wikipedia.specs import TASKS, choice_of

FOLDER = Path(__file__).parents[3] / "leaderboards" / "reproduce"
PROTOCOLS = (*(f"crp_table{n}" for n in range(1, 6)), "flashrag", "hipporag", "search_r1")
TABLES = {name: read_table(FOLDER / f"{name}.toml") for name in PROTOCOLS}
ROWS = [(table, row) for table in TABLES.values() for row in table.rows if row.model]
E5_TABLES = ("flashrag", "search_r1")


def parsed(command: str) -> Any:
    """What lm_eval's command line makes of a printed command."""
    from lm_eval._cli.harness import HarnessCLI
    from lm_eval.config.evaluate_config import EvaluatorConfig

    words = shlex.split(command)
    assert words[:2] == ["lm_eval", "run"]
    namespace = HarnessCLI()._parser.parse_args(words[1:])
    return EvaluatorConfig.from_cli(namespace)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[f"{table.name}-{row.name}" for table, row in ROWS])
def test_a_command_is_read_as_the_row_is_meant(
    table: Table, row: Row, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    if "prompt_file" in row.arguments:  # what the first of its commands writes
        (tmp_path / row.arguments["prompt_file"]).write_text('version = "theirs"')
    from lm_eval.api.registry import get_model

    import lm_eval_rag

    lm_eval_rag.register()
    for job in jobs(row):
        *before, command = job.commands(Path("out"))
        assert before == list(row.before)
        config = parsed(command)
        assert (config.model, list(config.tasks)) == (row.model, list(job.tasks))
        given = {key: value for key, value in job.arguments.items() if key != "batch_size"}
        assert {key: config.model_args[key] for key in given} == given  # prefixes with their spaces, numbers, booleans
        assert bool(config.apply_chat_template) == row.chat and (config.system_instruction or "") == row.system
        assert dict(config.gen_kwargs or {}) == dict(row.gen_kwargs) and config.limit == row.first
        assert {key: config.metadata[key] for key in job.metadata} == job.metadata
        method: Any = get_model(row.model).method
        others = {key: value for key, value in config.model_args.items() if key not in LM_EVALS}
        setup = read_arguments(row.model, method, others)
        check_retriever(setup.corpora.retriever, setup.corpora.options)
        assert set(setup.parameters) <= set(defaults(method))
        rationale_judges(config.metadata, judges_of(config.metadata))
        for task in job.tasks:
            assert task in TASKS and choice_of(task, job.metadata.get("corpus"))


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[f"{table.name}-{row.name}" for table, row in ROWS])
def test_what_runs_here_needs_nothing_and_is_not_compared(table: Table, row: Row) -> None:
    """Rows with a large model say what they need; rows of the embedded one say why they check no published number."""
    large = row.arguments.get("generator") not in ("tiny", "dummy")
    assert bool(row.needs) >= large
    if not row.needs:
        assert bool(row.differs) != bool(row.published)
    assert table.verdicts


def test_large_rows_say_all_that_the_numbers_hang_on() -> None:
    """Corpus, form of the prompt, retriever with prefixes, depth, length of replies."""
    for table, row in ROWS:
        arguments = row.arguments
        if arguments.get("generator") in ("tiny", "dummy"):
            continue
        where = f"{table.name}, {row.name}"
        assert row.chat or arguments.get("chat") is False or "chat" in str(arguments["generator"]), where
        ends = {"max_gen_toks", "thought_tokens", "segment_tokens", "turn_tokens", "step_tokens", "answer_tokens"}
        stated = ends & {*arguments, *row.gen_kwargs, *defaults_of(row)}
        assert stated, where
        if row.model in ("standard_prompting", "tree_of_thoughts"):
            continue
        if row.model != "raptor":  # which takes nodes up to a number of tokens
            assert "k" in arguments and arguments.get("documents", arguments["k"]) == arguments["k"], where
        assert set(row.tasks) == set(row.corpora) or all(len(TASKS[task].choices) == 1 for task in row.tasks), where
        if table.name in E5_TABLES:
            assert arguments["retriever_model"] == "intfloat/e5-base-v2", where
            prefixes = arguments["retriever_query_prefix"], arguments["retriever_document_prefix"]
            assert prefixes == ("query: ", "passage: "), where


def test_vectors_are_those_of_the_command_that_encodes_ahead() -> None:
    """The options of ``lm-eval-rag encode`` are those of the row's retriever, and its corpora the row's.

    Every row that searches millions of passages beside vLLM has this command: both would want the card at once. The
    two that search what they have prepared of them have not.
    """
    encoded: dict[tuple[str, str], set[str]] = defaultdict(set)
    for table, row in ROWS:
        for line in row.before:
            words = shlex.split(line)
            if words[:2] != ["lm-eval-rag", "encode"]:
                continue
            given = dict(zip(words[2::2], words[3::2], strict=True))
            options = {key: value for key, value in row.arguments.items() if key.startswith("retriever_")}
            wanted = {key.removeprefix("retriever_"): value for key, value in options.items()}
            assert retriever_options(given["--retriever-args"]) == wanted, row.name
            (task,) = given["--tasks"].split(",")
            corpus = json.loads(given.get("--metadata", "{}")).get("corpus")
            encoded[table.name, row.name].add(choice_of(task, corpus)[0])
    beside = {
        (table.name, row.name): set(row.corpora.values())
        for table, row in ROWS
        if {"wiki18_100w", "fullwiki", "beir"} & set(row.corpora.values())
        and (row.arguments["generator"], row.arguments.get("retriever")) == ("vllm", "dense")
        and row.model not in ("raptor", "graphrag")
    }
    assert encoded == beside and len(beside) == 5 + 8 + 6


QUESTIONS = {"search_r1": 37_446, "crp_table1": 46_935} | {f"crp_table{n}": 17_404 for n in range(2, 6)}
LARGE = [(table, row) for table, row in ROWS if row.needs and row.arguments["generator"] != "dummy"]


@pytest.mark.parametrize(("table", "row"), LARGE, ids=[f"{table.name}-{row.name}" for table, row in LARGE])
def test_rows_of_large_models_say_how_many_calls_they_make(table: Table, row: Row) -> None:
    """Those of all questions, and of one where it takes several; both numbers agree."""
    stated = re.search(r"([\d,.]+)( million)? calls of the model(?: \((\d+) a question\))?", row.needs)
    assert stated
    number, million, each = stated.groups()
    if each:
        digit = 10**5 if million else 10**3
        total = float(number.replace(",", "")) * (10**6 if million else 1)
        assert total == pytest.approx(int(each) * QUESTIONS.get(table.name, 4000), abs=digit / 2)


def test_crp_rags_rows_have_the_most_calls_of_their_parameters() -> None:
    """docs/reasoning.md derives them; a server gives no log-probabilities, and a perplexity is one call more."""
    for table, row in LARGE:
        if row.model != "crp_rag" or row.name not in ("glm-crp", "glm9b-crp", "glm-full", "glm-graph"):
            continue
        values = {**defaults_of(row), **row.arguments}
        scored = row.arguments["generator"] == "vllm"
        most = (
            values["max_nodes"] * (2 * values["samples"] + 1 + scored) + values["max_paths"] * values["max_depth"] + 1
        )
        assert f"({most + bool(row.arguments.get('perplexity'))} a question)" in row.needs, f"{table.name}, {row.name}"


@pytest.mark.parametrize(("table", "row"), LARGE, ids=[f"{table.name}-{row.name}" for table, row in LARGE])
def test_rows_of_large_models_name_their_extras(table: Table, row: Row) -> None:
    """And vLLM leaves memory of the GPU to an encoder beside it."""
    local, dense = row.arguments["generator"] == "vllm", row.arguments.get("retriever") == "dense"
    extras = {"vllm": local, "dense": dense, **{name: row.model == name for name in ("raptor", "graphrag")}}
    (named,) = re.findall(r"the extras? ([a-z, ]+?)(?:,? and a GPU|, and|;|$)", row.needs) or [""]
    assert set(re.split(", | and ", named)) - {""} == {name for name, needed in extras.items() if needed}
    assert (row.arguments.get("gen_gpu_memory_utilization") == 0.8) == (local and dense)


def test_what_writes_no_rationale_has_no_command_in_the_table_of_rationales() -> None:
    rows = {row.published["method"]: row for row in TABLES["crp_table4"].rows if row.published and not row.model}
    assert set(rows) == {"RAPTOR", "GraphRAG", "Think-then-Act"}
    assert all(method in " ".join(TABLES["crp_table4"].notes) for method in rows)


def test_every_baseline_of_crp_rags_table_has_its_claim() -> None:
    table = TABLES["crp_table1"]
    rows = {row.name for row in table.rows if row.published}
    assert {name for claim in table.claims for name in claim.worse if name in rows} == rows - {"glm-crp"}


def test_published_only_are_methods_that_are_not_here() -> None:
    waiting = {row.published["method"] for row in TABLES["hipporag"].rows if not row.model}
    encoders = {"GTE-Qwen2-7B-Instruct", "GritLM-7B", "NV-Embed-v2 (7B)"}
    assert waiting == {*encoders, "HippoRAG", "HippoRAG (reproduced)", "HippoRAG 2", "LightRAG"}


def test_both_rows_of_raptor_are_one_run() -> None:
    """The second finds the calls of the first in the journal, which is named by the arguments."""
    first, second = (row for row in TABLES["hipporag"].rows if row.model == "raptor")
    ((one,), (other,)) = (jobs(first), jobs(second))
    assert one.name(None) == other.name(None)


def defaults_of(row: Row) -> dict[str, Any]:
    from lm_eval.api.registry import get_model

    return defaults(get_model(row.model).method)


def test_search_r1s_checkpoints_get_the_prompt_that_the_script_before_them_writes() -> None:
    rows = [row for row in TABLES["search_r1"].rows if row.arguments.get("protocol") == "search_r1"]
    assert len(rows) == 4
    for row in rows:
        assert row.before[0] == "python scripts/search_r1_prompt.py" and row.chat
        script = (Path(__file__).parents[3] / row.before[0].split()[1]).read_text(encoding="utf-8")
        assert f'default=Path("{row.arguments["prompt_file"]}")' in script and row.arguments["prompt_file"] in row.needs


def test_flashrags_protocol() -> None:
    """Its docs: the first 1,000 questions, 32 new tokens, five documents; a checkpoint for Self-RAG."""
    rows = [row for row in TABLES["flashrag"].rows if row.published]
    assert {row.published["method"] for row in rows} == {
        "Naive Generation", "Standard RAG", "Iter-Retgen", "IRCoT", "Self-RAG"
    }  # fmt: skip
    for row in rows:
        assert row.first == 1000 and row.gen_kwargs == {"max_gen_toks": 32}
        assert row.tasks == ("rag_nq", "rag_triviaqa", "hotpotqa", "2wikimultihopqa")
        assert set(row.corpora.values()) == {"wiki18_100w"} and row.arguments.get("k", 5) == 5
        self_rag = row.model == "self_rag"
        model = "selfrag/selfrag_llama2_7b" if self_rag else "meta-llama/Meta-Llama-3-8B-Instruct"
        assert row.arguments["gen_pretrained"] == model


@pytest.mark.parametrize("name", E5_TABLES)
def test_tables_over_flashrags_passages_say_that_their_titles_have_quotes(name: str) -> None:
    notes = " ".join(TABLES[name].notes)
    assert "passages have the title in quotes when they are encoded" in notes
    assert "retriever_index_ids=rows. Its vectors are of passages with the title in quotes." in notes


def test_search_r1s_table_says_what_is_not_known_of_musiques_aliases() -> None:
    assert "official aliases; whether the paper's gold answers" in " ".join(TABLES["search_r1"].notes)


def test_tables_with_crp_rags_em_say_that_ours_is_stricter() -> None:
    found = [table.name for table in TABLES.values() if "em_contains" in table.metrics]
    assert found == ["crp_table1", "crp_table2", "crp_table5"]
    for name in found:
        assert "em_contains stands beside the paper's EM and is stricter." in " ".join(TABLES[name].notes)


def test_crp_rags_table_names_the_cells_that_are_not_its_own() -> None:
    notes = " ".join(TABLES["crp_table1"].notes)
    for cell in ("45.8, 61.1, 73.4", "36.0, 47.4, 58.5", "71.5", "60.7", "text-davinci-003", "Codex"):
        assert cell in notes
