"""What a memory holds, as people look at it and carry it: one JSON object a line."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from toolfold._bounds import one_line
from toolfold._json_values import compact, parse
from toolfold.errors import ToolfoldError
from toolfold.memory._kept import KeptRequest, Ranked
from toolfold.tool import Json, is_array, is_object

__all__ = ["MemoryRecord", "MemoryRecordError", "records_of"]

TEXT_LIMIT = 400
"""How long a request is kept, in characters."""

NAME_LIMIT = 256
RANKED_AT_MOST = 20
_COUNT_AT_MOST = 1_000_000


class MemoryRecordError(ToolfoldError):
    """A line is no record of a memory."""


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """That a request led to a tool."""

    request: str
    tool: str
    digest: str
    principal: str = ""
    worked: int = 1
    """How often the call was answered without an error."""

    failed: int = 0
    """How often it was not."""

    at: float = 0.0
    """When it was last called, in seconds since 1970."""

    ranked: Ranked = ()
    """How search by itself ranked tools for the request."""

    def line(self) -> str:
        """Return it as a line of JSON."""
        ranked = [[*key, round(value, 3)] for key, value in self.ranked]
        return compact({**asdict(self), "ranked": ranked})

    @classmethod
    def read(cls, line: str) -> MemoryRecord:
        """Return what a line of JSON holds.

        Raises:
            MemoryRecordError: It is no record.
        """
        try:
            value: Json = parse(line)
        except (ValueError, RecursionError):
            value = None
        texts = (
            [value.get(key) for key in ("request", "tool", "digest")] if is_object(value) else []
        )
        if not is_object(value) or not all(isinstance(text, str) and text for text in texts):
            raise MemoryRecordError(
                f"no record of a memory: {one_line(line, 80)!r}",
                hint='write {"request": "…", "tool": "…", "digest": "…"}, as an export does',
            )
        request, tool, digest = map(str, texts)
        return cls(
            request,
            tool[:NAME_LIMIT],
            digest[:NAME_LIMIT],
            str(value.get("principal") or "")[:NAME_LIMIT],
            _count(value.get("worked", 1)),
            _count(value.get("failed", 0)),
            _moment(value.get("at")),
            tuple(_ranked(value.get("ranked"))),
        )


def records_of(kept: KeptRequest) -> list[MemoryRecord]:
    """Return what is kept of one request."""
    return [
        MemoryRecord(
            kept.text, key[0], key[1], kept.principal, worked, failed, kept.at, kept.ranked
        )
        for key, worked, failed in kept.uses
    ]


def _count(value: Json) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return min(int(value), _COUNT_AT_MOST) if is_count else 0


def _moment(value: Json) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value >= 0 else 0.0


def _ranked(value: Json) -> list[tuple[tuple[str, str], float]]:
    found: list[tuple[tuple[str, str], float]] = []
    for item in value[:RANKED_AT_MOST] if is_array(value) else ():
        if not is_array(item) or len(item) != 3:
            continue
        name, digest, belief = item
        is_told = isinstance(belief, int | float) and math.isfinite(belief)
        if isinstance(name, str) and isinstance(digest, str) and is_told:
            found.append(((name[:NAME_LIMIT], digest[:NAME_LIMIT]), min(float(belief), 0.0)))
    return found
