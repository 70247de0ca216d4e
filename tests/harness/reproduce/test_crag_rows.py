"""The rows of CRAG's table 2 as commands: each says what its numbers hang on, and lm_eval's own parser reads it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.plugin.arguments import LM_EVALS, read_arguments
from lm_eval_rag.harness.reproduce.reproduce_cli import reproduce_main
from lm_eval_rag.harness.reproduce.row_results import corpora_of
from lm_eval_rag.harness.reproduce.running import jobs
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.table_spec import Row
from lm_eval_rag.harness.scoring.judge.choose import judges_of
from lm_eval_rag.tasks.crag.build import SPECS

BOARDS = Path(__file__).parents[3] / "leaderboards"
TABLE = read_table(BOARDS / "reproduce" / "crag_table2.toml")
ROWS = {row.name: row for row in TABLE.rows if row.model}
LARGE = {name: row for name, row in ROWS.items() if row.tasks != ("crag_demo",)}
MODULES = ("prompt_refinement", "attribute_predictor", "table_extractor", "calculator", "reasoning", "false_premise",
           "knowledge_extractor", "knowledge_graph")  # fmt: skip
LADDER = ("chunks", "prompt", "attributes", "tables", "calculator", "reasoning", "premise", "knowledge", "graph")
BUILD = "lm-eval-rag build crag_kg"


def parsed(row: Row) -> tuple[list[str], Any]:
    """What comes before the evaluation, and what lm_eval's command line makes of the printed command."""
    from lm_eval._cli.harness import HarnessCLI
    from lm_eval.config.evaluate_config import EvaluatorConfig

    (job,) = jobs(row)
    *before, command = job.commands(Path("out"))
    words = shlex.split(command)
    assert words[:2] == ["lm_eval", "run"]
    return before, EvaluatorConfig.from_cli(HarnessCLI()._parser.parse_args(words[1:]))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.mark.parametrize("row", LARGE.values(), ids=LARGE)
def test_a_paper_row_states_split_judge_chat_and_graph(row: Row) -> None:
    from lm_eval.api.registry import get_model

    import lm_eval_rag

    lm_eval_rag.register()
    before, config = parsed(row)
    (task,) = config.tasks
    assert (config.metadata["release"], config.metadata["split"]) == ("v4", 1)
    (judge,) = judges_of(config.metadata)
    assert (config.metadata["judge_model"], "gpt-4" in judge.name) == ("gpt-4-0125-preview", True)
    assert config.apply_chat_template is True and "chat" not in config.model_args
    graph = SPECS[task].graph
    assert before == ([BUILD] if graph else []) and (BUILD in row.needs) == graph
    if row.model == "crag_hybrid":
        assert config.model_args["knowledge_graph"] is graph
    others = {key: value for key, value in config.model_args.items() if key not in LM_EVALS}
    method: Any = get_model(row.model).method
    setup = read_arguments(row.model, method, others)
    assert {**setup.parameters}.items() >= {k: v for k, v in row.arguments.items() if k in MODULES}.items()


@pytest.mark.parametrize("row", LARGE.values(), ids=LARGE)
def test_a_paper_row_states_weights_that_fit_its_gpus(row: Row) -> None:
    """Weights in GB against the memory that vLLM takes, with room for at least two prompts of full length."""
    weights = float(re.search(r"(\d+) GB of weights", row.needs)[1])  # type: ignore[index]
    parts = 80 if "70B" in row.needs else 32  # layers; each has 8 heads of 128 numbers for keys and as many for values
    prompts = 2 * row.arguments["gen_max_model_len"] * parts * 8 * 128 * 2 * 2 / 1e9
    words = {"two": 2, "one": 1, "4": 4, "a GPU": 1}
    offers = re.findall(r"(4|two|one|a GPU)(?: GPUs)? of (\d+) GB(?! of weights)", row.needs)
    assert offers
    for number, size in offers:
        assert words[number] * int(size) * row.arguments["gen_gpu_memory_utilization"] > weights + prompts, number
    assert words[offers[0][0]] == row.arguments.get("gen_tensor_parallel_size", 1)
    quantised = "GPTQ" in row.arguments["gen_pretrained"]
    assert quantised == (row.published.get("generator") == "Llama3-70B-GPTQ")


def test_each_row_of_the_ladder_adds_one_module_and_is_published() -> None:
    rows = [ROWS[f"paper-{step}"] for step in LADDER]
    for number, row in enumerate(rows):
        off = {module for module in MODULES if row.arguments.get(module) is False}
        assert off == set(MODULES[number:]), row.name
        assert row.arguments["retriever_model"] == "sentence-transformers/sentence-t5-large"
        assert row.tasks == (("crag_task2",) if row.name == "paper-graph" else ("crag_task1",))
        assert row.published["method"] in row.label
    assert len({row.arguments.get("gen_pretrained") for row in rows}) == 2  # 8B, then the quantised 70B
    assert [row.name for row in TABLE.rows if not row.model] == ["paper-baseline"]
    official = {row.model for name, row in LARGE.items() if name.startswith("official")}
    assert official == {"crag_llm_baseline", "crag_rag_baseline", "crag_kg_baseline"}


def test_rows_that_run_here_state_their_judge_and_their_form() -> None:
    for name, row in ROWS.items():
        if name not in LARGE:
            _, config = parsed(row)
            assert config.metadata["judge"] == "rules", name
            assert bool(config.apply_chat_template) == (row.arguments["generator"] != "tiny_crag"), name


def test_a_dry_run_prints_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = {"tables": BOARDS / "reproduce", "published": BOARDS / "published"}
    assert reproduce_main(["crag_table2", "--dry-run", "--out", str(tmp_path)], **folders, build=str) == 0  # type: ignore[arg-type]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1].rstrip(":") for line in lines if line.startswith("# ") and ":" in line] == list(ROWS)
    head, command = lines.index("# the questions that are sampled"), shlex.split(lines[1])
    assert all(line.startswith("#") for line in lines[:head])
    assert command == ["#", "lm-eval-rag", "reproduce", "crag_table2", "--only", "*", "--out", str(tmp_path)]
    assert sum(line.startswith("lm_eval run ") for line in lines) == len(ROWS)
    assert lines.count(BUILD) == 1  # several rows need it, and a line is printed once


def test_a_sample_of_questions_with_pages_of_their_own_is_the_same_data() -> None:
    docs = [{"corpus": "crag_demo/03b6#finance-1"}, {"corpus": "crag_demo/03b6#movie-2"}]
    assert corpora_of(docs) == corpora_of(docs[:1]) == ("crag_demo/03b6",)
    assert corpora_of([{"corpus": "ruleqa_i/58"}, {"corpus": "ruleqa_f/71"}]) == ("ruleqa_f/71", "ruleqa_i/58")
