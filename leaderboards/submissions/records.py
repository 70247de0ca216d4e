"""Records that a maintainer keeps beside the entries of a board: JSON files, folder of an entry -> record.

They stand in the folder that holds the entries' folders, so no entry can bring its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.leaderboards.submissions.form import Form

WITHDRAWN = "withdrawn.json"
REASONS = TypeAdapter(dict[str, str])
Record = TypeVar("Record")


def read_records(path: Path, kind: TypeAdapter[dict[str, Record]], mend: str) -> dict[str, Record]:
    """All records of a file by the folder of their entry; {} without the file.

    Args:
        mend: How the file is written: the end of the error's message.

    Raises:
        UserError: The file is malformed.
    """
    if not path.is_file():
        return {}
    try:
        return kind.validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path}{', ' if where else ''}{where}: {first['msg']}. {mend}") from None


def write_records(path: Path, records: Mapping[str, Form]) -> None:
    """Write all records of a file, in the order of their entries."""
    content = {name: one.model_dump() for name, one in sorted(records.items())}
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_withdrawn(board: Path) -> dict[str, str]:
    """Folder -> why it was taken off the board, of ``withdrawn.json`` in the folder of a board's entries.

    Raises:
        UserError: The file is malformed.
    """
    return read_records(board / WITHDRAWN, REASONS, 'Write {"FOLDER": "why it was withdrawn"}.')
