"""An easy item for a judge that is a model, before the first answer is generated.

A judge may be gone (a server's model was shut down), need a key, not fit into memory, or not keep to the form. All of
this should be known before answers are paid for. The verdict is kept in the judge's journal like every other, so that a
run that is repeated asks nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.generators.memory import release
from lm_eval_rag.harness.scoring.judge import Item, Judge
from lm_eval_rag.harness.scoring.judge.llm import ModelJudge

log = logging.getLogger(__name__)
EASY = Item("What is the capital of France?", ("Paris",), "It is Paris.")


def preflight(judges: Sequence[Judge]) -> None:
    """Ask every judge that is a model about the easy item, unless its journal has the verdict.

    A model on a GPU is released afterwards, to make room for the generator.

    Raises:
        UserError: A judge gives no verdict.
    """
    for judge in judges:
        if not isinstance(judge, ModelJudge):
            continue
        (opinion,) = judge.opinions([EASY])
        if isinstance(opinion, CallError):
            says = str(opinion).replace("gen_", "judge_").replace("generator", "judge").rstrip(".")
            raise UserError(
                f"The judge {judge.name} gave no verdict on an easy item that it was asked before the first answer is "
                f"generated: {says}. Name another judge, such as --metadata judge=open (open weights) or judge=rules "
                "(no model)."
            )
        if opinion.correct < 1:
            log.warning("The judge %s calls %r a wrong answer to %r.", judge.name, EASY.prediction, EASY.question)
        release(judge.generator)
