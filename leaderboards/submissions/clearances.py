"""A maintainer clears an entry of its flags: it is then ranked, and its row says who looked at it, when and why.

``cleared.json`` in the folder of a board's entries records this. A record names the entry's content, so it says nothing
of an entry that has changed. It covers flags that come later, such as that of a copy which somebody else submits: the
original keeps its rank.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.leaderboards.submissions.form import Form, Hash, Name, Note
from lm_eval_rag.leaderboards.submissions.records import read_records, write_records
from lm_eval_rag.leaderboards.submissions.tiers import digest_of

CLEARED = "cleared.json"


class Clearance(Form):
    """A maintainer's record.

    Args:
        entry: Hash of the entry's files.
        by: Who looked at it.
        date: Day of the record, such as ``2026-11-22``.
        reason: Why it is ranked in spite of its flags.
    """

    entry: Hash
    by: Name
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    reason: Note

    def note(self) -> str:
        """One sentence for the row of the entry."""
        return f"Cleared by {self.by} on {self.date}: {self.reason}"


RECORDS = TypeAdapter(dict[str, Clearance])


def read_clearances(board: Path) -> dict[str, Clearance]:
    """Folder -> record, of the folder of a board's entries; {} without the file.

    Raises:
        UserError: The file is malformed.
    """
    return read_records(board / CLEARED, RECORDS, "`lm-eval-rag verify ENTRY --clear REASON --by NAME` writes it.")


def add_clearance(folder: Path, by: str, reason: str) -> Clearance:
    """Write a record beside the entry's folder, in place of an older one of it.

    Raises:
        UserError: The name or the reason is blank or too long.
    """
    try:
        record = Clearance(entry=digest_of(folder), by=by, date=date.today().isoformat(), reason=reason)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = {"reason": "--clear"}.get(str(first["loc"][0]), f"--{first['loc'][0]}")
        raise UserError(f"{option} {first['input']!r}: {first['msg']}.") from None
    write_records(folder.parent / CLEARED, {**read_clearances(folder.parent), folder.name: record})
    return record
