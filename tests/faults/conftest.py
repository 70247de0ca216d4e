"""A real server of a real (tiny, random) model, and a world to ask about."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from lm_eval_rag._register import tasks_folder

sys.path.insert(0, str(Path(__file__).parent))  # for proxy.py, which the tests here share


@pytest.fixture(autouse=True, scope="session")
def no_proxy():
    """Servers on this machine are asked directly, whatever proxy the environment names."""
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"


@pytest.fixture(scope="session")
def served(little_llama, tmp_path_factory):
    """The chat URL of ``transformers serve`` with a tiny model; killed at the end."""
    pytest.importorskip("fastapi", reason="needs transformers[serving]")
    pytest.importorskip("uvicorn", reason="needs transformers[serving]")
    port, log = _free_port(), tmp_path_factory.mktemp("serve") / "log"
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(little_llama), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--device", "cpu", "--dtype", "float32"]
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1/chat/completions"
    finally:
        process.kill()
        process.wait()


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait(url, process, log, seconds=90):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"transformers serve does not answer: {log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def evaluate(undescribed):
    """``evaluate(model, url, ...)``: ruleqa_demo with a model behind a chat API; retries hardly wait."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_defaults=False, include_path=str(tasks_folder()))

    def evaluate(model, url, arguments=(), *, generator="local-chat-completions", limit=24, **options):
        given = {"generator": generator, "gen_base_url": url, "gen_model": "any", "journal": "off", **QUICK}
        return simple_evaluate(
            model=model,
            model_args={**given, **dict(arguments)},
            tasks=["ruleqa_demo"],
            task_manager=manager,
            limit=limit,
            **options,
        )

    return evaluate


QUICK = {"gen_timeout": 1, "gen_retry_wait": 0.01}
