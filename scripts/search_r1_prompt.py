"""The prompt that Search-R1's checkpoints were trained on, as a prompt file for ``search_agent``.

    python scripts/search_r1_prompt.py                          # writes search_r1_prompt.toml
    python scripts/search_r1_prompt.py --checkout Search-R1     # from a clone of PeterGriffinJin/Search-R1
    lm_eval --tasks hotpotqa --model search_agent --model_args protocol=search_r1,prompt_file=search_r1_prompt.toml,...

The texts are the authors' and are not in this repository. They are read from two files of theirs at commit a14dc3a
(Apache-2.0): the prompt from ``infer.py``; the form of results and the notice after a turn without a call from
``search_r1/llm_agent/generation.py``. Either file is parsed and never run, and its sha256 is checked. Without
``--checkout`` the files are downloaded once, or read from ``LM_EVAL_RAG_MIRROR``.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import read_text
from lm_eval_rag.harness.data.sources import Source, fetch

REPOSITORY, COMMIT = "PeterGriffinJin/Search-R1", "a14dc3a4ffc6fe88c1e95038d9738e21ba3f7a06"
FILES = {  # path in the repository -> sha256, bytes
    "infer.py": ("21e5931f0a8271ee54fb5ff7906860f261cafedb842b847bba089a708709a942", 5180),
    "search_r1/llm_agent/generation.py": ("ab88b308db9d0b72fdbdd9a00f282ca28c20d3a63229a38959ce258daa1c063d", 19766),
}
QUESTION = {"question": "{question}"}
RESULTS = {"search_results.pop(0).strip()": "{results}"}
ITEM = {"idx + 1": "{number}", "title": '"{title}"', "text": "{text}"}  # titles of their corpus stand in quotes


def sources(checkout: Path | None) -> list[str]:
    """The texts of the two files, from a checkout or as they are pinned.

    Raises:
        UserError: A file is missing, or is not the pinned one.
    """
    return [_pinned(checkout, path) if checkout else _fetched(path) for path in FILES]


def _pinned(checkout: Path, path: str) -> str:
    text = read_text(checkout / path, f"Give --checkout the folder of a clone of {REPOSITORY}.")
    if sha256(text.encode()).hexdigest() != FILES[path][0]:
        raise UserError(f"{checkout / path} is not that of the pinned commit. Check it out: git checkout {COMMIT}.")
    return text


def _fetched(path: str) -> str:
    digest, size = FILES[path]
    source = Source(f"search_r1/{Path(path).name}", REPOSITORY, COMMIT, path, digest, size, "Apache-2.0", "none")
    return fetch(source).read_text(encoding="utf-8")


def prompt_file(infer: str, generation: str) -> str:
    """The prompt file, as TOML, of the texts of ``infer.py`` and ``generation.py``.

    Raises:
        UserError: They do not have the known form.
    """
    told = texts_at(generation, "next_obs.append", RESULTS)
    prompt = _only("prompt", texts_at(infer, "prompt =", QUESTION))
    results = _only("form of the results", [text for text in told if "{results}" in text])
    item = _only("form of a result", texts_at(generation, "format_reference +=", ITEM))
    notice = _only("notice", [text for text in told if text.strip() and "{results}" not in text])
    parts = {
        "search_r1": {"text": prompt.removesuffix("\n")},  # the line break before its cue, which is blank
        "search_r1_results": {"text": results.strip(), "item": item.removesuffix("\n")},
        "search_r1_malformed": {"text": notice.strip()},
    }
    lines = [f"# The texts of {REPOSITORY} at commit {COMMIT} (Apache-2.0).", f'version = "search_r1-{COMMIT[:7]}"']
    for step, texts in parts.items():
        shown = {"instruction": "", "answer": "", **texts}
        lines += ["", f"[{step}]", *(f"{name} = {json.dumps(text)}" for name, text in shown.items())]
    return "\n".join(lines) + "\n"


def texts_at(source: str, place: str, fields: Mapping[str, str]) -> list[str]:
    """The texts and f-strings that a program has at a place, with our fields for its own, and other braces doubled.

    Args:
        place: ``name =``, ``name +=`` or, for what a function is called with, its name.
        fields: What stands between the braces of an f-string -> our field; f-strings with others are left out.
    """
    found = (_text(value, fields) for where, value in _places(source) if where == place)
    return [text for text in found if text is not None]


def _places(source: str) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            yield f"{ast.unparse(node.targets[0])} =", node.value
        elif isinstance(node, ast.AugAssign):
            yield f"{ast.unparse(node.target)} +=", node.value
        elif isinstance(node, ast.Call) and len(node.args) == 1:
            yield ast.unparse(node.func), node.args[0]


def _text(value: ast.expr, fields: Mapping[str, str]) -> str | None:
    parts = [_part(part, fields) for part in (value.values if isinstance(value, ast.JoinedStr) else [value])]
    return None if None in parts else "".join(filter(None, parts))


def _part(part: ast.expr, fields: Mapping[str, str]) -> str | None:
    if isinstance(part, ast.FormattedValue):
        return fields.get(ast.unparse(part.value))
    known = isinstance(part, ast.Constant) and isinstance(part.value, str)
    return part.value.replace("{", "{{").replace("}", "}}") if known else None


def _only(what: str, texts: Sequence[str]) -> str:
    if len(set(texts)) != 1:
        raise UserError(f"The files of {REPOSITORY} have {len(set(texts))} texts where the {what} should be.")
    return texts[0]


def main() -> None:
    """Write the prompt file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--checkout", type=Path, help=f"a clone of {REPOSITORY} at commit {COMMIT[:7]}")
    parser.add_argument("--out", type=Path, default=Path("search_r1_prompt.toml"), help="the file to write")
    given = parser.parse_args()
    try:
        text = prompt_file(*sources(given.checkout))
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
    given.out.write_text(text, encoding="utf-8")
    print(f"{given.out}: give it as prompt_file={given.out}")


if __name__ == "__main__":
    main()
