"""The tools that stand for folded ones, and what they say about themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from toolfold.prompts.wording import plural, source_counts, source_name
from toolfold.tool import Json, Tool

__all__ = [
    "BRIDGE_NAMES",
    "FOLDED",
    "FULL",
    "SHORT",
    "TEXTS",
    "TOOL_CALL",
    "TOOL_DESCRIBE",
    "TOOL_SEARCH",
    "Texts",
    "call_tool",
    "describe_tool",
    "is_own",
    "listed_by_source",
    "listed_names",
    "listed_source",
    "of_many_sources",
    "of_sources",
    "search_tool",
    "stub_search_tool",
]

TOOL_SEARCH = "tool_search"
TOOL_DESCRIBE = "tool_describe"
TOOL_CALL = "tool_call"
BRIDGE_NAMES = (TOOL_SEARCH, TOOL_DESCRIBE, TOOL_CALL)
"""The names that stand for folded tools. No other tool may have one."""


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
    stub: str
    """What stands for the parameters of a stub."""

    stub_search: str
    stub_query: str
    stub_guidance: str
    reveal_search: str
    reveal_guidance: str

    @property
    def stub_parameters(self) -> Mapping[str, Json]:
        """The parameters of a stub."""
        return {
            "type": "object",
            "properties": {},
            "additionalProperties": True,
            "description": self.stub,
        }


_REVEAL_SEARCH = (
    "Find tools that are not listed here, by what they do. What is found is then listed: call "
    "it directly, by its name."
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
    stub="Call tool_search with this tool's name to load its parameters.",
    stub_search="Load the parameters of tools listed without them, by name or by what they do.",
    stub_query="A tool's name, or what you need; empty lists all names",
    stub_guidance="Some of your tools are listed without their parameters. Before you use one, "
    "call tool_search with its name to load them.",
    reveal_search=_REVEAL_SEARCH,
    reveal_guidance="Not all of your tools are listed. Before you say that something cannot be "
    "done, look for a tool with tool_search: what it finds is then listed. Call listed tools "
    "directly.",
)
SHORT = Texts(
    search="Find a tool. Then run it with tool_call.",
    query="What you need",
    limit="",
    describe="Show a found tool's schema.",
    describe_name="",
    call="Run a tool that tool_search found.",
    guidance="No listed tool fits? First call tool_search, then tool_call with a name it found.",
    stub="Call tool_search first.",
    stub_search="Load a tool's parameters before you call it.",
    stub_query="The tool's name",
    stub_guidance="Before you use a tool without parameters, call tool_search with its name.",
    reveal_search=_REVEAL_SEARCH,
    reveal_guidance="No listed tool fits? First call tool_search, then the tool that it found.",
)
TEXTS: Mapping[str, Texts] = {"full": FULL, "short": SHORT}
"""The texts, by the setting that chooses them."""


def search_tool(lead: str, count: int, listing: str, texts: Texts = FULL) -> Tool:
    """Return the search tool over `count` folded tools, which `lead` says how to use."""
    return Tool(
        TOOL_SEARCH,
        f"{lead} {plural(count, 'tool')}{listing}",
        {
            "type": "object",
            "properties": {
                "query": _property("string", texts.query),
                "limit": _property("integer", texts.limit),
            },
            "required": ["query"],
        },
        title="Search tools",
        annotations={"readOnlyHint": True},
    )


def stub_search_tool(count: int, texts: Texts = FULL) -> Tool:
    """Return the search tool that stands beside `count` stubs."""
    return Tool(
        TOOL_SEARCH,
        f"{texts.stub_search} {plural(count, 'tool')} can be loaded.",
        {
            "type": "object",
            "properties": {"query": _property("string", texts.stub_query)},
            "required": ["query"],
        },
        title="Search tools",
        annotations={"readOnlyHint": True},
    )


@cache
def describe_tool(texts: Texts = FULL) -> Tool:
    """Return the bridge's tool that shows a schema."""
    return Tool(
        TOOL_DESCRIBE,
        texts.describe,
        {
            "type": "object",
            "properties": {"name": _property("string", texts.describe_name)},
            "required": ["name"],
        },
        title="Describe tools",
        annotations={"readOnlyHint": True},
    )


@cache
def call_tool(texts: Texts = FULL) -> Tool:
    """Return the bridge's tool that runs another."""
    return Tool(
        TOOL_CALL,
        texts.call,
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["name", "arguments"],
        },
        title="Call a tool",
    )


def _property(kind: str, description: str) -> Json:
    return {"type": kind, "description": description} if description else {"type": kind}


def is_own(tool: Tool) -> bool:
    """Whether a tool with a bridge's name is one that an earlier fold put there."""
    leads: dict[str, list[str]] = {
        TOOL_SEARCH: [
            lead for t in TEXTS.values() for lead in (t.search, t.stub_search, t.reveal_search)
        ],
        TOOL_DESCRIBE: [t.describe for t in TEXTS.values()],
        TOOL_CALL: [t.call for t in TEXTS.values()],
    }
    return tool.description.startswith(tuple(leads[tool.name]))


FOLDED = " folded."
"""Ends the search tool's description where it lists nothing."""


def of_sources(sources: Mapping[str, int], at_most: int, others: int) -> str:
    """End of the search tool's description where it counts the tools of each source."""
    return f" of {source_counts(sources, at_most, others)}."


def of_many_sources(count: int) -> str:
    """End of the search tool's description where there is no room to name a source."""
    return f" of {plural(count, 'source')}."


def listed_by_source(lines: Iterable[str]) -> str:
    """End of the search tool's description where it names the tools of each source."""
    return ", by source:\n" + "\n".join(lines)


def listed_names(source: str, names: Iterable[str]) -> str:
    """Return the line of a source with the names of its tools."""
    return f"{source_name(source)}: {' '.join(names)}"


def listed_source(source: str, count: int) -> str:
    """Return the line of a source whose tools are not named."""
    return f"{source_name(source)} ({count})"
