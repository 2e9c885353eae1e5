"""How to fold: one frozen `Settings`, and the loader that finds its values.

Argument over environment over file over default; the lists of tools that stay open are
united instead. What cannot be used is refused with the key, the value, the place and the
fix.
"""

from typing import TYPE_CHECKING, Any

from toolfold.settings.model import PRESETS, MemorySettings, Reranker, Settings

if TYPE_CHECKING:
    from toolfold.settings.load import ENVIRONMENT, load_settings

__all__ = ["ENVIRONMENT", "PRESETS", "MemorySettings", "Reranker", "Settings", "load_settings"]


def __getattr__(name: str) -> Any:
    """Return what belongs to the loader, which most hosts never need."""
    if name not in ("ENVIRONMENT", "load_settings"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from toolfold.settings import load

    return getattr(load, name)
