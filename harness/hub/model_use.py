"""What a model card says of our checkpoints: the command that runs one as it was trained, its base and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_rag.harness.checkpoints.note import Note
from lm_eval_rag.harness.data.sources import Source
from lm_eval_rag.harness.generators.spec import EMBEDDED
from lm_eval_rag.harness.hub import terms
from lm_eval_rag.harness.hub.published_note import BASES, STATIC

RULES = 3  # the default of rulerag_ft
RESTRICTED = (
    "> **{mark}.** Trained on {names}, whose sources restrict what may be done with the data and with what is made of "
    "them. Users and redistributors must follow these terms: {terms}."
)


def command(note: Note, at: str, *, adapter: bool) -> str:
    """The command that evaluates the checkpoint with the retriever, prompt and precision of its training.

    Args:
        note: As it is published.
        at: ``ORG/NAME@TAG``.
        adapter: Whether the folder is a PEFT adapter.
    """
    if not note.tasks:
        return ""
    model, arguments = _generator(note, at, adapter) if note.kind == "generator" else _retriever(note, at)
    given = ",".join(f"{key}={value}" for key, value in arguments.items())
    return f"    lm_eval --tasks {','.join(note.tasks)} --model {model} --model_args {given}"


def _generator(note: Note, at: str, adapter: bool) -> tuple[str, dict[str, Any]]:
    settings = note.settings
    name, options = settings.get("retriever") or ("", {})
    parameters = {
        key: value for key, value in (settings.get("parameters") or {}).items() if (key, value) != ("seed", 0)
    }
    preset, embedded = settings.get("preset") or {}, settings.get("base") in EMBEDDED
    arguments: dict[str, Any] = {**({"retriever": name} if name else {})}
    arguments |= {f"retriever_{key}": value for key, value in options.items()} | parameters
    arguments |= {"generator": settings["base"]} if embedded and not adapter else {}
    arguments["gen_peft" if adapter else "gen_pretrained"] = at
    arguments |= {"gen_load_in_4bit": True} if preset.get("four_bit") else {}
    arguments |= {"gen_dtype": settings["dtype"]} if settings.get("dtype") and not embedded else {}
    return str(settings.get("method", "rulerag_ft")), arguments


def _retriever(note: Note, at: str) -> tuple[str, dict[str, Any]]:
    encoder, n_rules = note.settings.get("encoder", STATIC), note.settings.get("n_rules", RULES)
    own = {"retriever": STATIC} if encoder == STATIC else {"retriever": "dense", "retriever_model": encoder}
    arguments = {**own, "retriever_adapter": at}
    if note.mode == "ssft":
        return "standard_rag", {**arguments, "generator": "tiny"}
    rules = {} if n_rules == RULES else {"n_rules": n_rules}
    return "rulerag_ft", {**arguments, **rules, "generator": "tiny_rgft"}


def base_line(note: Note, base: str | None) -> str:
    """What it was tuned from."""
    name = str(note.settings.get(BASES[note.kind]) or "")
    if base:
        return f"Base model: [{base}](https://huggingface.co/{base.partition('@')[0]})."
    kind = "generator" if note.kind == "generator" else "retriever"
    return f"Base model: the {kind} `{name}` embedded in lm-eval-rag, which is not on the Hub." if name else ""


def rows_trained(note: Note) -> int | None:
    """Number of prompts or examples that it was trained on; None where the note does not say it.

    Earlier notes of generators have only the number before ``--unstated drop``, and how many of these do not state the
    answer.
    """
    results = note.results
    if "rows_trained" in results or "rows" not in results:
        return results.get("rows_trained")
    dropped = results.get("rows_without_the_answer") if note.settings.get("unstated") == "drop" else 0
    return None if dropped is None else int(results["rows"] - dropped)


def rows_line(note: Note) -> str:
    """How many prompts a generator was trained on, where others were left out; "" where none were."""
    rows, trained = note.results.get("rows"), rows_trained(note)
    if rows is None or trained is None or rows == trained:
        return ""
    return f"Trained on {trained} of {rows} prompts: the documents of the others do not state the answer."


def limits(note: Note) -> str:
    """What the checkpoint was not trained for, as far as its note says."""
    results, settings, rules = note.results, note.settings, "with rules" if note.mode == "rgft" else "without rules"
    lines = [
        f"It was trained on questions of {', '.join(note.tasks)} in the form of RuleQA, {rules}; questions of other "
        "forms and other corpora were not tried.",
        f"It is one training run, of seed {note.seed}; another seed gives other results.",
        "The dev questions selected the checkpoint, so results on them are optimistic.",
    ]
    if note.kind == "generator":
        lines.append("It answers in the form of its training prompts; other wordings of the prompt were not learnt.")
        unstated = results.get("rows_without_the_answer")
        if unstated and settings.get("unstated", "keep") == "keep":
            lines.append(
                f"{unstated} of its {results['rows']} training prompts have no document that states the answer, so it "
                "also answers where the documents do not."
            )
    if settings.get(BASES[note.kind]) in (STATIC, *EMBEDDED):
        lines.append("It is a very small model, meant for tests and demonstrations on a CPU.")
    return "## Limits\n\n" + "\n".join(f"- {line}" for line in lines)


def warning(sources: Mapping[str, Sequence[Source]]) -> str:
    """The warning about restricted training data; "" without such data.

    Args:
        sources: Name of a set -> its upstream files.
    """
    by_set = {name: terms.restricted(files) for name, files in sources.items()}
    closed = [source for files in by_set.values() for source in files]
    if not closed:
        return ""
    research = any("research" in source.terms for source in closed)
    mark = "Research and educational use only" if research else "No licence stated for the training data"
    names = ", ".join(name for name, files in by_set.items() if files)
    return RESTRICTED.format(mark=mark, names=names, terms="; ".join(terms.statements(closed)))
