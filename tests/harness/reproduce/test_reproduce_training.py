"""The printed lines of RuleRAG's tables 2, 3 and figure 6, as one shell session: all is tested as it was tuned."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.checkpoints.note import Note, write_note
from lm_eval_rag.harness.core.asks import Generate, MatchRules, Retrieve
from lm_eval_rag.harness.core.types import Passage, Query, Rule
from lm_eval_rag.harness.plugin.arguments import LM_EVALS, Setup, read_arguments
from lm_eval_rag.harness.reproduce.reproduce_cli import reproduce_main
from lm_eval_rag.harness.reproduce.running import jobs
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.table_spec import Row
from lm_eval_rag.harness.train import generator_cli, train_cli

BOARDS = Path(__file__).parents[3] / "leaderboards"
NAMES = ("rulerag_table2", "rulerag_table3", "rulerag_figure6")
TUNED = ("tiny_rgft", "tiny_ssft")  # the shipped generators
READ = ("retriever_adapter", "gen_peft", "gen_pretrained")  # arguments that may name a checkpoint of an earlier line


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The lines are read in an empty folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("lines"))
        patch.setenv("OPENAI_API_KEY", "none")
        yield
        session.cache_clear()


@dataclass
class Session:
    """What the lines so far have written, and the evaluations with the generators that they read."""

    samples: set[Path] = field(default_factory=set)
    towers: dict[str, Namespace] = field(default_factory=dict)
    generators: dict[str, Namespace] = field(default_factory=dict)
    evaluations: list[Any] = field(default_factory=list)

    def run(self, line: str) -> None:
        words = shlex.split(line)
        steps: dict[str, Callable[[list[str]], None]] = {
            "lm-eval-rag reproduce": self.sample,
            "lm-eval-rag train": self.train,
            "lm_eval run": self.evaluate,
        }
        steps[" ".join(words[:2])](words[2:])

    def sample(self, words: list[str]) -> None:
        table = read_table(BOARDS / "reproduce" / f"{words[0]}.toml")
        assert words[1:] == ["--write-samples", "--out", words[3]]
        wanted = (job for row in table.rows for job in jobs(row) if job.sample)
        self.samples |= {job.samples_file(Path(words[3])) for job in wanted}

    def train(self, words: list[str]) -> None:
        options, written = {"retriever": (train_cli, self.towers), "generator": (generator_cli, self.generators)}[
            words[0]
        ]
        parser = ArgumentParser(exit_on_error=False)
        options.add_arguments(parser)
        given = parser.parse_args(words[1:])
        options.read_settings(given).check()
        assert str(given.out) not in written, "a finished checkpoint is not trained again"
        if words[0] == "generator":
            generator_cli.read_setup(given)
            assert not given.retriever_adapter or given.retriever_adapter in self.towers
        written[str(given.out)] = given
        given.out.mkdir(parents=True, exist_ok=True)  # the tables share a retriever
        write_note(given.out, Note(words[0], given.mode))  # type: ignore[arg-type]  # retriever or generator

    def evaluate(self, words: list[str]) -> None:
        from lm_eval._cli.harness import HarnessCLI
        from lm_eval.config.evaluate_config import EvaluatorConfig

        namespace = HarnessCLI()._parser.parse_args(["run", *words])
        assert namespace.samples is None or Path(namespace.samples) in self.samples
        config = EvaluatorConfig.from_cli(Namespace(**{**vars(namespace), "samples": None}))
        written = {*self.towers, *self.generators}
        for name in READ:
            value = str(config.model_args.get(name, ""))
            assert value in written or not value.startswith("checkpoints"), f"{value} is not written by a line above"
        self.evaluations.append(config)


@cache
def session(name: str) -> Session:
    """All lines of a table, run in order by their own argument parsers."""
    import lm_eval_rag

    lm_eval_rag.register()
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout.write", lines.append)
        folders = {"tables": BOARDS / "reproduce", "published": BOARDS / "published"}
        assert reproduce_main([name, "--dry-run"], **folders, build=str) == 0
        printed, read = "".join(lines).splitlines(), Session()
        commands = [line for line in printed if not line.startswith("#")]
        assert len(set(commands)) == len(commands)
        for line in commands:
            read.run(line)
    return read


def setup_of(config: Any) -> Setup:
    from lm_eval.api.registry import get_model

    given = {key: value for key, value in config.model_args.items() if key not in LM_EVALS}
    method: Any = get_model(config.model).method
    return read_arguments(config.model, method, given)


def row_of(name: str, config: Any) -> Row:
    table = read_table(BOARDS / "reproduce" / f"{name}.toml")
    return next(row for row in table.rows if row.name == Path(config.output_path).name)


def prompts(setup: Setup) -> tuple[str, list[tuple[str, int]]]:
    """The method's prompt for one question with ten documents and as many rules as it asks for; and its retrievals."""
    passages = tuple(Passage(str(i), f"Document {i}.", float(-i)) for i in range(20))
    rules = tuple(Rule("r", f"s{i}", 9, 9, 0.9) for i in range(9))
    plan, reply, searches = setup.bound()(Query("q", "what does A r ?")), None, []
    while True:
        ask = plan.send(reply)
        if isinstance(ask, Generate):
            return ask.prompt.render() if hasattr(ask.prompt, "render") else str(ask.prompt), searches
        if isinstance(ask, Retrieve):
            searches.append((ask.text, ask.k))
            reply = passages[: ask.k]
        else:
            assert isinstance(ask, MatchRules)
            reply = rules[: ask.k]


