"""Counts, names and quotes, as every text writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolfold._bounds import one_line

__all__ = ["did_you_mean", "plural", "quoted", "source_counts", "source_name"]

_QUERY_LIMIT = 120


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 tool`, `226 tools`."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


def quoted(text: str) -> str:
    """Return a model's own words back, short and on one line."""
    return f'"{one_line(text, _QUERY_LIMIT)}"'


def source_name(source: str | None) -> str:
    """Return a source's name, short and on one line."""
    return one_line(source or "", 60) or "others"


def source_counts(sources: Mapping[str, int], at_most: int, others: int = 0) -> str:
    """Return sources with their counts: `git (12), slack (8)`.

    Args:
        sources: The number of tools of each source.
        at_most: How many sources to name.
        others: How many tools have no source.
    """
    shown = [f"{source_name(name)} ({count:,})" for name, count in list(sources.items())[:at_most]]
    more = len(sources) - len(shown)
    if others:
        shown.append(f"others ({others:,})")
    return ", ".join(shown) + (f" and {plural(more, 'more source')}" if more > 0 else "")


def did_you_mean(near: Sequence[str]) -> str:
    """Return near names as a question."""
    return f"Did you mean {' or '.join(near)}?"
