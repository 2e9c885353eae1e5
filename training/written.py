"""Tools with requests that were written for training, and which of them train what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from catalog import Tool, bucket, rows

HERE = Path(__file__).parent
REQUESTS = HERE / "requests"


def written() -> tuple[list[Tool], list[str], list[int]]:
    """Return the tools that were written, their requests, and whose each request is.

    `requests` are people's words, `asked` what a model would send to a search tool.
    """
    tools: list[Tool] = []
    queries: list[str] = []
    gold: list[int] = []
    for path in sorted(REQUESTS.glob("*.jsonl")):
        for row in rows(path):
            parameters = tuple((str(name), "") for name in row["parameters"])
            tools.append(Tool(row["name"], row["description"], parameters, row.get("server") or ""))
            own = [*row["requests"], *row.get("asked", ())]
            queries += own
            gold += [len(tools) - 1] * len(own)
    return tools, queries, gold


class Member(NamedTuple):
    """A tool of a family, and what is asked of it."""

    tool: Tool
    requests: tuple[str, ...]
    """In people's words."""
    asked: tuple[str, ...]
    """As a model asks."""


FIRST_OF_SIBLINGS = "k"
"""In the files from this one on, tools of one server are siblings."""

HELD_FAMILIES = 3
"""Of ten families of siblings so many are kept from every table, for fitting the scorer."""


def families(first: str = FIRST_OF_SIBLINGS) -> dict[tuple[str, str], list[Member]]:
    """Return the tools of each server of the files from `first` on, by file and server."""
    found: dict[tuple[str, str], list[Member]] = defaultdict(list)
    for path in sorted(REQUESTS.glob("*.jsonl")):
        for row in rows(path) if path.stem >= first else ():
            parameters = tuple((str(name), "") for name in row["parameters"])
            tool = Tool(row["name"], row["description"], parameters, row.get("server") or "")
            own = Member(tool, tuple(row["requests"]), tuple(row.get("asked", ())))
            found[path.stem, tool.server].append(own)
    return found


def unseen() -> dict[tuple[str, str], list[Member]]:
    """Return the families of siblings that no table is taught."""
    return {key: own for key, own in families().items() if _is_held(key[1])}


def _is_held(server: str) -> bool:
    return bucket(f"family {server}") < HELD_FAMILIES


def taught(is_fold: bool) -> list[Member]:
    """Return the tools that a table is taught."""
    own = (
        member
        for (file, server), members in families("").items()
        if file < FIRST_OF_SIBLINGS or not _is_held(server)
        for member in members
    )
    return [member for member in own if not is_kept_out(member.tool, is_fold)]


class Asked(NamedTuple):
    """What is asked of a tool of a registry or a vendor."""

    requests: tuple[str, ...]
    """In people's words."""
    asked: tuple[str, ...]
    """As a model asks that has not seen the tool."""


def registry() -> dict[tuple[str, str, str], Asked]:
    """Return the requests of `registry.jsonl`, by catalog, server and name of the tool."""
    return {
        (row["catalog"], row["server"], row["tool"]): Asked(
            tuple(row["requests"]), tuple(row["asked"])
        )
        for row in rows(HERE / "registry.jsonl")
    }


def several() -> Iterator[tuple[str, str, list[str]]]:
    """Yield requests that need several tools: server, request, the tools' names."""
    for row in rows(HERE / "several.jsonl"):
        yield row["server"], row["request"], row["tools"]


def unserved() -> dict[tuple[str, str], list[str]]:
    """Return requests that no tool serves, by kind and whose words they are."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows(HERE / "unserved.jsonl"):
        found[row["kind"], "people"].append(row["request"])
        found[row["kind"], "asked"].append(row["asked"])
    return found


class Real(NamedTuple):
    """A request for tools of a real server, and one of the same field that the server leaves unserved."""

    tools: tuple[str, ...]
    """The names of the tools that serve it."""
    served: dict[str, str]
    """By whose words it is: `people` or `asked`, as a model asks, `|` between needs."""
    unserved: dict[str, str]


def real() -> dict[tuple[str, str], list[Real]]:
    """Return the requests of `real.jsonl`, by catalog and server; the tools are the catalogs' own."""
    found: dict[tuple[str, str], list[Real]] = defaultdict(list)
    for row in rows(HERE / "real.jsonl"):
        own = Real(tuple(row["tools"]), _voices(row), _voices(row["unserved"]))
        found[row["catalog"], row["server"]].append(own)
    return found


class NearMiss(NamedTuple):
    """A tool, one request that it serves, and requests of its domain that it does not serve."""

    tool: Tool
    domain: str
    served: dict[str, str]
    """By whose words it is: `people` or `asked`, as a model asks."""
    unserved: tuple[dict[str, str], ...]
    """The same; no tool of the domain serves them."""


def near_misses() -> dict[str, list[NearMiss]]:
    """Return the tools of `near.jsonl`, by domain."""
    found: dict[str, list[NearMiss]] = defaultdict(list)
    for row in rows(HERE / "near.jsonl"):
        parameters = tuple((str(name), "") for name in row["parameters"])
        tool = Tool(row["name"], row["description"], parameters)
        unserved = tuple(_voices(said) for said in row["unserved"])
        own = NearMiss(tool, row["domain"], _voices(row["served"]), unserved)
        found[own.domain].append(own)
    return found


def _voices(said: dict[str, str]) -> dict[str, str]:
    return {"people": said["request"], "asked": said["asked"]}


def part(tool: Tool) -> int:
    """Return a written tool's bucket: 0 is dev, 1 and 2 fit the scorer of the fold models."""
    return bucket("written " + tool.name)


def is_kept_out(tool: Tool, fold: bool) -> bool:
    """Tell whether a written tool is not for training."""
    return part(tool) < (3 if fold else 1)
