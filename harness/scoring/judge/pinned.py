"""The open-weights judge, pinned by revision, and the commands that measure judges.

A judge behind an API changes without notice. Open weights at one revision with greedy decoding do not, so two runs
years apart have the same judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown

OPEN = "open"
MODEL = "Qwen/Qwen2.5-7B-Instruct"  # Apache 2.0; about 15 GB of weights in bfloat16
REVISION = "a09a35458c702b33eeacc393d103063234e8bc28"
BACKENDS = ("hf", "vllm")
# Names of models behind APIs end: gpt-4-0125-preview, CRAG's published judge, was announced to shut down on 2026-03-26,
# claude-3-5-haiku-20241022 was retired on 2026-02-19, and gpt-4o-mini is announced to shut down on 2027-01-14. See
# developers.openai.com/api/docs/deprecations and platform.claude.com/docs/en/about-claude/model-deprecations.
API_JUDGES = {  # lm_eval's model -> its arguments; the key comes from the environment
    "openai-chat-completions": "model=gpt-4o-mini",
    "anthropic-chat": "model=claude-haiku-4-5-20251001",
    "local-chat-completions": "model=NAME,base_url=http://127.0.0.1:8000/v1/chat/completions",
}
KEYS = {"openai-chat-completions": "OPENAI_API_KEY", "anthropic-chat": "ANTHROPIC_API_KEY"}


def open_judge(arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """lm_eval's name and arguments of the open-weights judge.

    Args:
        arguments: ``backend`` (``hf`` or ``vllm``, default ``hf``), and others for that backend.

    Raises:
        UserError: Another backend, or a model or revision, which would be another judge.
    """
    others = dict(arguments)
    backend = str(others.pop("backend", BACKENDS[0]))
    if backend not in BACKENDS:
        raise unknown("backend", backend, BACKENDS, hint=f"judge={OPEN} runs in this process.")
    fixed = sorted({"pretrained", "revision", "model"} & others.keys())
    if fixed:
        raise UserError(
            f"judge={OPEN} is {MODEL} at revision {REVISION}. Leave out judge_{fixed[0]}, or name another judge: "
            "judge=hf judge_pretrained=ORG/NAME@REVISION."
        )
    return backend, {"dtype": "bfloat16", **others, "pretrained": f"{MODEL}@{REVISION}"}


def label(name: str, arguments: Mapping[str, Any]) -> str:
    """A judge's name as it is recorded: the backend, the model, and its revision."""
    model = str(arguments.get("model", arguments.get("pretrained", "")))
    revision = arguments.get("revision")
    return " ".join(part for part in (name, f"{model}@{revision}" if revision else model) if part)


def is_unpinned(name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a judge is a model of the Hub without a revision, so that its weights may change."""
    model = str(arguments.get("pretrained", ""))
    pinned = "@" in model or bool(arguments.get("revision"))
    return name.startswith(("hf", "vllm")) and bool(model) and not pinned and not Path(model).expanduser().exists()


def commands(file: str) -> str:
    """The commands that measure the rules, the open-weights judge and judges behind APIs on a file of labels."""
    check = f"lm-eval-rag judge-check {file}"
    lines = [check, f"{check} --judge {OPEN}", f"{check} --judge {OPEN} --judge_args backend=vllm"]
    for name, arguments in API_JUDGES.items():
        key = f"{KEYS[name]}=... " if name in KEYS else ""
        lines.append(f"{key}{check} --judge {name} --judge_args {arguments}")
    return "\n".join(lines) + "\n"
