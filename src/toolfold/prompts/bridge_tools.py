"""The tools that stand for folded ones, and what they say about themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property

from toolfold.prompts.wording import plural, source_counts, source_name
from toolfold.tool import Json, Tool

__all__ = [
    "BRIDGE_NAMES",
    "DEFAULT_NAMES",
    "FOLDED",
    "FULL",
    "NAMED_TEXTS",
    "SHORT",
    "STUB_PARAMETERS",
    "TEXTS",
    "TOOL_CALL",
    "TOOL_DESCRIBE",
    "TOOL_SEARCH",
    "BridgeNames",
    "Texts",
    "bridge_names",
    "call_tool",
    "describe_tool",
    "holds_bridge",
    "listed_by_source",
    "listed_names",
    "listed_source",
    "of_many_sources",
    "of_sources",
    "search_tool",
    "stub_search_tool",
    "texts_of",
    "with_source",
]

TOOL_SEARCH = "tool_search"
TOOL_DESCRIBE = "tool_describe"
TOOL_CALL = "tool_call"
BRIDGE_NAMES = (TOOL_SEARCH, TOOL_DESCRIBE, TOOL_CALL)
"""What the tools that stand for folded ones are called, unless a setting renames them."""


@dataclass(frozen=True)
class BridgeNames:
    """What the tools that stand for folded ones are called."""

    search: str = TOOL_SEARCH
    describe: str = TOOL_DESCRIBE
    call: str = TOOL_CALL

    @cached_property
    def all(self) -> tuple[str, str, str]:
        """The three names, in the order in which they are listed."""
        return self.search, self.describe, self.call

    def role(self, name: str) -> str | None:
        """Return which of `BRIDGE_NAMES` a name stands for, if it does."""
        return self._roles.get(name)

    @cached_property
    def _roles(self) -> Mapping[str, str]:
        return dict(zip(self.all, BRIDGE_NAMES, strict=True))

    def said(self, text: str) -> str:
        """Return a text of ours with these names in it."""
        if self.all == BRIDGE_NAMES:
            return text
        return _OWN_NAMES.sub(lambda found: self.all[BRIDGE_NAMES.index(found[0])], text)


_OWN_NAMES = re.compile("|".join(BRIDGE_NAMES))
DEFAULT_NAMES = BridgeNames()


@cache
def bridge_names(prefix: str) -> BridgeNames:
    """Return the names that begin with a prefix: `tool` gives `tool_search` and so on."""
    return BridgeNames(*(f"{prefix}{name.removeprefix('tool')}" for name in BRIDGE_NAMES))


@dataclass(frozen=True, slots=True)
class Texts:
    """What the bridge's tools and the stubs say about themselves."""

    search: str
    query: str
    limit: str
    describe: str
    describe_name: str
    call: str
    guidance: str
    stub_search: str
    stub_query: str
    stub_guidance: str
    reveal_search: str
    reveal_guidance: str
    native_search: str
    native_guidance: str


STUB_PARAMETERS: Mapping[str, Json] = {"type": "object", "properties": {}}
"""What stands for the parameters of a stub. How to load them is said once, by the search tool."""

_REVEAL_SEARCH = (
    "Find tools that are not listed here, by what they do. What is found is then listed: call "
    "it directly, by its name."
)
_NATIVE_SEARCH = (
    "Find tools that are not listed here, by what they do. What is found is loaded: call it "
    "directly, by its name."
)
FULL = Texts(
    search="Find tools that are not listed here, by what they do. Hits come with their signatures: "
    "most can be run with tool_call at once.",
    query="What you need, or a tool's name; several needs separated by |",
    limit="Hits per need",
    describe="Get the full schema of a found tool, if its signature is not enough.",
    describe_name="One name, or several with commas",
    call="Run a found tool. Listed tools are called directly instead.",
    guidance="Not all of your tools are listed. Before you say that something cannot be done, look "
    "for a tool with tool_search, then run it with tool_call. Call listed tools directly.",
    stub_search="Load the parameters of tools listed without them, by name or by what they do: "
    "first this, then the tool.",
    stub_query="A tool's name, or what you need; empty lists all names",
    stub_guidance="Some of your tools are listed without their parameters. Before you use one, "
    "call tool_search with its name to load them.",
    reveal_search=_REVEAL_SEARCH,
    reveal_guidance="Not all of your tools are listed. Before you say that something cannot be "
    "done, look for a tool with tool_search: what it finds is then listed. Call listed tools "
    "directly.",
    native_search=_NATIVE_SEARCH,
    native_guidance="Not all of your tools are listed. Before you say that something cannot be "
    "done, look for a tool with tool_search, then call what it found by its name.",
)
SHORT = Texts(
    search="Find a tool. Then run it with tool_call.",
    query="What you need",
    limit="",
    describe="Show a found tool's schema.",
    describe_name="",
    call="Run a tool that tool_search found.",
    guidance="No listed tool fits? First call tool_search, then tool_call with a name it found.",
    stub_search="Load a tool's parameters before you call it.",
    stub_query="The tool's name",
    stub_guidance="Before you use a tool without parameters, call tool_search with its name.",
    reveal_search=_REVEAL_SEARCH,
    reveal_guidance="No listed tool fits? First call tool_search, then the tool that it found.",
    native_search=_NATIVE_SEARCH,
    native_guidance="No listed tool fits? First call tool_search, then the tool that it found.",
)
TEXTS: Mapping[str, Texts] = {"full": FULL, "short": SHORT}
"""The texts, by the setting that chooses them."""

