"""A reader for pickles that runs nothing of what they name.

The official music and soccer files, and the values in the finance databases, are pickles. A pickle is a program: it
names functions and calls them. Here every name must be on a short list, and even a listed one is never imported: it
becomes an inert :class:`Standin` that keeps its arguments. Our own code then works out what the stand-ins mean (an
array, a number, a date). So the worst that a file can do is to be refused, or to take time and memory
(:mod:`lm_eval_rag.harness.kg.guarded_files` limits these). :mod:`lm_eval_rag.harness.kg.frames` reads frames.

Why not pandas: its reader executes what a pickle names, and the values of a finance database have no pinned hash. It
also depends on the version that wrote the file. pandas 3.1 reads our sample files of pandas 1.5 to 2.2, but it was not
tried on the seven official files (503 MB in Git LFS).
"""

from __future__ import annotations

import io
import math
import pickle
import re
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

import numpy as np

from lm_eval_rag.harness.common.errors import UserError

MAX_NODES = 5_000_000  # of one value; shared parts count every time, so that a small file cannot expand without end
MAX_DEPTH = 50
MAX_DIGITS = 4_300  # of an integer: Python writes no longer one as text
MAX_BITS = (10**MAX_DIGITS).bit_length() - 1
NUMBERS = re.compile(r"[biuf][1248]|U\d{1,6}")

NUMPY = {"ndarray", "dtype", "_reconstruct", "scalar", "_frombuffer"}
PANDAS = {
    # frames and their blocks
    "DataFrame", "BlockManager", "_unpickle_block", "new_block",
    # indexes
    "_new_Index", "_new_DatetimeIndex", "Index", "RangeIndex", "MultiIndex", "DatetimeIndex", "Int64Index",
    "CategoricalIndex",
    # columns of their own kinds
    "__pyx_unpickle_NDArrayBacked", "DatetimeArray", "StringArray", "Categorical", "IntegerArray", "FloatingArray",
    "BooleanArray", "NumpyExtensionArray", "PandasArray", "FrozenList",
    # their types and their missing values
    "StringDtype", "CategoricalDtype", "Int64Dtype", "Int32Dtype", "Float64Dtype", "BooleanDtype", "NA",
    "_nat_unpickle", "NumpyEADtype", "PandasDtype",
}  # fmt: skip
BUILTINS = {"slice", "set", "frozenset", "bytearray", "bytes"}
OTHERS = {
    *((module, name) for module in ("builtins", "__builtin__") for name in BUILTINS),
    ("_codecs", "encode"),
    ("collections", "OrderedDict"),
    ("collections", "defaultdict"),
    ("datetime", "date"),
}


class Standin:
    """Stands for a name in a pickle: ``name``, the ``args`` of its call, and its ``state``."""

    name = ""

    def __new__(cls, *args: Any, **_: Any) -> Standin:
        """Keep the arguments."""
        standin = super().__new__(cls)
        standin.args, standin.state, standin.items = args, None, []  # type: ignore[attr-defined]
        return standin

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items.append((key, value))  # type: ignore[attr-defined]

    def append(self, value: Any) -> None:
        """Keep an item of a list-like."""
        self.items.append(value)  # type: ignore[attr-defined]

    def extend(self, values: Iterable[Any]) -> None:
        """Keep items of a list-like."""
        self.items.extend(values)  # type: ignore[attr-defined]


class _Reader(pickle.Unpickler):
    """Returns stand-ins for listed names and refuses all other names."""

    def find_class(self, module: str, name: str) -> Any:
        """A new stand-in type; nothing is imported."""
        numpy_name = module.partition(".")[0] == "numpy" and name in NUMPY
        pandas_name = module.partition(".")[0] == "pandas" and name in PANDAS
        if not (numpy_name or pandas_name or (module, name) in OTHERS):
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no data file needs")
        return type(name, (Standin,), {"name": name})


def read_inert(file: BinaryIO, what: str) -> Any:
    """The content of a pickle, with stand-ins for everything but plain containers, texts and numbers.

    Args:
        what: Names the file in the error.

    Raises:
        UserError: It is not a pickle, is cut, or names something that is not on the list.
    """
    try:
        return _Reader(file).load()
    except (
        pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError, IndexError, AttributeError, MemoryError,
        OverflowError, RecursionError, SystemError, ImportError,
    ) as error:  # fmt: skip
        raise UserError(
            f"{what} is refused: {str(error) or type(error).__name__}. Only pickles of plain containers, texts, "
            "numbers, numpy arrays and pandas frames are read, and none of them is executed. Fetch the official file."
        ) from None


def read_value(content: bytes, what: str) -> Any:
    """The JSON-able value of a small pickle, such as a value of the finance databases.

    Raises:
        UserError: As :func:`read_inert`.
    """
    return plain(read_inert(io.BytesIO(content), what), what)


def plain(value: Any, what: str) -> Any:
    """A JSON-able copy: tuples and sets become lists, keys texts, NaN, infinity and missing values None.

    Raises:
        UserError: It holds an object of an unknown kind, or is too large or too deep.
    """
    return _Plain(what).of(value, 0)


