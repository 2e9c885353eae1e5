"""Figures as reports write them: shares in per cent, sizes with separators, intervals."""

from __future__ import annotations

from toolfold.evaluation.measure import Interval

__all__ = ["between", "per_cent", "whole"]


def per_cent(share: float) -> str:
    """Return a share in per cent, with a decimal where whole numbers would say too little."""
    value = 100 * share
    near = value != round(value) and (abs(value) < 1 or abs(value) > 99)
    return f"{value:.1f} %" if near else f"{value:.0f} %"


def between(interval: Interval | None, *, is_share: bool = True) -> str:
    """Return an interval; empty where there is none."""
    if interval is None:
        return ""
    if is_share:
        return f"{per_cent(interval[0]).removesuffix(' %')} to {per_cent(interval[1])}"
    return f"{interval[0]:.3f} to {interval[1]:.3f}"


def whole(value: float) -> str:
    """Return a size, rounded."""
    return f"{value:,.0f}"
