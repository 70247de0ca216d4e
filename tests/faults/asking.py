"""What the processes that are killed do: one run with a journal, its answers written at the end."""

import json
import os
from pathlib import Path
from threading import RLock

from tqdm import tqdm

from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import ModelSpec
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.methods.standard_rag import standard_rag

QUESTIONS = 160
WIDTH = 2  # requests at once; a batch, which is what may be repeated, is four times that


def ask(url, journal, out):
    """Answer all questions by a server and write answers, prompts and what the journal served."""
    os.environ["NO_PROXY"] = "127.0.0.1"
    tqdm.set_lock(RLock())  # its own lock is a semaphore, which a killed process leaves behind
    corpus = [Passage(f"d{i}", f"Person{i} Alba visited Town{i % 7} Burg.") for i in range(QUESTIONS)]
    queries = [Query(f"q{i}", f"what does Person{i} Alba visited ?") for i in range(QUESTIONS)]
    given = {"base_url": url, "model": "any", "num_concurrent": WIDTH, "retry_wait": 0.01}
    generator = LMGenerator(ModelSpec("local-chat-completions", given))
    results = run(standard_rag, queries, corpus=corpus, generator=generator, journal=journal, k=2)
    told = [
        [answer.text, trace.failure, trace.steps[-1].request, trace.steps[-1].journalled] for answer, trace in results
    ]
    Path(out).write_text(json.dumps(told))