_NAMED_NATIVE_SEARCH = (
    "Load tools, by a name from below or by what they do. What is found is loaded: call it "
    "directly, by its name."
)
_NAMED_REVEAL_SEARCH = (
    "Load tools, by a name from below or by what they do. What is found then joins your tools: "
    "call it directly, by its name."
)
NAMED_TEXTS: Mapping[str, Texts] = {
    "full": replace(
        FULL,
        search="Find tools by what they do; a name below needs no search. Hits come with their "
        "signatures: most can be run with tool_call at once.",
        describe="Get a tool's full schema, if its signature is unknown or not enough.",
        call="Run a named or found tool. Other tools are called directly instead.",
        guidance="Some of your tools are only named, in the description of tool_search. Before you "
        "say that something cannot be done, look there, or search with tool_search. Load what you "
        "need with tool_describe and run it with tool_call. Call your other tools directly.",
        reveal_search=_NAMED_REVEAL_SEARCH,
        reveal_guidance="Some of your tools are only named, in the description of tool_search. "
        "Before you use one, or say that something cannot be done, look for it with tool_search: "
        "what it finds joins your tools. Call those directly.",
        native_search=_NAMED_NATIVE_SEARCH,
        native_guidance="Some of your tools are only named, in the description of tool_search. "
        "Before you use one, or say that something cannot be done, load it with tool_search, then "
        "call it by its name.",
    ),
    "short": replace(
        SHORT,
        describe="Show a tool's schema.",
        call="Run a tool that tool_search names or finds.",
        guidance="No tool fits? Take a name from tool_search: first tool_describe, then tool_call.",
        reveal_search=_NAMED_REVEAL_SEARCH,
        reveal_guidance="No tool fits? First call tool_search with a name from it, then that tool.",
        native_search=_NAMED_NATIVE_SEARCH,
        native_guidance="No tool fits? First call tool_search with a name from it, then that tool.",
    ),
}
"""The same where the search tool's description names the folded tools."""


@cache
def texts_of(kind: str, names: BridgeNames = DEFAULT_NAMES, *, named: bool = False) -> Texts:
    """Return the texts that a setting chooses, with the names of the bridge in them.

    Args:
        kind: `full` or `short`.
        names: What the bridge's tools are called.
        named: Whether the search tool's description names folded tools.
    """
    chosen = (NAMED_TEXTS if named else TEXTS)[kind]
    return Texts(**{item.name: names.said(getattr(chosen, item.name)) for item in fields(chosen)})


def search_tool(
    lead: str,
    count: int,
    listing: str,
    texts: Texts = FULL,
    names: BridgeNames = DEFAULT_NAMES,
) -> Tool:
    """Return the search tool over `count` folded tools, which `lead` says how to use."""
    properties = {
        "query": _property("string", texts.query),
        "limit": _property("integer", texts.limit),
    }
    said = f"{lead} {plural(count, 'tool')}{listing}"
    return _reading(names.search, said, properties, "query", title="Search tools")


def stub_search_tool(count: int, texts: Texts = FULL, names: BridgeNames = DEFAULT_NAMES) -> Tool:
    """Return the search tool that stands beside `count` stubs."""
    properties = {"query": _property("string", texts.stub_query)}
    said = f"{texts.stub_search} {plural(count, 'tool')} can be loaded."
    return _reading(names.search, said, properties, "query", title="Search tools")