@pytest.mark.parametrize("name", NAMES)
def test_every_line_runs_after_those_above_it(name: str) -> None:
    read = session(name)
    table = read_table(BOARDS / "reproduce" / f"{name}.toml")
    assert len(read.evaluations) == sum(len(jobs(row)) for row in table.rows)
    assert bool(read.samples) == any(row.sample for row in table.rows)
    assert read.towers and read.generators


@pytest.mark.parametrize("name", NAMES)
def test_a_generator_is_tested_as_it_was_tuned(name: str) -> None:
    """The same retriever with the same adapter, the same prompt, the same precision; or the row says what differs."""
    read, tested = session(name), 0
    for config in read.evaluations:
        checkpoint = config.model_args.get("gen_peft") or config.model_args.get("gen_pretrained")
        if checkpoint not in read.generators:
            continue
        given, row, setup = read.generators[checkpoint], row_of(name, config), setup_of(config)
        assert setup.generator.spec.note == Note("generator", given.mode)
        settings, tuned = generator_cli.read_settings(given), generator_cli.read_setup(given)
        assert set(config.tasks) <= set(given.task), row.name
        prompt, searches = prompts(setup)
        tuned_prompt, tuned_searches = prompts(tuned)
        assert prompt == tuned_prompt, row.name
        same = (setup.corpora.retriever, dict(setup.corpora.options), searches) == (
            tuned.corpora.retriever, dict(tuned.corpora.options), tuned_searches
        )  # fmt: skip
        assert same != bool(row.differs), row.name
        if config.model_args["generator"] == "hf":
            assert config.model_args["gen_pretrained"] == settings.base and settings.preset.lora
            assert bool(config.model_args.get("gen_load_in_4bit")) == settings.preset.four_bit, row.name
            assert config.model_args["gen_dtype"] == settings.dtype, row.name
        tested += 1
    assert tested >= 15  # three or five tuned models of each of five sets


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_shipped_generator_is_tested_with_the_retriever_of_its_training(name: str) -> None:
    shipped = [config for config in session(name).evaluations if config.model_args.get("generator") in TUNED]
    assert shipped
    for config in shipped:
        setup, row = setup_of(config), row_of(name, config)
        assert setup.generator.spec.note
        tuned = setup.generator.spec.note.settings["retriever"]
        same = [setup.corpora.retriever, dict(setup.corpora.options)] == tuned
        once = config.model_args.get("n_queries", 1) == 1  # the prompts of its training are of one retrieval a question
        assert (same and once) != bool(row.differs), row.name


