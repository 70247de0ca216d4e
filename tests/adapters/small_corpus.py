"""The corpus of the adapters' tests, and a retriever by shared words."""

import json
import re
from pathlib import Path

ANSWER = "Vale"


def rows():
    """The rows of ``corpus.jsonl`` beside this file."""
    lines = Path(__file__).with_name("corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def best(question, documents, text_of):
    """The two documents that share most words with the question."""
    words = set(re.findall(r"\w+", question.lower()))
    return sorted(documents, key=lambda one: -len(words & set(re.findall(r"\w+", text_of(one).lower()))))[:2]
