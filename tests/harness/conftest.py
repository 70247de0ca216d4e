"""Runs to report on, made up by a seeded generator and written by lm_eval itself."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

COUNTRIES = ["Citizen (Nigeria)", "France", "South Korea", "Government (Chad)", "Ghana", "Iraq", "Police (India)"]
SLICES = {"direct": 0.3, "rule_required": 0.1, "unreachable": -0.1}  # what a slice adds to the share of right answers


def docs_of(n: int, corpus: str = "made_up/0") -> list[dict[str, Any]]:
    """``n`` questions, each with one or two answers."""
    rng = random.Random(0)
    return [
        {
            "id": f"q{i:04}",
            "query": f"Time 2014-11-{i % 28 + 1:02} what does {rng.choice(COUNTRIES)} praise ?",
            "answers": rng.sample(COUNTRIES, rng.choice([1, 1, 2])),
            "slice": rng.choice(list(SLICES)),
            "popularity": rng.choice(["head", "torso", "tail"]),
            "relation": rng.choice(["praise", "visit", "threaten"]),
            "corpus": corpus,
        }
        for i in range(n)
    ]


def answer_of(doc: dict[str, Any], rng: random.Random, right: float, failing: float) -> tuple[str, dict[str, Any]]:
    """An answer that is right with probability ``right``, and its record."""
    right += SLICES[doc["slice"]]
    gold = doc["answers"][0]
    answer = gold.lower() if rng.random() < right else rng.choice([*COUNTRIES, "I don't know", "", "South Sudan"])
    named = [gold if rng.random() < right / 5 else rng.choice(COUNTRIES[1:]) for _ in range(rng.randint(10, 30))]
    failure = "HTTP 500 after 3 tries" if rng.random() < failing else None
    return answer, {
        "answer": answer,
        "abstained": False,
        "failure": failure,
        "passages": [
            {"id": f"d{j}", "text": f"Time 2014-01-02 Iraq praise {name}.", "score": 1.0, "object": name}
            for j, name in enumerate(named)
        ],
        "k": 10,
        "calls": {"Generate": 1, "Retrieve": 3},
        "prompt_tokens": 400 + rng.randint(0, 99),
        "completion_tokens": 4,
        "seconds": round(rng.lognormvariate(-4, 0.5), 6),
        "dropped_passages": 0,
    }


@pytest.fixture(scope="session")
def make_run(write_run: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """As ``write_run``; runs with equal options are written once and copied."""
    written: dict[str, Path] = {}

    def make(folder: Path, **options: Any) -> Path:
        key = repr(sorted(options.items()))
        if key not in written:
            written[key] = write_run(tmp_path_factory.mktemp("run"), **options)
        return Path(shutil.copytree(written[key], folder, dirs_exist_ok=True))

    return make


@pytest.fixture(scope="session")
def write_run(undescribed: None) -> Callable[..., Path]:
    """``write_run(folder, model=..., ...)``: made-up answers through ``simple_evaluate``, saved by its tracker."""
    from datasets import Dataset
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    from lm_eval_rag.harness.core.record import RagText
    from lm_eval_rag.harness.plugin.task import RagTask

    manager = TaskManager(include_defaults=False)

    def make(
        folder: Path,
        *,
        model: str = "rulerag_icl",
        task: str = "ruleqa_i",
        n: int = 60,
        right: float = 0.3,
        failing: float = 0.0,
        stock: bool = False,
        seed: int = 0,
        arguments: dict[str, Any] | None = None,
        version: float = 1.0,
        corpus: str = "made_up/0",
        edit: Callable[[dict[str, Any], dict[str, Any]], None] = lambda doc, record: None,
        **options: Any,
    ) -> Path:
        rng = random.Random(seed)
        docs = docs_of(n, corpus)

        class Task(RagTask):
            def download(self, *args: Any, **kwargs: Any) -> None:
                self.dataset = {"test": Dataset.from_list(docs)}

        class Model(LM):
            def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
                answers = []
                for request in requests:
                    answer, record = answer_of(request.doc, rng, right, failing)
                    edit(request.doc, record)
                    answers.append(answer if stock else RagText(record["answer"], record))
                return answers

            def loglikelihood(self, requests: list[Any]) -> Any:
                raise AssertionError

            loglikelihood_rolling = loglikelihood

        Model.__name__ = model
        config = {
            "task": task,
            "test_split": "test",
            "doc_to_text": "{{query}}",
            "doc_to_target": "{{answers[0]}}",
            "output_type": "generate_until",
            "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8},
            "metadata": {"version": version},
        }
        tracker = EvaluationTracker(output_path=str(folder))
        tracker.general_config_tracker.model_name_sanitized = model
        results = simple_evaluate(model=Model(), tasks=[Task(config=config)], task_manager=manager, **options)
        assert results is not None
        results["config"]["model_args"] = arguments or {}
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        for name, lines in samples.items():
            tracker.save_results_samples(task_name=name, samples=lines)
        return folder

    return make


@pytest.fixture(scope="session")
def little_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random BERT of two layers with its pooler, and a tokenizer of whole words and letters."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("little_bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "query", "passage", ":", *(f"w{i}" for i in range(40))]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    transformers.BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=len(words), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=64, initializer_range=0.5,
        )  # fmt: skip
        transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def wider_llama(little_llama: Path, tmp_path: Path) -> Path:
    """The same, of width 64: what holds weights in 4 bits wants rows of 64 numbers or more."""
    pytest.importorskip("bitsandbytes")
    transformers = pytest.importorskip("transformers")
    base = shutil.copytree(little_llama, tmp_path / "base")
    config = transformers.LlamaConfig.from_pretrained(
        base, hidden_size=64, intermediate_size=64, head_dim=32, initializer_range=0.1
    )
    transformers.LlamaForCausalLM(config).save_pretrained(base)
    return base


@pytest.fixture(scope="session")
def cpu() -> Callable[[Any], float]:
    """CPU seconds so far of this process, of that of a PageReader, and of the latter's children that have ended."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs Linux's account of a process's children")

    def spent(reader: Any) -> float:
        fields = Path(f"/proc/{reader.guarded.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return time.process_time() + sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    return spent
