"""The README.md of a model's folder as its card on the Hub includes it: without names and links that lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.hub.published_note import is_hub_id

TEMPLATE = "More Information Needed"  # appears in the template cards that libraries write
LINKS = re.compile(  # code as it is (first group), or a link or an image: its text, its target
    r"(```.*?```|`[^`\n]*`|^(?: {4}|\t)[^\n]*$)|!?\[([^][]*)\]\(([^)\s]*)[^)]*\)", re.DOTALL | re.MULTILINE
)
ON_THE_WEB = ("#", "http://", "https://", "mailto:")


def own_card(folder: Path) -> tuple[dict[str, Any], str]:
    """Front matter and text of the folder's README.md; both empty if it is missing or a library's template.

    A base model that is no Hub id is left out, and so are earlier results. Links to files outside the folder, or to
    files that it does not have, become their text.

    Raises:
        UserError: The front matter cannot be read.
    """
    from huggingface_hub import ModelCard

    path = folder / "README.md"
    if not path.is_file() or TEMPLATE in (content := path.read_text(encoding="utf-8")):
        return {}, ""
    try:
        card = ModelCard(content)
    except ValueError as error:
        raise UserError(f"The front matter of {path} cannot be read: {error}.") from None
    front: dict[str, Any] = card.data.to_dict()  # type: ignore[no-untyped-call]
    front.pop("model-index", None)  # replaced by the results of this call
    bases = front.pop("base_model", None) or []
    kept = [base for base in ([bases] if isinstance(bases, str) else bases) if is_hub_id(str(base), folder)]
    if kept:
        front["base_model"] = kept if len(kept) > 1 else kept[0]
    return front, with_links_that_lead(card.text.strip(), folder)


def with_links_that_lead(text: str, folder: Path) -> str:
    """A Markdown text in which links to files that ``folder`` does not have are their text; code stays as it is."""

    def shown(match: re.Match[str]) -> str:
        code, words, target = match.groups()
        if code is not None or target.startswith(ON_THE_WEB):
            return match[0]
        file = (folder / target.partition("#")[0]).resolve()
        return match[0] if file.is_file() and file.is_relative_to(folder.resolve()) else str(words)

    return LINKS.sub(shown, text)