@cache
def describe_tool(texts: Texts = FULL, names: BridgeNames = DEFAULT_NAMES) -> Tool:
    """Return the bridge's tool that shows a schema."""
    properties = {"name": _property("string", texts.describe_name)}
    return _reading(names.describe, texts.describe, properties, "name", title="Describe tools")


@cache
def call_tool(texts: Texts = FULL, names: BridgeNames = DEFAULT_NAMES) -> Tool:
    """Return the bridge's tool that runs another."""
    properties = {"name": _property("string", ""), "arguments": _property("object", "")}
    parameters = _object(properties, "name", "arguments")
    return Tool(names.call, texts.call, parameters, title="Call a tool")


def _reading(
    name: str, description: str, properties: Mapping[str, Json], required: str, *, title: str
) -> Tool:
    """Return a tool of the bridge that changes nothing."""
    hints = {"readOnlyHint": True}
    parameters = _object(properties, required)
    return Tool(name, description, parameters, title=title, annotations=hints)


def _object(properties: Mapping[str, Json], *required: str) -> Mapping[str, Json]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _property(kind: str, description: str) -> Json:
    return {"type": kind, "description": description} if description else {"type": kind}


_COUNTED = r" [\d,]+ tools?(?: folded\.| of [^\n]+\.|, by source(?:, called source__tool)?:\n.+)"


def holds_bridge(tools: Sequence[Tool], names: BridgeNames = DEFAULT_NAMES) -> bool:
    """Whether a list holds the tools that an earlier fold put there, all of one strategy.

    A tool that says where it comes from is its source's, whatever it says beside. The others
    must say what ours say from the first word to the last, and take what ours take.
    """
    own_names = frozenset(names.all)
    mine = {tool.name: tool for tool in tools if tool.name in own_names and tool.source is None}
    return bool(mine) and any(
        _are_same(mine, names, texts_of(kind, own, named=named))
        for kind in TEXTS
        for own in {names, DEFAULT_NAMES}
        for named in (False, True)
    )


def _are_same(mine: Mapping[str, Tool], names: BridgeNames, texts: Texts) -> bool:
    search = mine.get(names.search)
    if search is None:
        return False

    def is_there(tool: Tool) -> bool:
        other = mine.get(tool.name)
        return other is not None and _content(other) == _content(tool)

    described = is_there(describe_tool(texts, names))
    called = is_there(call_tool(texts, names))
    leads = {
        texts.search: described and called,
        texts.reveal_search: described,
        texts.native_search: True,
    }
    takes = search.parameters
    if takes == search_tool("", 0, "", texts, names).parameters:
        return any(
            holds and re.fullmatch(re.escape(lead) + _COUNTED, search.description, re.DOTALL)
            for lead, holds in leads.items()
        )
    loaded = re.escape(texts.stub_search) + r" [\d,]+ tools? can be loaded\."
    is_stubs = takes == stub_search_tool(0, texts, names).parameters
    return is_stubs and re.fullmatch(loaded, search.description) is not None


def _content(tool: Tool) -> tuple[str, Mapping[str, Json]]:
    return tool.description, tool.parameters


FOLDED = " folded."
"""Ends the search tool's description where it lists nothing."""


def of_sources(sources: Mapping[str, int], at_most: int, others: int) -> str:
    """End of the search tool's description where it counts the tools of each source."""
    return f" of {source_counts(sources, at_most, others)}."


def of_many_sources(count: int) -> str:
    """End of the search tool's description where there is no room to name a source."""
    return f" of {plural(count, 'source')}."


def listed_by_source(lines: Iterable[str], *, prefixed: bool = False) -> str:
    """End of the search tool's description where it names the tools of each source."""
    called = ", called source__tool" if prefixed else ""
    return f", by source{called}:\n" + "\n".join(lines)


def with_source(source: str, name: str) -> str:
    """Return a tool's short name with its source before it, as a model is told to write it."""
    return f"{source}__{name}"


def listed_names(source: str, names: Iterable[str]) -> str:
    """Return the line of a source with the names of its tools."""
    return f"{source_name(source)}: {' '.join(names)}"


def listed_source(source: str, count: int) -> str:
    """Return the line of a source whose tools are not named."""
    return f"{source_name(source)} ({count})"
