"""Prometheus' text format: counters, gauges and histograms as lines."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Literal

__all__ = ["Labels", "Times", "family", "head", "sample"]

Labels = tuple[tuple[str, str], ...]
"""Names and values that tell samples apart."""


class Times:
    """How many took how long."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds

    def samples(self, name: str, labels: Labels) -> Iterator[str]:
        """Yield its lines."""
        below = 0
        for bound, count in zip((*self.bounds, None), self.counts, strict=True):
            below += count
            text = "+Inf" if bound is None else f"{bound:g}"
            yield sample(f"{name}_bucket", (*labels, ("le", text)), below)
        yield sample(f"{name}_sum", labels, self.total)
        yield sample(f"{name}_count", labels, below)


def head(name: str, kind: str, meaning: str) -> Iterator[str]:
    """Yield what stands before the samples of a name."""
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def family(
    name: str,
    kind: Literal["counter", "gauge"],
    meaning: str,
    samples: Mapping[Labels, float],
) -> Iterator[str]:
    """Yield the lines of a counter or a gauge."""
    name = f"{name}_total" if kind == "counter" else name
    yield from head(name, kind, meaning)
    for labels, value in samples.items():
        yield sample(name, labels, value)


def sample(name: str, labels: Labels, value: float) -> str:
    """Return the line of one value."""
    inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inner}}} {value}" if inner else f"{name} {value}"


def _escaped(text: str) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return text.encode("utf-8", "replace").decode()
