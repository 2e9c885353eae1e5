"""Figures as reports write them: shares in per cent, sizes with separators, intervals."""

from __future__ import annotations

from toolfold.evaluation.measure import Interval

__all__ = ["between", "per_cent"]

_UNIT = "\u00a0%"
"""A line never breaks between a figure and its unit."""


def per_cent(share: float) -> str:
    """Return a share in per cent, with a decimal where whole numbers would say too little."""
    value = 100 * share
    near = value != round(value) and (abs(value) < 1 or abs(value) > 99)
    return f"{value:.1f}{_UNIT}" if near else f"{value:.0f}{_UNIT}"


def between(interval: Interval | None, *, is_share: bool = True) -> str:
    """Return an interval; empty where there is none."""
    if interval is None:
        return ""
    if is_share:
        return f"{per_cent(interval[0]).removesuffix(_UNIT)} to {per_cent(interval[1])}"
    return f"{interval[0]:.3f} to {interval[1]:.3f}"
