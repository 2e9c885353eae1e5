"""Names that have moved: found under the old path for one release more, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["moved"]


def moved(old: str, new: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module whose names have moved.

    Args:
        old: The module that is asked.
        new: The module that has them.
        names: What each is called there.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        warnings.warn(
            f"`{old}.{name}` is now `{new}.{names[name]}`; the old path goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(new), names[name])

    return find
