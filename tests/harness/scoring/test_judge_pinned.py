"""The open-weights judge pinned by revision, through judge-check with a scripted model, and the printed commands."""

from __future__ import annotations

import json
import logging
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from lm_eval.api.registry import get_model

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.scoring.judge import choose
from lm_eval_rag.harness.scoring.judge.agreement import judge_check_main
from lm_eval_rag.harness.scoring.judge.choose import judges_of
from lm_eval_rag.harness.scoring.judge.llm import ModelJudge
from lm_eval_rag.harness.scoring.judge.pinned import MODEL, REVISION, commands, is_unpinned, label, open_judge
from tests.harness.scoring.test_judge_llm import Scripted, honest

PAIRS = Path(__file__).with_name("judge_pairs_develop.jsonl")


def test_the_open_judge_is_one_revision() -> None:
    assert re.fullmatch(r"[0-9a-f]{40}", REVISION)
    assert open_judge({}) == ("hf", {"dtype": "bfloat16", "pretrained": f"{MODEL}@{REVISION}"})
    backend, arguments = open_judge({"backend": "vllm", "dtype": "auto", "max_model_len": 4096})
    assert (backend, arguments["dtype"], arguments["max_model_len"]) == ("vllm", "auto", 4096)
    for wrong, says in (({"revision": "main"}, "Leave out judge_revision"), ({"backend": "gguf"}, "backend")):
        with pytest.raises(UserError, match=says):
            open_judge(wrong)


def test_a_judge_is_recorded_with_its_revision(tmp_path: Path) -> None:
    assert label("hf", {"pretrained": "org/m@abc"}) == label("hf", {"pretrained": "org/m", "revision": "abc"})
    assert label("hf", {"pretrained": "org/m@abc"}) == "hf org/m@abc" and label("x", {}) == "x"
    assert is_unpinned("hf", {"pretrained": "org/m"}) and is_unpinned("vllm", {"pretrained": "org/m"})
    assert not any(
        is_unpinned(name, arguments)
        for name, arguments in (
            ("hf", {"pretrained": "org/m@abc"}), ("hf", {"pretrained": "org/m", "revision": "abc"}),
            ("hf", {"pretrained": str(tmp_path)}), ("openai-chat-completions", {"model": "m"}),
        )
    )  # fmt: skip


class Scribe(Scripted):
    """A scripted model in place of the one that lm_eval would load."""

    def __init__(self, spec: Any, *, chat: bool | None = None) -> None:
        super().__init__(honest, fingerprint=f"{spec.name} {spec.arguments}")
        self.spec, self.chat = spec, chat

    def room(self, max_tokens: int) -> int | None:
        return None


@pytest.mark.parametrize(
    ("name", "arguments", "recorded"),
    [
        ("open", "", f"hf {MODEL}@{REVISION}"), ("open", "backend=vllm", f"vllm {MODEL}@{REVISION}"),
        ("hf", "pretrained=org/m,revision=abc", "hf org/m@abc"), ("hf", "pretrained=org/m", "hf org/m"),
    ],
)  # fmt: skip
def test_judge_check_with_a_scripted_model(
    name: str, arguments: str, recorded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """The model compares in lower case, so it never calls a wrong answer correct."""
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    monkeypatch.setattr(choose, "LMGenerator", Scribe)
    monkeypatch.setattr("lm_eval_rag.harness.generators.spec.ModelSpec.check", lambda self: None)
    with caplog.at_level(logging.WARNING):
        out = tmp_path / "out.json"
        assert judge_check_main([str(PAIRS), "--judge", name, "--judge_args", arguments, "--json", str(out)]) == 0
    assert f"judge: {recorded};" in capsys.readouterr().out
    assert ("is not pinned" in caplog.text) == (arguments == "pretrained=org/m")
    everything = json.loads(out.read_text())["all"]
    assert everything["n"] == 160 and everything["unscored"] == 0
    assert everything["confusion"]["wrong, correct"] == 0 < everything["confusion"]["correct, correct"]


def test_printed_commands_can_be_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert judge_check_main([str(PAIRS), "--commands"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "\n".join(lines) + "\n" == commands(str(PAIRS)) and len(lines) == 6
    monkeypatch.setattr(choose, "LMGenerator", Scribe)
    for line in lines:
        words = shlex.split(line)
        keys = [word for word in words if word.endswith("_API_KEY=...")]
        for key in keys:
            monkeypatch.setenv(key.partition("=")[0], "x")
        assert words[len(keys) : len(keys) + 3] == ["lm-eval-rag", "judge-check", str(PAIRS)]
        options = dict(zip(words[len(keys) + 3 :: 2], words[len(keys) + 4 :: 2], strict=True))
        pairs = [pair.split("=", 1) for pair in options.get("--judge_args", "").split(",") if pair]
        if options.get("--judge", "rules") not in ("rules", "open"):
            assert get_model(options["--judge"])  # lm_eval knows the name
            (judge,) = judges_of({"judge": options["--judge"], **{f"judge_{k}": v for k, v in pairs}})
            assert isinstance(judge, ModelJudge)
