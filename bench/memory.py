"""One process that folds thousands of catalogs it will never see again, and its memory.

    python -m bench.memory strangers    # every catalog in words of its own, made up
    python -m bench.memory realistic    # real tools in ever new selections, with a few new words

`python -m bench memory` runs both, each in a process of its own. The index on disk is off, so
that what is kept is kept in memory.
"""

from __future__ import annotations

import gc
import json
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

from bench import data
from bench.processes import resident_mb
from toolfold import Answer, Settings, fold

__all__ = ["CATALOGS", "EVERY", "FLAT", "KINDS", "SEARCHES", "drift", "measure"]

CATALOGS = 2_000
"""How many distinct catalogs are folded."""

SEARCHES = 10
"""How many searches each of them answers."""

EVERY = 250
"""After so many catalogs the memory is read."""

FLAT = 5.0
"""Megabytes by which the last quarter may lie above the second."""

_TOOLS = 24
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def measure(kind: str, catalogs: int = CATALOGS) -> dict[int, float]:
    """Fold `catalogs` distinct lists, search each, and return the megabytes on the way.

    Args:
        kind: One of `KINDS`.
        catalogs: How many.

    Returns:
        The resident megabytes after every `EVERY` catalogs, by how many there were.
    """
    chance = random.Random(kind)
    settings = Settings(enabled="on", cache_dir="off")
    read: dict[int, float] = {}
    for number in range(1, catalogs + 1):
        tools, queries = KINDS[kind](chance, number)
        folded = fold(tools, settings=settings)
        for query in queries:
            answer = folded.resolve("tool_search", {"query": query})
            assert isinstance(answer, Answer), answer
        if number % EVERY == 0:
            gc.collect()
            read[number] = resident_mb()
    return read


def drift(read: dict[int, float]) -> float:
    """Return by how much the last quarter lies above the second, in megabytes."""
    values = list(read.values())
    quarter = len(values) // 4
    return _mean(values[-quarter:]) - _mean(values[quarter : 2 * quarter])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _strangers(chance: random.Random, number: int) -> tuple[list[data.Tool], list[str]]:
    """Return tools of made-up words, no two catalogs with a word in common but by accident."""

    def words(count: int) -> str:
        return " ".join(_word(chance) for _ in range(count))

    tools = [
        _tool(f"{_word(chance)}_{_word(chance)}_{n}", words(14), chance) for n in range(_TOOLS)
    ]
    asked = [
        f"{chance.choice(tools)['description'].split()[0]} {words(5)}" for _ in range(SEARCHES)
    ]
    return tools, asked


def _realistic(chance: random.Random, number: int) -> tuple[list[data.Tool], list[str]]:
    """Return a selection of real tools, each told with a word that no other catalog has."""
    real = data.catalog("deploy-226").tools
    tools = [
        {**tool, "description": f"{tool['description']} For {_word(chance)} of {_word(chance)}."}
        for tool in chance.sample(real, _TOOLS)
    ]
    told = [" ".join(str(tool["description"]).split()[:8]) for tool in tools]
    return tools, [f"{chance.choice(told)} {_word(chance)}" for _ in range(SEARCHES)]


def _tool(name: str, description: str, chance: random.Random) -> data.Tool:
    properties = {_word(chance): {"type": "string", "description": _word(chance)} for _ in range(3)}
    return {
        "name": name,
        "description": f"{description}.",
        "parameters": {"type": "object", "properties": properties},
    }


def _word(chance: random.Random) -> str:
    return "".join(chance.choices(_LETTERS, k=chance.randint(4, 11)))


KINDS: dict[str, Callable[[random.Random, int], tuple[list[data.Tool], list[str]]]] = {
    "strangers": _strangers,
    "realistic": _realistic,
}
"""How catalogs are made, by name."""


def main() -> None:
    """Measure the kind that the command line names, and print it."""
    read = measure(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else CATALOGS)
    row: dict[str, Any] = {"catalogs": sys.argv[1], **{f"{n:,}": mb for n, mb in read.items()}}
    drifted = round(drift(read), 1)
    json.dump({**row, "drift MB": drifted, "held": "yes" if drifted <= FLAT else "no"}, sys.stdout)


if __name__ == "__main__":
    main()