@pytest.mark.parametrize("name", NAMES)
def test_a_tower_is_tested_with_the_encoder_that_it_is_of(name: str) -> None:
    read = session(name)
    for config in read.evaluations:
        tower = read.towers.get(str(config.model_args.get("retriever_adapter")))
        if tower is None:
            continue
        assert (config.model_args["retriever"], config.model_args["retriever_model"]) == ("dense", tower.encoder)
        assert set(config.tasks) <= set(tower.task)
        guided = config.model_args.get("n_rules", 3) and config.model_args.get("guide") != "generation"
        guided = guided and config.model != "standard_rag"
        assert tower.mode == ("rgft" if guided else "ssft"), config.output_path


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_are_compared_have_one_precision(name: str) -> None:
    """Tuned and untuned lines of one large model are loaded alike, so that a claim compares the tuning alone."""
    forms: dict[str, set[Any]] = {}
    for config in session(name).evaluations:
        if config.model_args.get("generator") == "hf":
            form = tuple(config.model_args.get(key) for key in ("gen_load_in_4bit", "gen_dtype", "batch_size"))
            forms.setdefault(config.model_args["gen_pretrained"], set()).add((*form, config.batch_size))
    assert forms and all(len(form) == 1 for form in forms.values()), forms


def test_the_rows_of_the_7b_model_are_those_of_the_paper_and_all_are_in_claims() -> None:
    table = read_table(BOARDS / "reproduce" / "rulerag_table2.toml")
    rows = [row for row in table.rows if row.name.startswith("llama2_7b")]
    controls = {line for claim in table.claims for names in claim.controls.values() for line in names}
    assert {tuple(row.published.values()) for row in rows if row.line not in controls} == {
        ("Standard Prompting",),
        ("Standard RAG", "DPR"),
        ("RuleRAG-ICL", "RG-DPR", "LLAMA2_7B"),
        ("RuleRAG-ICL", "RG-DPR", "RG-LLAMA2_7B"),
        ("RuleRAG-FT", "RGFT-DPR", "RGFT-LLAMA2_7B"),
        *(("variants of RuleRAG-FT", f"{tower}-DPR", f"{reader}-LLAMA2_7B") for tower, reader in ABLATIONS),
    }
    claimed = {line for claim in table.claims for line in (*claim.better, *claim.worse)}
    assert {row.line for row in rows} <= claimed | controls


@pytest.mark.parametrize("name", ["llama2_7b-rg", "llama2_7b-ft", "bm25-rg", "static-rg", "ft"])
def test_controls_differ_from_what_they_control_in_one_thing(name: str) -> None:
    """Other rules in the guided line; three variants of the question in the unguided one. Large models: as embedded."""
    table = read_table(BOARDS / "reproduce" / "rulerag_table2.toml")
    lines = table.lines()
    (claim,) = [claim for claim in table.claims if claim.better == (name,) and len(claim.controls) == 3]
    (guided,), (unguided,) = lines[name], lines[claim.worse[0]]
    for rules in ("random", "shuffled"):
        ((row,),) = (lines[line] for line in claim.controls[f"{rules} rules"])
        assert (row.model, row.arguments_for("t")) == (guided.model, {**guided.arguments_for("t"), "rules": rules})
    ((row,),) = (lines[line] for line in claim.controls["equal number of retrieval calls, no rules"])
    plain = {key: value for key, value in unguided.arguments_for("t").items() if key != "n_rules"}
    assert (row.model, row.arguments_for("t")) == ("standard_rag", {**plain, "n_queries": 3})
    if name.startswith("llama2_7b"):  # on all questions of all sets, as the lines that are compared
        controls = [lines[line][0] for names in claim.controls.values() for line in names]
        assert all((row.tasks, row.sample) == (guided.tasks, guided.sample) for row in controls)


ABLATIONS = (("RG", "RGFT"), ("RGFT", "RG"), ("SSFT", "RGFT"), ("RGFT", "SSFT"), ("SSFT", "SSFT"))


def test_tuning_a_model_needs_the_same_card_in_every_table() -> None:
    sizes = {
        (row.arguments["gen_pretrained"], re.findall(r"GPU of (\d+) GB", row.needs)[0])
        for name in NAMES
        for row in read_table(BOARDS / "reproduce" / f"{name}.toml").rows
        if row.needs and "gen_peft" in row.arguments
    }
    assert len(sizes) == 4 and {size for _, size in sizes} == {"32"}
