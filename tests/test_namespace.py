"""``from lm_eval_rag import ...``: every name is there, is known to type checkers and ``dir()``, and is loaded late."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import lm_eval_rag
from lm_eval_rag.harness.core import asks

SOURCE = Path(lm_eval_rag.__file__).read_text(encoding="utf-8")


def declared() -> dict[str, str]:
    """What a type checker reads: name -> module."""
    (block,) = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.If) and "TYPE" in ast.dump(node.test)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert len(imports) == len(block.body)
    assert all(len(node.names) == 1 and node.names[0].name == node.names[0].asname for node in imports)
    return {node.names[0].name: str(node.module) for node in imports}


def test_type_checkers_and_programs_see_the_same_names() -> None:
    assert declared() == lm_eval_rag._MODULES
    assert set(lm_eval_rag._MODULES) <= set(dir(lm_eval_rag))


@pytest.mark.parametrize(("name", "module"), lm_eval_rag._MODULES.items())
def test_each_is_what_its_module_has(name: str, module: str) -> None:
    assert getattr(lm_eval_rag, name) is getattr(import_module(module), name)


def test_every_helper_that_asks_is_there() -> None:
    helpers = {
        name
        for name, value in vars(asks).items()
        if callable(value) and name.islower() and value.__module__ == asks.__name__
    }
    assert len(helpers) > 10 and helpers <= set(lm_eval_rag._MODULES)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'retreive'"):
        lm_eval_rag.retreive  # noqa: B018
