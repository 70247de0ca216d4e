"""What all tests share: few threads, no hub, one data folder for the session, the mirror of the upstream files."""

import gc
import multiprocessing
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BESIDE = ROOT.parent / "shared" / "sources"  # where a checkout may have the mirror
UPSTREAM = ("raw.githubusercontent.com", 443)  # where the manifests point

# Before torch, polars or numba are imported anywhere: they read these once.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("POLARS_MAX_THREADS", "2")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # half of the time
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"  # servers of tests are asked directly
os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
if BESIDE.is_dir():
    os.environ.setdefault("LM_EVAL_RAG_MIRROR", str(BESIDE))

gc.disable()  # until all tests are collected: of what is imported until then nothing is garbage


def pytest_collection_finish() -> None:
    gc.freeze()  # what is collected and imported stays, so that no later collection looks at it again
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Write the byte code of all tests before the processes start: else each of them compiles all of it."""
    names, fork = ("test_*.py", "conftest.py"), multiprocessing.get_context("fork")
    paths = [path for name in names for path in sorted(Path(__file__).parent.rglob(name))]
    parts = [fork.Process(target=_write_byte_code, args=(config, paths[i::2])) for i in range(2)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()


def _write_byte_code(config: pytest.Config, paths: list[Path]) -> None:
    """As pytest writes it, by its own functions, which are not public: where they are others it is not written."""
    from _pytest.assertion import rewrite

    state = config.stash[rewrite.assertstate_key]
    for path in paths:
        target = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if not sys.dont_write_bytecode and rewrite._read_pyc(path, target) is None:
            target.parent.mkdir(exist_ok=True)
            stat, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(state, code, stat, target)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run's own temporary folder, the same for all its processes (``pytest -n``)."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session", autouse=True)
def cache(run_folder: Path) -> Path:
    """The run's data folder: $LM_EVAL_RAG_CACHE where it is given, else a temporary one."""
    folder = Path(os.environ.setdefault("LM_EVAL_RAG_CACHE", str(run_folder / "cache")))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def once(run_folder: Path) -> Callable[[str, Callable[[], Any]], Any]:
    """``once(name, make)``: of the run's processes one makes it and the others wait, then find it made."""
    from filelock import FileLock

    def once(name: str, make: Callable[[], Any]) -> Any:
        with FileLock(run_folder / f"{name}.lock"):
            return make()

    return once


@pytest.fixture(scope="session")
def mirror() -> Path | None:
    """The folder of the upstream files, None where they are downloaded; skipped where neither can be."""
    given = os.environ.get("LM_EVAL_RAG_MIRROR")
    if given and Path(given).is_dir():
        return Path(given)
    try:
        socket.create_connection(UPSTREAM, timeout=5).close()
    except OSError:
        pytest.skip(f"needs the upstream files: no folder LM_EVAL_RAG_MIRROR, none at {BESIDE}, and no network")
    return None


@pytest.fixture(autouse=True)
def one_torch_thread() -> None:
    """Keep torch to one thread once a test has imported it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def undescribed() -> Iterator[None]:
    """From here on, runs of lm_eval in this process do not describe the machine, which takes processes and seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)
        yield


@pytest.fixture(scope="session")
def little_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random Llama of two layers, its byte-level tokenizer and a chat template."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<|pad|>", "<|begin|>", "<|end|>", "<|user|>", "<|assistant|>"]
    alphabet = [*(letter for letter in pre_tokenizers.ByteLevel.alphabet() if letter.isascii()), "Ġ", "Ċ"]
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(["what does who visited praised Time Documents Rules Question Answer"], trainer)
    folder = tmp_path_factory.mktemp("little_llama")
    whole = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|pad|>", bos_token="<|begin|>", eos_token="<|end|>"
    )
    whole.chat_template = (
        "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
    )
    whole.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            vocab_size=len(whole), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=2048, initializer_range=0.5, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        )  # fmt: skip
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def stubborn_llama(little_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a ``generation_config.json`` that would sample five tokens, whatever it is asked for."""
    from transformers import GenerationConfig

    folder = tmp_path_factory.mktemp("stubborn") / "llama"
    shutil.copytree(little_llama, folder)
    GenerationConfig(
        max_new_tokens=5, do_sample=True, temperature=1.7, top_k=50, bos_token_id=1, eos_token_id=2, pad_token_id=0
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL, up to ``/v1``, of ``transformers serve``: for the model whose folder a request names."""
    pytest.importorskip("fastapi", reason="needs transformers[serving]")
    pytest.importorskip("uvicorn", reason="needs transformers[serving]")
    port, log = _free_port(), tmp_path_factory.mktemp("serve") / "log"
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--device", "cpu", "--dtype", "float32"]
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
    try:
        _wait(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path, seconds: float = 120) -> None:
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
