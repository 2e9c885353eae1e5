"""Where the words that were written for tools stand: beside what names the tools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from toolfold.settings.model import Settings

__all__ = ["NO_FILE", "WORDS_SUFFIX", "with_words_beside", "words_beside"]

WORDS_SUFFIX = ".words.jsonl"
"""How the name of such a file ends: `toolfold.yaml` has `toolfold.words.jsonl` beside it."""

NO_FILE = ("auto", "off", "")
"""Values of the setting `enriched` that name no file."""


def words_beside(path: Path) -> Path:
    """Return the file of words beside a configuration or a catalog."""
    name = path.name.removesuffix(".gz")
    return path.with_name(f"{Path(name).stem}{WORDS_SUFFIX}")


def with_words_beside(settings: Settings, path: Path | None) -> Settings:
    """Return settings that name the file beside a path, where none is named and it is there."""
    if path is None or settings.enriched != "auto":
        return settings
    beside = words_beside(path.absolute())
    return replace(settings, enriched=str(beside)) if beside.is_file() else settings
