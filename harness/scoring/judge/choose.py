"""Selects the judges of a run: ``lm_eval --metadata judge=NAME judge_ARGUMENT=VALUE ...``, or ``metadata:`` in a YAML.

- ``judge=rules``: no model. The default of CRAG's tasks.
- ``judge=openai-chat-completions judge_model=gpt-4o-mini``: any lm_eval model. Its arguments have the prefix
  ``judge_``; API keys come only from the environment. A local model whose
  tokenizer has a chat template gets the prompt through it; ``judge_chat=False`` sends raw text.
- ``judge=open``: the open-weights judge, pinned by revision (:mod:`.pinned`); ``judge_backend=vllm`` runs it in vLLM.
- ``second_judge=...`` with ``second_judge_...``: a second judge; the score is the mean of the two.
- ``judge=off``: no judge; CRAG's scores use exact match. The default of all other tasks.

With a judge, ``crag_score`` and its parts use the judge's verdicts on every task. If all judges are models, ``acc_lm``
is scored too. ``consistency=True`` asks the same models whether the rationale of each answer lies in its passages
(``factual_consistency``). Verdicts of models are kept in ``$LM_EVAL_RAG_CACHE/journal/judge-<fingerprint>.sqlite``.
Before the first answer is generated, a model is asked one easy item (:mod:`.preflight`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import SECRETS, ModelSpec
from lm_eval_rag.harness.scoring.judge import Judge, RulesJudge
from lm_eval_rag.harness.scoring.judge.llm import ModelJudge
from lm_eval_rag.harness.scoring.judge.pinned import OPEN, is_unpinned, label, open_judge
from lm_eval_rag.harness.scoring.verdict import RULES

log = logging.getLogger(__name__)
OFF = "off"
FIRST, SECOND = "judge", "second_judge"
CONSISTENCY = "consistency"


def judges_of(metadata: Mapping[str, Any] | None, default: str = OFF) -> tuple[Judge, ...]:
    """The judges in a task's metadata, first and second; () for none.

    Args:
        default: The judge if the metadata name none.

    Raises:
        UserError: An unknown model, an API key that is missing or passed as an argument, or two equal judges.
    """
    settings = dict(metadata or {})
    names = {role: str(settings.get(role, default if role == FIRST else OFF)) for role in (FIRST, SECOND)}
    if names[FIRST] == OFF and names[SECOND] != OFF:
        raise UserError(f"second_judge={names[SECOND]} needs a first judge. Set judge= too.")
    judges = tuple(_judge(role, name, _arguments(role, settings)) for role, name in names.items() if name != OFF)
    if len({judge.name for judge in judges}) < len(judges):
        raise UserError(f"judge and second_judge are both {judges[0].name}. Name two different judges.")
    return judges


def rationale_judges(metadata: Mapping[str, Any] | None, judges: Sequence[Judge]) -> tuple[ModelJudge, ...]:
    """The same judges for rationales, if the metadata ask for them; () if not.

    Raises:
        UserError: There is no judge, or one that is no model.
    """
    if not flag(metadata, CONSISTENCY):
        return ()
    models = [judge for judge in judges if isinstance(judge, ModelJudge)]
    if not models or len(models) < len(judges):
        raise UserError(
            f"{CONSISTENCY}=True needs judges that are language models: the rules compare answers, not rationales. "
            "Give --metadata judge=openai-chat-completions judge_model=... too, or leave it out (consistency_overlap "
            "needs no judge)."
        )
    asked = [replace(judge, subject="rationale") for judge in models]
    return tuple(replace(judge, path=_journal(judge.fingerprint)) for judge in asked)


def flag(metadata: Mapping[str, Any] | None, name: str) -> bool:
    """Whether the metadata say ``name=True``."""
    given = (metadata or {}).get(name, False)
    if str(given).lower() not in ("true", "false"):
        raise UserError(f"{name}={given!r} is not allowed: give True or False.")
    return str(given).lower() == "true"


def _arguments(role: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key[len(role) + 1 :]: value for key, value in settings.items() if key.startswith(f"{role}_")}


def _judge(role: str, name: str, arguments: dict[str, Any]) -> Judge:
    if name == RULES:
        if arguments:
            raise UserError(f"{role}=rules takes no arguments. Remove {role}_{min(arguments)}.")
        return RulesJudge()
    secret = next((key for key in arguments if key in SECRETS), None)
    if secret:
        raise UserError(
            f"{role}_{secret} is refused, because metadata are written to the results file. Set the key in the "
            "environment."
        )
    if name == OPEN:
        name, arguments = open_judge(arguments)
    if is_unpinned(name, arguments):
        log.warning(
            "The judge %s is not pinned: give %s_pretrained=ORG/NAME@REVISION, so that other runs have the same judge.",
            arguments["pretrained"], role,
        )  # fmt: skip
    chat = arguments.pop("chat", None)
    size, device = arguments.pop("batch_size", 1), arguments.pop("device", None)
    spec = ModelSpec(name, arguments, size, device)
    try:
        spec.check()
    except UserError as error:
        says = str(error).replace("gen_", f"{role}_")  # a judge's arguments have another prefix than a generator's
        raise UserError(f"{role}={name}: {says} ({role}=rules needs no model.)") from None
    judge = ModelJudge(label(name, arguments), LMGenerator(spec, chat=chat))
    return replace(judge, path=_journal(judge.fingerprint))


def _journal(fingerprint: str) -> Path:
    """In the folder of the runs' journals, one file per judge and rank."""
    rank = int(os.environ.get("RANK", "0"))
    return cache_dir() / "journal" / f"judge-{fingerprint[:16]}{f'.rank{rank}' if rank else ''}.sqlite"