class _Plain:
    """Makes one JSON-able copy and counts its nodes."""

    def __init__(self, what: str) -> None:
        self.what, self.left = what, MAX_NODES

    def of(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if self.left < 0 or depth > MAX_DEPTH:
            raise _refused(self.what, "its content is too large or too deep")
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            raise _refused(self.what, f"it holds an integer of more than {MAX_DIGITS:,} digits")
        if value is None or isinstance(value, str | bool | int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, dict):
            return {str(self.of(key, depth + 1)): self.of(part, depth + 1) for key, part in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.of(part, depth + 1) for part in value]
        if isinstance(value, type) and issubclass(value, Standin) and value.name == "NA":  # a name alone, not called
            return None
        if isinstance(value, Standin) and value.name in MEANINGS:
            return self.of(MEANINGS[value.name](value, self.what), depth + 1)
        raise _refused(self.what, f"it holds a {getattr(value, 'name', '') or type(value).__name__}")


def array(value: Any, what: str) -> np.ndarray:
    """The array that a stand-in stands for: numbers, texts, dates (as datetime64), or objects.

    Raises:
        UserError: It is not an array, or its type, shape and content do not agree.
    """
    try:
        if value.name == "_frombuffer":
            content, dtype, shape, order = value.args
        else:
            _, shape, dtype, fortran, content = value.state
            order = "F" if fortran else "C"
        return _filled(content, _dtype(dtype), shape, order)
    except (AttributeError, TypeError, ValueError) as error:
        raise _refused(what, f"an array in it is damaged ({error})") from None


def _filled(content: Any, dtype: np.dtype, shape: tuple[int, ...], order: Any) -> np.ndarray:
    if not all(isinstance(n, int) and n >= 0 for n in shape) or order not in ("C", "F"):
        raise ValueError("its shape")
    if dtype.hasobject:
        if not isinstance(content, list) or len(content) != math.prod(shape):
            raise ValueError("its objects")
        flat = np.empty(len(content), dtype=object)
        flat[:] = content
    else:
        content = encoded(content) if isinstance(content, Standin) else content
        flat = np.frombuffer(content, dtype)
    return flat.reshape(shape, order=order)


def encoded(value: Standin) -> bytes:
    """Bytes that protocol 2 wrote as text: ``_codecs.encode(text, 'latin1')``, or a ``bytearray``."""
    text = value.args[0] if value.args else ""  # type: ignore[attr-defined]
    return text.encode("latin1") if isinstance(text, str) else bytes(text)


def _dtype(value: Any) -> np.dtype:
    """The type that a stand-in stands for: numbers, texts, dates or objects."""
    kind, order, unit = str(value.args[0]), "<", "ns"
    if isinstance(value.state, tuple):
        order = value.state[1] if value.state[1] in ("<", ">") else "<"
        name = value.state[8][1][0] if len(value.state) > 8 else unit.encode()
        unit = (encoded(name) if isinstance(name, Standin) else name).decode()
    if kind in ("O", "O8"):
        return np.dtype(object)
    if kind == "M8" and unit in ("s", "ms", "us", "ns", "D"):
        return np.dtype(f"{order}M8[{unit}]")
    if NUMBERS.fullmatch(kind):
        return np.dtype(order + kind)
    raise ValueError(f"its type {kind!r}")


def listed(values: np.ndarray) -> list[Any]:
    """An array as a list; dates in the form of pandas' JSON, ``2024-03-09T00:00:00.000``, or None."""
    if values.dtype.kind != "M":
        return list(values.tolist())
    texts = np.datetime_as_string(values, unit="ms").tolist()
    return [None if text == "NaT" else text for text in texts]


def _scalar(value: Any, what: str) -> Any:
    try:
        dtype, content = value.args
        if _dtype(dtype).hasobject:
            return content
        content = encoded(content) if isinstance(content, Standin) else content
        return listed(np.frombuffer(content, _dtype(dtype), count=1))[0]
    except (AttributeError, TypeError, ValueError) as error:
        raise _refused(what, f"a number in it is damaged ({error})") from None


def _date(value: Any, what: str) -> str:
    content = value.args[0]
    content = encoded(content) if isinstance(content, Standin) else content
    if not isinstance(content, bytes) or len(content) != 4:
        raise _refused(what, "a date in it is damaged")
    return f"{content[0] * 256 + content[1]:04d}-{content[2]:02d}-{content[3]:02d}"


def _nothing(value: Any, what: str) -> None:
    return None


# Values of stand-ins; the others (frames and their parts) have a meaning only inside a frame.
MEANINGS: dict[str, Callable[[Any, str], Any]] = {
    "_reconstruct": lambda value, what: listed(array(value, what)),
    "_frombuffer": lambda value, what: listed(array(value, what)),
    "scalar": _scalar,
    "date": _date,
    "NA": _nothing,
    "_nat_unpickle": _nothing,
    "set": lambda value, what: list(value.args[0]) if value.args else [],
    "frozenset": lambda value, what: list(value.args[0]) if value.args else [],
    "OrderedDict": lambda value, what: dict(value.items),
    "defaultdict": lambda value, what: dict(value.items),
}


def _refused(what: str, why: str) -> UserError:
    return UserError(f"{what} is refused: {why}. Fetch the official file.")
