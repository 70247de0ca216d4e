"""The anchors that the site gives headings."""

from __future__ import annotations

import re
import unicodedata


def anchor(heading: str) -> str:
    """The anchor of a heading."""
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
