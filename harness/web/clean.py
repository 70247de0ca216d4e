"""From bytes to clean text: no NUL, no lone surrogate, no control character."""

from __future__ import annotations

import codecs
import re

LOOK = 2048  # bytes that may hold the declared encoding; the HTML standard says 1024
BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{2,30})""", re.IGNORECASE)
WIDER = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932"}
ENCODINGS = {  # encodings of the Encoding Standard, by Python's names
    *("utf-8", "gb18030", "cp932", "big5", "big5hkscs", "euc_jp", "iso2022_jp", "euc_kr", "cp949", "koi8-r", "koi8-u"),
    *("mac-roman", "mac-cyrillic", "cp866", "cp874", *(f"cp{number}" for number in range(1250, 1259))),
    *(f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
}
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u2060\ufeff\ufffe\uffff]")
SURROGATE = re.compile("[\ud800-\udfff]")
BLANK = re.compile(r"[^\S\n]+")
NUMBERS = re.compile(r"&#(?:\d{8,}|[xX][\da-fA-F]{7,});?")  # beyond Unicode; Python refuses to parse the longest


def decode(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a page, and a note if bytes were replaced.

    The encoding is that of the byte order mark, else the declared one if it is an encoding of the web, else UTF-8 if it
    fits, else Windows-1252. As in the HTML standard, a declared Latin-1 means Windows-1252, and a declared UTF-16,
    which could not have been read as ASCII, means UTF-8.
    """
    for mark, encoding in BOMS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding)
    declared = DECLARED.search(data[:LOOK])
    for encoding in ([_known(declared[1].decode("ascii", "replace"))] if declared else []) + ["utf-8"]:
        text, notes = _decoded(data, encoding)
        # a cut or a few bad bytes do not rule out an encoding, many do
        if text.count("\ufffd") <= len(text) // 1000 + 1:
            return text, notes
    return _decoded(data, "cp1252")


def clean(text: str) -> str:
    """The text without characters that parsers refuse: NUL, other controls, lone surrogates (pairs are joined)."""
    if SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return CONTROL.sub("", text)


def squeeze(text: str) -> str:
    """The lines that are not blank, with single spaces."""
    lines = (line.strip() for line in BLANK.sub(" ", clean(text)).splitlines())
    return "\n".join(line for line in lines if line)


def _decoded(data: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    try:
        return data.decode(encoding), ()
    except UnicodeError:
        return data.decode(encoding, "replace"), ("bytes replaced",)


def _known(name: str) -> str:
    """Python's name of a declared encoding; UTF-8 if it is not an encoding of the web."""
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return "utf-8"
    codec = WIDER.get(codec, codec)
    return codec if codec in ENCODINGS else "utf-8"
