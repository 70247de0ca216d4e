"""The rows of CRAG's table 2 as commands: each says what its numbers hang on, and lm_eval's own parser reads it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.plugin.arguments import LM_EVALS, read_arguments
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.reproduce.reproduce_cli import reproduce_main
from lm_eval_rag.harness.reproduce.row_results import corpora_of
from lm_eval_rag.harness.reproduce.running import jobs
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.table_spec import Row
from lm_eval_rag.harness.scoring.judge.choose import judges_of
from lm_eval_rag.harness.scoring.judge.pinned import API_JUDGES, KEYS, OPEN
from lm_eval_rag.tasks.crag.build import SPECS
from lm_eval_rag.tasks.crag.task import questions
from lm_eval_rag.tasks.crag_demo.build import build as build_demo

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


def assert_can_be_asked(metadata: dict[str, Any]) -> None:
    """The judge is the open-weights one, or a model of the table of those behind APIs."""
    assert len(judges_of(metadata)) == 1
    named = {name: dict(pair.split("=", 1) for pair in given.split(",")) for name, given in API_JUDGES.items()}
    behind = named.get(metadata["judge"], {}).get("model")
    assert metadata["judge"] == OPEN or (behind and metadata["judge_model"] == behind)


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
    assert_can_be_asked(config.metadata)
    assert "the judge (open weights" in row.needs or KEYS[config.metadata["judge"]] in row.needs
    assert config.apply_chat_template is True and "chat" not in config.model_args
    graph = SPECS[task].graph
    assert before == ([BUILD] if graph else []) and (BUILD in row.needs) == graph
    assert row.arguments.get("graph") == ("published" if graph else None)  # section 4.5: the official baseline's rules
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
    assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", row.arguments["gen_pretrained"])
    assert "UNVERIFIED" in row.needs  # nobody here has opened these checkpoints
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
        assert row.arguments["extractor"] == "faithful"  # trafilatura, section 4.1
        predicts = row.arguments.get("attribute_predictor", True)
        assert row.arguments.get("demonstrations_file") == ("official" if predicts else None), row.name
        assert row.arguments.get("slow_changing") == ("static" if predicts else None), row.name
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


def dry_run(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    """The lines of a dry run."""
    folders = {"tables": BOARDS / "reproduce", "published": BOARDS / "published"}
    assert reproduce_main(["crag_table2", "--dry-run", *argv], **folders, build=str) == 0  # type: ignore[arg-type]
    return capsys.readouterr().out.splitlines()


def test_a_dry_run_prints_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = dry_run(capsys, "--out", str(tmp_path))
    stated = [re.match(r"# ([\w-]+): (to run|needs )", line) for line in lines]
    assert [match[1] for match in stated if match] == list(ROWS)
    assert "# the questions that are sampled" in lines
    assert sum(line.startswith("lm_eval run ") for line in lines) == len(ROWS)
    assert lines.count(BUILD) == 1  # several rows need it, and a line is printed once
    assert all(line.startswith(("# ", "#   ", "lm_eval run ", "lm-eval-rag ")) for line in lines)


def test_a_dry_run_says_which_command_shares_calls_and_what_to_know(capsys: pytest.CaptureFixture[str]) -> None:
    lines = dry_run(capsys, "--only", "paper-*")
    assert lines[0].endswith("which shares equal calls between rows, sampled ones included; single lines do not:")
    assert lines[1] == "#   lm-eval-rag reproduce crag_table2 --only 'paper-*'"
    text = " ".join(line.lstrip("# ") for line in lines)
    for note in TABLE.running:
        assert note in text
    assert '"judge": "openai-chat-completions", "judge_model": "NAME"' in text and "gpt-4-0125-preview" in text
    everything = dry_run(capsys)
    shared = [line for line in everything if line.startswith("#   lm-eval-rag reproduce crag_table2 ")]
    kinds = ("tiny", "smollm2", "option", "official", "paper")
    assert shared == [f"#   lm-eval-rag reproduce crag_table2 --only '{kind}-*'" for kind in kinds]
    here = dry_run(capsys, "--only", "tiny-graph")  # one row, which shares with none and needs nothing
    assert here[0] == "# tiny-graph: to run" and not any(note.split(":")[0] in here[0] for note in TABLE.running)
    elsewhere = dry_run(capsys, "--only", "tiny-graph", "tiny-chunks", "--out", "other")
    assert "#   lm-eval-rag reproduce crag_table2 --out other --only tiny-graph tiny-chunks" in elsewhere


class Formless:
    """Says what keeps a question going, and never keeps to the reasoning form: as many generations as there can be."""

    fingerprint, batch = "formless", 8

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def generate(self, prompts: Sequence[str], decoding: Any, samples: Sequence[int]) -> list[str]:
        self.asked += [(prompt, decoding, sample) for prompt, sample in zip(prompts, samples, strict=True)]
        return [self._reply(prompt) for prompt in prompts]

    def _reply(self, prompt: str) -> str:
        ends = {"Static or dynamic:": "static", "Expression:": "10 / 4", "JSON:": FIELDS}
        formless = f"no form {len(prompt)} {hash(prompt)}"  # another for each prompt, as its summary is then
        return next((reply for end, reply in ends.items() if prompt.endswith(end)), formless)

    def loglikelihood(self, pairs: Any) -> Any:
        raise AssertionError

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def room(self, max_tokens: int) -> int:
        return 6_000


FIELDS = '{"domain": "movie", "movie_name": "The Lanternwright", "movie_aspect": "revenue"}'  # known by all rules
RUNS = ("retriever", "retriever_model", "extractor")  # of a row; here BM25 and resiliparse serve


def test_a_row_states_how_many_generations_a_question_takes_at_most() -> None:
    """Each row by itself, and all of the ladder where they share equal calls."""
    pytest.importorskip("blingfire")
    pytest.importorskip("resiliparse")
    doc = questions(build_demo())["test"][0]
    asked_by_all: set[tuple[Any, ...]] = set()
    alone = 0
    for name, row in LARGE.items():
        given = {key: value for key, value in row.arguments.items() if key not in RUNS and key.split("_")[0] != "gen"}
        del given["generator"]
        model, graph = Formless(), SPECS[row.tasks[0]].graph
        if row.model == "crag_hybrid":
            given["knowledge_graph"] = graph
        query = Query(doc["id"], doc["query"], doc["time"], doc["corpus"])
        run(method_of(row.model), [query], generator=model, journal=None, **given)
        said = re.search(r"(?:at most )?(\d+) generations? for each question", row.needs)
        assert said and int(said[1]) == len(model.asked), name
        if name.startswith("paper-"):
            alone += len(model.asked)
            asked_by_all |= {(row.arguments["gen_pretrained"], *call) for call in model.asked}
    shared = len(asked_by_all)
    assert (shared, alone) == (29, 76)
    stated = f"at most {shared} for each question where they share calls ({shared * 1335:,} for 1,335 questions)"
    assert stated in TABLE.running[0] and f"at most {alone} ({alone * 1335:,})" in TABLE.running[0]
    assert f"at most {shared} generations" in " ".join(TABLE.notes) and f"and {alone} where" in " ".join(TABLE.notes)


def method_of(model: str) -> Any:
    """The method of that name."""
    from lm_eval.api.registry import get_model

    import lm_eval_rag

    lm_eval_rag.register()
    return get_model(model).method


def test_a_sample_of_questions_with_pages_of_their_own_is_the_same_data() -> None:
    docs = [{"corpus": "crag_demo/03b6#finance-1"}, {"corpus": "crag_demo/03b6#movie-2"}]
    assert corpora_of(docs) == corpora_of(docs[:1]) == ("crag_demo/03b6",)
    assert corpora_of([{"corpus": "ruleqa_i/58"}, {"corpus": "ruleqa_f/71"}]) == ("ruleqa_f/71", "ruleqa_i/58")
