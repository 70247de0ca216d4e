"""The text of single files: plain text, Markdown, HTML, and what markitdown reads (PDF, Office, EPUB)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import install_line
from lm_eval_rag.harness.common.guarded import Guarded, GuardError
from lm_eval_rag.harness.common.paths import read_text
from lm_eval_rag.harness.web.clean import clean
from lm_eval_rag.harness.web.reader import PageReader

SECONDS, WALL = 60.0, 300.0  # of CPU and by the clock, for one file
MEMORY = 4 << 30  # bytes


class UnreadError(Exception):
    """A file whose text cannot be had, and why; it is listed, and the others are read."""


class TextFiles:
    """Reads files, one at a time. Close it, or use it in a ``with`` block: processes read what may be hostile."""

    def __init__(self) -> None:
        self._pages = PageReader()
        self._office = Guarded(f"{__name__}:converter", seconds=SECONDS, wall=WALL, memory=MEMORY)

    def __enter__(self) -> TextFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._pages.close()
        self._office.close()

    def read(self, path: Path) -> str:
        """The text of a file with one of the endings in ``KINDS``.

        Raises:
            UnreadError: It holds no text, or it cannot be read.
        """
        text = clean(KINDS[path.suffix.lower()](self, path)).strip()
        if not text:
            raise UnreadError("no text in it")
        return text

    def _plain(self, path: Path) -> str:
        try:
            return read_text(path, "Save it as UTF-8.").removeprefix("\ufeff")
        except UserError as error:
            raise UnreadError(str(error).removeprefix(f"{path} ")) from None

    def _html(self, path: Path) -> str:
        try:
            page = self._pages.read(path.read_bytes(), path.stem)
        except OSError as error:
            raise UnreadError(str(error.strerror)) from None
        except UserError as error:  # a package is missing
            raise UnreadError(str(error)) from None
        return "\n\n".join([page.text, *page.tables])

    def _converted(self, path: Path) -> str:
        if find_spec("markitdown") is None:
            raise UnreadError(f"needs markitdown: {install_line('documents')}")
        try:
            return self._office.call(f"{path.suffix.lower()}\n".encode() + path.read_bytes()).decode()
        except OSError as error:
            raise UnreadError(str(error.strerror)) from None
        except GuardError as error:
            raise UnreadError("markitdown cannot read it" if error.reason == "crashed" else error.reason) from None


def converter() -> Callable[[bytes], bytes]:
    """What the guarded process calls: the ending and then the bytes of a file in, Markdown out."""
    from io import BytesIO

    from markitdown import StreamInfo, converters

    # one converter, not all in turn: the last of them takes whatever the others refuse as plain text
    readers = {ending: getattr(converters, name)() for ending, name in CONVERTERS.items()}

    def convert(request: bytes) -> bytes:
        ending, _, data = request.partition(b"\n")
        info = StreamInfo(extension=ending.decode())
        text: str = readers[ending.decode()].convert(BytesIO(data), info).markdown
        return text.encode()

    return convert


CONVERTERS = {  # ending -> markitdown's class
    ".pdf": "PdfConverter",
    ".docx": "DocxConverter",
    ".pptx": "PptxConverter",
    ".xlsx": "XlsxConverter",
    ".xls": "XlsConverter",
    ".epub": "EpubConverter",
}
KINDS: dict[str, Callable[[TextFiles, Path], str]] = {
    **dict.fromkeys((".txt", ".text", ".md", ".markdown", ".rst"), TextFiles._plain),
    **dict.fromkeys((".html", ".htm", ".xhtml"), TextFiles._html),
    **dict.fromkeys(CONVERTERS, TextFiles._converted),
}
