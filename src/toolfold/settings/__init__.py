"""How to fold: one frozen `Settings`, and the loader that finds its values.

Argument over environment over file over default; the lists of tools that stay open are
united instead. What cannot be used is refused with the key, the value, the place and the
fix.
"""

from toolfold.settings.load import ENVIRONMENT, load_settings
from toolfold.settings.model import PRESETS, MemorySettings, Reranker, Settings

__all__ = ["ENVIRONMENT", "PRESETS", "MemorySettings", "Reranker", "Settings", "load_settings"]
