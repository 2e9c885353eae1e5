"""Dates, times and ids: what is certainly none.

A schema's `format` is a promise that servers keep loosely. To refuse what a server would have
taken is worse than to pass what it refuses, so a text counts as wrong only where no reading
of it is right: words, a month 13, a 31st of February. A missing offset, a blank for the `T`,
a missing zero, a date where a date and time are wanted and the other way about, the seconds
since 1970 and an id without its hyphens all pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime

__all__ = ["CHECKED_FORMATS", "EXAMPLES"]

_LONGEST = 64
_DATE = r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})"
_CLOCK = (
    r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?(?: ?[AaPp][Mm])?"
    r"(?: ?(?:[Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?(?: ?\[[A-Za-z_/+-]+\])?"
)
_DAY = re.compile(_DATE)
_TIME = re.compile("[Tt]?" + _CLOCK)
_MOMENT = re.compile(_DATE + "(?:[Tt]| )" + _CLOCK)
_SECONDS = re.compile(r"[+-]?[0-9]{1,19}(?:\.[0-9]+)?")
_ID = re.compile(r"(?:urn:)?(?:uuid:)?\{?[0-9a-f]{8}(-?)(?:[0-9a-f]{4}\1){3}[0-9a-f]{12}\}?", re.I)


def is_moment(text: str) -> bool:
    """Whether a text may be a date, with or without a time."""
    text = text.strip()
    if len(text) > _LONGEST:
        return False
    if _SECONDS.fullmatch(text) or _is_day_and_clock(text):
        return True
    day = _DAY.fullmatch(text)
    return _is_day(*day.groups()) if day else _is_iso(text)


def is_time(text: str) -> bool:
    """Whether a text may be a time of day, with or without a date."""
    text = text.strip()
    if len(text) > _LONGEST:
        return False
    clock = _TIME.fullmatch(text)
    return _is_clock(*clock.groups()) if clock else _is_day_and_clock(text)


def is_id(text: str) -> bool:
    """Whether a text may be a UUID."""
    text = text.strip()
    return len(text) <= _LONGEST and _ID.fullmatch(text) is not None


def _is_day_and_clock(text: str) -> bool:
    moment = _MOMENT.fullmatch(text)
    if moment is None:
        return False
    year, month, day, *clock = moment.groups()
    return _is_day(year, month, day) and _is_clock(*clock)


def _is_iso(text: str) -> bool:
    """Whether it is one of the rarer forms: weeks, or no signs between the numbers."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_day(year: str, month: str, day: str) -> bool:
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return False
    return True


def _is_clock(hour: str, minute: str, second: str | None) -> bool:
    # Midnight may end a day, and a second may be a leap second.
    return int(hour) <= 24 and int(minute) < 60 and int(second or 0) <= 60


CHECKED_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date-time": is_moment,
    "date": is_moment,
    "time": is_time,
    "uuid": is_id,
}
"""The formats that are checked, each with what may be of it. Mail addresses, links and hosts
are not: what servers take for one is wider than any rule."""

EXAMPLES: Mapping[str, str] = {
    "date-time": "2026-01-31T09:30:00Z",
    "date": "2026-01-31",
    "time": "09:30:00Z",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}
"""A value of each format that is checked."""
