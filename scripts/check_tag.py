"""The version of a release: its tag, the package, CITATION.cff and CHANGELOG.md must agree; ``make dist`` checks it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from lm_eval_rag import __version__

ROOT = Path(__file__).resolve().parents[1]


def wrong(tag: str, version: str = __version__, root: Path = ROOT) -> list[str]:
    """What does not fit the version.

    Args:
        tag: Such as ``v0.1.0``; "" for a build without a tag.
    """
    cited = re.search(r"^version: (\S+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    section = re.search(
        rf"^## {re.escape(version)}(.*)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    checks = {
        f"the tag {tag} is not v{version}": tag in ("", f"v{version}"),
        f"CITATION.cff does not say version: {version}": bool(cited) and cited[1] == version,
        f"CHANGELOG.md has no section {version}": bool(section),
        f"CHANGELOG.md calls {version} not released": not tag or (bool(section) and "not released" not in section[1]),
    }
    return [text for text, fits in checks.items() if not fits]


if __name__ == "__main__":
    if problems := wrong(sys.argv[1] if len(sys.argv) > 1 else ""):
        sys.exit("; ".join(problems))
