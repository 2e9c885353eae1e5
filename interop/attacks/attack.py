"""An attack: a sentence that must hold, and the way to break it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attacks.product import Product

__all__ = ["ATTACKS", "Attack", "GaveWay", "attack", "must"]


class GaveWay(Exception):
    """The attack succeeded."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One way in, tried."""

    item: int
    """What it belongs to: 1-5 names and scopes, 6-8 cost, 9-13 secrets and consent."""
    promise: str
    """What holds where the attack fails."""
    run: Callable[[Product, Path], None]
    """Tries it in an empty folder; raises `GaveWay` where it succeeds."""


ATTACKS: list[Attack] = []
"""All attacks, in the order in which they are written."""


def attack(item: int) -> Callable[[Callable[[Product, Path], None]], Callable[..., None]]:
    """Enter a function as an attack; its docstring is the promise."""

    def enter(run: Callable[[Product, Path], None]) -> Callable[..., None]:
        promise = (run.__doc__ or run.__name__).strip().splitlines()[0].rstrip(".")
        ATTACKS.append(Attack(item, promise, run))
        return run

    return enter


def must(holds: object, otherwise: object) -> None:
    """Say that an attack succeeded where something does not hold."""
    if not holds:
        raise GaveWay(str(otherwise)[:300])
