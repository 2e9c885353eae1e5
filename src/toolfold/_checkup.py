"""What would hurt in a catalog: found before a model finds it.

Pure: tools in, findings out. The command line prints them.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from toolfold import prompts
from toolfold._json_values import compact
from toolfold.arguments import schema_problem
from toolfold.catalog import owner
from toolfold.invisible import marks
from toolfold.search._document import fields
from toolfold.search._text import STOPWORDS, terms
from toolfold.tokens import estimate
from toolfold.tool import Tool, wire_name
from toolfold.wire import write

__all__ = ["Finding", "check_tools", "costliest"]

Severity = Literal["error", "warning"]

DESCRIPTION_LIMIT = 2_000
"""From how many characters on a description is called over-long."""

_SHORT_DESCRIPTION = 12
_DUPLICATE_AT = 0.85
_COMMON_TERM = 200
_TWINS = str.maketrans(
    "аеорсухіјѕԁɡһкмтвнԛԝαοερντικυχ01l",
    "aeopcyxijsdghkmtbhqwaoepvtikyxoii",
)
"""Letters of other alphabets, and digits, that are drawn like Latin ones."""


class Finding(NamedTuple):
    """One thing that would hurt."""

    severity: Severity
    kind: str
    tools: tuple[str, ...]
    message: str


def check_tools(tools: Sequence[Tool]) -> list[Finding]:
    """Return what would hurt in a list of tools, errors first."""
    findings = [
        *_clashes(tools),
        *(finding for tool in tools for finding in _one(tool)),
        *_twins(tools),
        *_near_duplicates(tools),
    ]
    return sorted(findings, key=lambda finding: finding.severity != "error")


def costliest(tools: Iterable[Tool], limit: int = 5) -> list[tuple[str, int]]:
    """Return the tools whose definitions cost most, with their estimated tokens."""
    costs = [(tool.name, estimate(compact(write(tool, "openai-chat")))) for tool in tools]
    return sorted(costs, key=lambda item: (-item[1], item[0]))[:limit]


def _clashes(tools: Sequence[Tool]) -> Iterator[Finding]:
    seen: dict[str, Tool] = {}
    for tool in tools:
        name = wire_name(tool.name)
        if tool.name in prompts.BRIDGE_NAMES:
            message = f"from {owner(tool)}, has the name of a bridge tool"
            yield _clash((tool.name,), message, tool)
        if name in seen:
            message = f"from {owner(seen[name])} and from {owner(tool)}"
            yield _clash((seen[name].name, tool.name), message, seen[name], tool)
        seen.setdefault(name, tool)


def _twins(tools: Sequence[Tool]) -> Iterator[Finding]:
    """Yield tools whose names a person reads as one."""
    seen: dict[str, Tool] = {}
    for tool in tools:
        twin = seen.setdefault(_skeleton(tool.name), tool)
        if twin.name != tool.name:
            message = f"from {owner(twin)} and from {owner(tool)}: their names look alike"
            yield Finding("warning", "look-alike names", (twin.name, tool.name), message)


def _skeleton(name: str) -> str:
    """Return what an eye makes of a name: without case, separators, accents, and foreign twins."""
    decomposed = unicodedata.normalize("NFKD", name).casefold().translate(_TWINS)
    return "".join(character for character in decomposed if character.isalnum())


def _clash(names: tuple[str, ...], message: str, *tools: Tool) -> Finding:
    # A tool with a source gives way when it is folded; two without one cannot.
    if any(tool.source is not None for tool in tools):
        return Finding("warning", "name clash", names, f"{message}: one is served as source__name")
    return Finding("error", "name clash", names, message)


def _one(tool: Tool) -> Iterator[Finding]:
    for mark in marks(tool):
        yield Finding("warning", "worth a look", (tool.name,), mark)
    problem = schema_problem(tool)
    if problem:
        yield Finding(
            "error", "unusable schema", (tool.name,), f"arguments pass unchecked: {problem}"
        )
    length = len(tool.description.strip())
    if length == 0:
        message = "a search can find it by its name and parameters alone"
        yield Finding("warning", "missing description", (tool.name,), message)
    elif length < _SHORT_DESCRIPTION:
        message = f"{tool.description.strip()!r} says little to a search"
        yield Finding("warning", "short description", (tool.name,), message)
    elif length > DESCRIPTION_LIMIT:
        message = f"{length:,} characters, about {length // 4:,} tokens"
        yield Finding("warning", "over-long description", (tool.name,), message)


def _near_duplicates(tools: Sequence[Tool]) -> Iterator[Finding]:
    """Yield pairs of tools whose names and descriptions hold nearly the same words."""
    words = [_words(tool) for tool in tools]
    holders: dict[str, list[int]] = defaultdict(list)
    for i, own in enumerate(words):
        for word in own:
            holders[word].append(i)
    # Two near-duplicates share almost all words, rare ones included, so words that most
    # tools hold need not be looked at.
    shared: dict[tuple[int, int], int] = defaultdict(int)
    for places in holders.values():
        if len(places) <= _COMMON_TERM:
            for n, i in enumerate(places):
                for j in places[n + 1 :]:
                    shared[i, j] += 1
    for i, j in sorted(shared):
        union = len(words[i] | words[j])
        if union > 2 and len(words[i] & words[j]) / union >= _DUPLICATE_AT:
            message = "a search can hardly tell them apart"
            yield Finding("warning", "near duplicates", (tools[i].name, tools[j].name), message)


def _words(tool: Tool) -> frozenset[str]:
    texts = fields(tool)
    return frozenset(terms(f"{texts.name} {texts.description}")) - STOPWORDS
