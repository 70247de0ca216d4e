"""The 38 functions on a folder of the official files, without a server.

The folder has the layout of ``mock_api/cragkg`` in facebookresearch/CRAG: ``finance``, ``movie``, ``music``, ``open``
and ``sports``. A file is opened when a function first needs it, and a function whose file is missing says so. Arguments
are only compared with names in the files; they never become part of a path or of SQL.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, MachineError, UserError
from lm_eval_rag.harness.core.asks import Lookup
from lm_eval_rag.harness.kg.finance import COMPANIES, Finance
from lm_eval_rag.harness.kg.functions import Function, bind_arguments, function_named
from lm_eval_rag.harness.kg.movie import Movie
from lm_eval_rag.harness.kg.music import Music
from lm_eval_rag.harness.kg.open import Open
from lm_eval_rag.harness.kg.sports import Sports

logger = logging.getLogger(__name__)

DOMAINS: dict[str, Callable[[Path], Any]] = {
    "finance": Finance,
    "movie": Movie,
    "music": Music,
    "open": Open,
    "sports": Sports,
}
HASHED_WHOLE = 64 << 20  # bytes; larger files enter the fingerprint by size and time, because hashing 4 GB is slow
REPLIES = b"2"  # raise it when the same files give other replies, so that no journal serves the old ones
DAMAGED = (KeyError, TypeError, ValueError, IndexError, AttributeError, OSError)  # raised for other layouts


class EmbeddedGraph:
    """The functions on local files.

    Args:
        folder: The graph's folder.

    Raises:
        UserError: There is no such folder.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise UserError(f"kg={str(folder)!r} is not a folder: give the one that holds finance, movie, music, ...")
        self.folder = folder
        self._domains = {name: make(folder) for name, make in DOMAINS.items()}
        self._broken: dict[str, CallError] = {}
        self._lock = threading.Lock()  # a server's threads must not convert one file twice

    @cached_property
    def fingerprint(self) -> str:
        """Hash over the names and contents of the graph's files, and the version of the replies."""
        digest = sha256(REPLIES)
        paths = [path for domain in DOMAINS for path in (self.folder / domain).rglob("*")]
        for path in sorted(path for path in (*paths, self.folder / COMPANIES[1]) if path.is_file()):
            digest.update(str(path.relative_to(self.folder)).encode(errors="replace"))
            about = path.stat()
            small = about.st_size <= HASHED_WHOLE
            digest.update(path.read_bytes() if small else f"{about.st_size} {about.st_mtime_ns}".encode())
        return f"kg {digest.hexdigest()[:16]}"

    def call(self, calls: Sequence[Lookup]) -> list[Any | CallError]:
        """The reply to each call, in order; a CallError for a call that is not allowed or has no data."""
        return [self._call_one(call) for call in calls]

    def _call_one(self, call: Lookup) -> Any | CallError:
        try:
            function = function_named(call.function)
            arguments = bind_arguments(function, dict(call.arguments))
        except UserError as error:
            return CallError(str(error))
        with self._lock:
            return self._broken.get(function.name) or self._run(function, arguments)

    def _run(self, function: Function, arguments: dict[str, Any]) -> Any | CallError:
        method = function.name.removeprefix(f"{function.domain}_")
        try:
            return getattr(self._domains[function.domain], method)(**arguments)
        except CallError as error:
            return error
        except MachineError:  # a full disk, which no other function can do without
            raise
        except UserError as error:  # a damaged file stays damaged
            logger.warning("%s", error)
            self._broken[function.name] = CallError(str(error))
            return self._broken[function.name]
        except DAMAGED as error:
            return CallError(f"{function.name}: the data in {self.folder} has another layout ({error!r})")
