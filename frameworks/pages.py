"""The blocks of a guide, run: what `docs/adapters` shows is what works."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["run_page"]

_PAGES = Path(__file__).resolve().parents[1] / "docs"
_BLOCK = re.compile(r"^```python adapter\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_page(path: str, **given: Any) -> dict[str, Any]:
    """Run a page's blocks in one namespace, and return it.

    Args:
        path: The page, below `docs`.
        given: What the page takes for granted, such as `model`.
    """
    text = (_PAGES / path).read_text("utf-8")
    found = list(_BLOCK.finditer(text))
    assert found, f"{path} has no blocks to run"
    module = sys.modules["page"] = ModuleType("page")
    names = vars(module)
    names.update(given)

    async def main() -> None:
        for block in found:
            lines = text.count("\n", 0, block.start()) + 1
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            code = compile("\n" * lines + block[1], path, "exec", flags=flags, dont_inherit=True)
            ran = eval(code, names)
            if inspect.isawaitable(ran):
                await ran

    asyncio.run(main())
    return names
