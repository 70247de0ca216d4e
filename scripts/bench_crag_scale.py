"""Seconds, peak memory and disk of many CRAG questions: the ten real records, repeated.

    python scripts/bench_crag_scale.py --questions 27 270          # minutes
    python scripts/bench_crag_scale.py --questions 2706            # as many as the benchmark has

Each size is built from its own file and run by ``lm_eval`` with ``crag_hybrid``, in processes of their own. The copies
of a page differ in a comment, so that each is stored, read and searched as its own page. The generator is lm_eval's
``dummy``, which replies at once, so this is the cost of all that is not generation. The mirror's records have 5 pages
each, in task 3 too; ``--pages 50`` gives each question the pages of all ten, which is the real number. The start of the
two programs is in every line: compare two sizes for the cost of one more question. Memory grows with the questions in
flight (``--window``), so compare sizes above that.
"""

from __future__ import annotations

import argparse
import bz2
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORDS = "crag/dev_data.jsonl.bz2"
BUILD = "import sys; from lm_eval_rag.tasks.crag.build import build; build(sys.argv[1], data_files=sys.argv[2])"
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a process and its children: seconds by the clock and CPU seconds; of the process: peaks in bytes.

    Args:
        memory: The peak with the pages of mapped files, which the system takes back when it needs them.
        own: The peak without them, looked at five times a second (Linux; else 0).
    """

    clock: float
    cpu: float
    memory: int
    own: int


def main() -> None:
    """Print one line for each task and number of questions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, nargs="+", default=[27, 270])
    parser.add_argument("--tasks", nargs="+", default=["crag_task1", "crag_task3"])
    parser.add_argument("--pages", type=int, default=5, help="pages of a question, up to 50 (default: 5)")
    parser.add_argument("--window", type=int, default=256, help="questions in flight (default: 256)")
    parser.add_argument("--mirror", type=Path, default=os.environ.get("LM_EVAL_RAG_MIRROR"))
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    options = parser.parse_args()
    if options.mirror is None:
        parser.error("--mirror or LM_EVAL_RAG_MIRROR must name the folder that holds crag/dev_data.jsonl.bz2")
    with bz2.open(options.mirror / RECORDS, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    print(
        f"{'task':11} questions  build s  run s  CPU ms/question  build MB  run MB  own MB  disk MB/question",
        flush=True,
    )
    for count in options.questions:
        for task in options.tasks:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                line = measured(Path(folder), records, task, count, options)
                print(line, flush=True)


def measured(folder: Path, records: list[Any], task: str, count: int, options: argparse.Namespace) -> str:
    """One line of the table."""
    data, cache = folder / "records.jsonl", folder / "cache"
    with data.open("w", encoding="utf-8") as file:
        file.writelines(copies(records, count, options.pages))
    build = cost([sys.executable, "-c", BUILD, task, str(data)], cache)
    words = ["--model", "crag_hybrid", "--tasks", task]
    graph = "" if task == "crag_task1" else f",kg={options.mirror / 'crag'}"
    words += ["--model_args", f"generator=dummy,max_prompt_tokens=4000,window={options.window}{graph}"]
    words += ["--metadata", json.dumps({"data_files": str(data)})]
    words += ["--log_samples", "--output_path", str(folder / "out")]
    run = cost([sys.executable, "-m", "lm_eval", "run", *words], cache)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path != data)
    cpu = 1000 * (build.cpu + run.cpu) / count
    return (
        f"{task:11} {count:9,} {build.clock:8.0f} {run.clock:6.0f} {cpu:16.0f} {build.memory / MEGABYTE:9.0f} "
        f"{run.memory / MEGABYTE:7.0f} {run.own / MEGABYTE:7.0f} {size / MEGABYTE / count:17.2f}"
    )


def copies(records: list[Any], count: int, pages: int) -> Iterator[str]:
    """The lines of ``count`` records, of which no two share an id or a page."""
    everything = [page for record in records for page in record["search_results"]]
    for number in range(count):
        record = records[number % len(records)]
        own = record["search_results"]
        chosen = (own + [page for page in everything if page not in own])[:pages] if pages > len(own) else own[:pages]
        marked = [{**page, "page_result": f"{page['page_result']}<!-- {number} -->"} for page in chosen]
        yield json.dumps({**record, "interaction_id": f"copy-{number}", "search_results": marked}) + "\n"


def cost(command: list[str], cache: Path) -> Cost:
    """Run a command to its end, with a cache of its own."""
    cache.mkdir(exist_ok=True)
    began = time.perf_counter()
    with (cache.parent / "log.txt").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "LM_EVAL_RAG_CACHE": str(cache)})
        own, ended = 0, 0
        while not ended:
            own = max(own, _own_memory(process.pid))
            time.sleep(0.2)
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
    if status:
        raise SystemExit(f"{' '.join(command[:6])} ... failed:\n{(cache.parent / 'log.txt').read_text()[-3000:]}")
    return Cost(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, own)


def _own_memory(pid: int) -> int:
    """Bytes of a process that no file backs; 0 where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) * 1024


if __name__ == "__main__":
    main()
