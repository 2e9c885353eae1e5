"""Words and pieces, cut by the very module that the package cuts them with.

It is loaded by its path, so that a machine without the package's dependencies can train.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def _pieces() -> ModuleType:
    path = Path(__file__).resolve().parents[1] / "src" / "toolfold" / "search" / "_pieces.py"
    spec = importlib.util.spec_from_file_location("toolfold_pieces", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_module = _pieces()
NUMBER, Pieces, lead, words = _module.NUMBER, _module.Pieces, _module.lead, _module.words
