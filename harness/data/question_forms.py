"""Forms of questions: how a corpus words a question for each relation, and the folders that have such questions.

A form is a text with the place ``{subject}`` and perhaps ``{time}``: "Whom did {subject} consult on {time}?". A folder
with ``forms.json`` holds other wordings of the questions of a built corpus. It has tables of questions, and no
documents or rules: these are those of the corpus that ``forms.json`` names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from lm_eval_rag.harness.data.tables import damaged

FORMS = "forms.json"
SUBJECT, TIME = "{subject}", "{time}"
WRITTEN_TIME = r"(?:\d{1,2} [A-Z][a-z]+ )?\d{1,4}"  # 3 November 2014, or a year


def write_forms(folder: Path, documents: str, forms: Mapping[str, str]) -> None:
    """Write the forms of a folder's questions.

    Args:
        documents: Id of the corpus that the questions are asked over.
        forms: Relation -> form.
    """
    text = json.dumps({"documents": documents, "forms": dict(forms)}, ensure_ascii=False, indent=1)
    (folder / FORMS).write_text(text, encoding="utf-8")


def read_forms(folder: Path) -> tuple[str, dict[str, str]] | None:
    """The id of the corpus with the documents, and the forms by relation; None for a folder without forms.

    Raises:
        UserError: The file is damaged.
    """
    path = folder / FORMS
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return str(content["documents"]), {str(key): str(form) for key, form in content["forms"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(path, error) from None


class FormReader:
    """Finds the subject and the relation of questions that were worded by forms.

    Args:
        forms: Relation -> form.
    """

    def __init__(self, forms: Mapping[str, str]) -> None:
        self._forms = [(relation, *_parts(form)) for relation, form in forms.items()]

    def read(self, text: str) -> list[tuple[str, str]]:
        """Every (subject, relation) by which a form gives this text; [] for any other text."""
        return [
            (match[1], relation)
            for relation, start, end, pattern in self._forms
            if text.startswith(start) and text.endswith(end) and (match := pattern.fullmatch(text))
        ]


def _parts(form: str) -> tuple[str, str, re.Pattern[str]]:
    """The words before the first place and after the last, which are quick to compare, and the pattern of the whole."""
    parts = re.split(r"(\{subject\}|\{time\})", form)
    places = {SUBJECT: "(.+)", TIME: WRITTEN_TIME}
    return parts[0], parts[-1], re.compile("".join(places.get(part) or re.escape(part) for part in parts))
