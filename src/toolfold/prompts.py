"""Every word that a model reads.

Changing a text here changes what models do, so each is snapshot-tested. Texts are short,
say what is wrong before what to do, and never name a tool outside the caller's scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from toolfold.bounds import one_line
from toolfold.tool import Json, Tool

__all__ = ["BRIDGE_NAMES", "TOOL_CALL", "TOOL_DESCRIBE", "TOOL_SEARCH"]

TOOL_SEARCH = "tool_search"
TOOL_DESCRIBE = "tool_describe"
TOOL_CALL = "tool_call"
BRIDGE_NAMES = (TOOL_SEARCH, TOOL_DESCRIBE, TOOL_CALL)
"""The names that stand for folded tools. No other tool may have one."""

FRUITLESS_AT_MOST = 3
"""After so many searches in vain the model is told to go on."""

_QUERY_LIMIT = 120
_SOURCES_AT_MOST = 30


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

    @property
    def stub_parameters(self) -> Mapping[str, Json]:
        """The parameters of a stub."""
        return {
            "type": "object",
            "properties": {},
            "additionalProperties": True,
            "description": self.stub,
        }


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
)
TEXTS: Mapping[str, Texts] = {"full": FULL, "short": SHORT}
"""The texts, by the setting that chooses them."""


def search_tool(count: int, listing: str, texts: Texts = FULL) -> Tool:
    """Return the bridge's search tool over `count` folded tools."""
    return Tool(
        TOOL_SEARCH,
        f"{texts.search} {plural(count, 'tool')}{listing}",
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
        TOOL_SEARCH: [lead for t in TEXTS.values() for lead in (t.search, t.stub_search)],
        TOOL_DESCRIBE: [t.describe for t in TEXTS.values()],
        TOOL_CALL: [t.call for t in TEXTS.values()],
    }
    return tool.description.startswith(tuple(leads[tool.name]))


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 tool`, `226 tools`."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


FOLDED = " folded."
"""Ends the search tool's description where it lists nothing."""


def source_name(source: str | None) -> str:
    """Return a source's name, short and on one line."""
    return one_line(source or "", 60) or "others"


def found(count: int, query: str, searched: int) -> str:
    """Head of a need's hits."""
    return f"{count} of {plural(searched, 'tool')} for {quoted(query)}:"


def hit(signature: str, source: str | None, summary: str) -> str:
    """Return one hit."""
    origin = f" [{source_name(source)}]" if source else ""
    return f"- {signature}{origin}{f': {summary}' if summary else ''}"


def hit_in_short(name: str) -> str:
    """Return one hit that has been shown before, or for which there is no more room."""
    return f"- {name}"


def hits_left_out(count: int) -> str:
    """Foot of hits that did not all fit."""
    return f"({plural(count, 'more hit')} left out. Narrow the query to see others.)"


def needs_left_out(count: int) -> str:
    """Foot of a search with too many needs at once."""
    return f"({plural(count, 'further need')} not searched. Search again for the rest.)"


def names_left_out(count: int) -> str:
    """Foot of a describe with too many names at once."""
    return f"({plural(count, 'more tool')} left out. Describe fewer at once.)"


HITS_FOOT = "Run one with tool_call(name, arguments)."
REVEALED_FOOT = "Their parameters are loaded. Call them directly."


def no_match(
    query: str,
    searched: int,
    sources: Mapping[str, int],
    fruitless: int,
    *,
    sources_at_most: int = _SOURCES_AT_MOST,
) -> str:
    """Return the answer to a need that no tool serves."""
    head = f"No tool matches {quoted(query)} ({plural(searched, 'tool')} searched)."
    if fruitless >= FRUITLESS_AT_MOST:
        return (
            f"{head} That was search {fruitless} in a row without a match: stop searching. "
            "Go on without a tool, or tell the user what is missing."
        )
    shown = source_counts(sources, sources_at_most) if sources_at_most else ""
    there = f" There are tools of {shown}." if sources and shown else ""
    return f"{head}{there} Try other words, or go on without a tool."


def source_counts(sources: Mapping[str, int], at_most: int, others: int = 0) -> str:
    """Return sources with their counts: `git (12), slack (8)`.

    Args:
        sources: The number of tools of each source.
        at_most: How many sources to name.
        others: How many tools have no source.
    """
    shown = [f"{source_name(name)} ({count:,})" for name, count in list(sources.items())[:at_most]]
    more = len(sources) - len(shown)
    if others:
        shown.append(f"others ({others:,})")
    return ", ".join(shown) + (f" and {plural(more, 'more source')}" if more > 0 else "")


def names_there_are(names: Sequence[str], total: int) -> str:
    """List the tools a stub search can load."""
    more = total - len(names)
    return "Tools: " + ", ".join(names) + (f" and {more:,} more" if more else "")


BLANK_QUERY = "The query is blank. Say in a few words what you need."
QUERY_MISSING = 'tool_search needs a query, as {"query": "what you need"}.'
NAME_MISSING = 'Which tool? Give its name, as {"name": "…"}.'
CALL_NAME_MISSING = 'Which tool? Give its name, as {"name": "…", "arguments": {…}}.'


def call_directly(name: str) -> str:
    """Return the answer about a core tool."""
    return f"{name} is one of your listed tools: call it directly."


def not_available(name: str, near: Sequence[str]) -> str:
    """Return the answer about a name that is unknown or out of scope: both read the same."""
    shown = f"{quoted(name)} is not available in this session."
    return f"{shown} {did_you_mean(near)}" if near else shown


def search_for_it() -> str:
    """Next step after an unknown name without near names."""
    return "Find tools with tool_search."


def did_you_mean(near: Sequence[str]) -> str:
    """Return near names as a question."""
    return f"Did you mean {' or '.join(near)}?"


def bridge_in_bridge(name: str) -> str:
    """Return the answer to a bridge tool inside `tool_call`."""
    if name == TOOL_CALL:
        return "tool_call cannot run itself. Give it the name of the tool that you want to run."
    return f"tool_call cannot run {name}: call {name} directly."


def bad_arguments(name: str, faults: Iterable[tuple[str, str]], signature: str) -> str:
    """Return the answer to arguments that do not fit the tool's schema."""
    said = "; ".join(f"{path}: {message}" if path else message for path, message in faults)
    return f"{name} was not run. {said}. Signature: {signature}"


def unreadable_arguments(name: str, reason: str, signature: str | None) -> str:
    """Return the answer to arguments that are no object."""
    shown = f" Signature: {signature}" if signature else ""
    return f"{name} was not run: {reason}. Send one JSON object.{shown}"


def description_cut() -> str:
    """Note on a definition too long to be shown whole."""
    return "(Texts were shortened to fit.)"


def schema_cut(signature: str) -> str:
    """Stand-in for a schema too long to be shown at all."""
    return f"(The schema is too long to show.) Signature: {signature}"


def quoted(text: str) -> str:
    """Return a model's own words back, short and on one line."""
    return f'"{one_line(text, _QUERY_LIMIT)}"'


def unreadable_call(name: str, *, exists: bool | None = None) -> str:
    """Return the correction of a message that was meant as a call and could not be run.

    Args:
        name: The name in it, or an empty text.
        exists: Whether there is such a tool, where that is known.
    """
    if name and exists:
        return (
            f"Nothing was run: your call of {quoted(name)} cannot be read. Make it again, with one "
            "JSON object of arguments."
        )
    if name and exists is False:
        return (
            f"Nothing was run: there is no tool {quoted(name)}. Call a tool by its exact name, or "
            "answer in plain words."
        )
    shown = f" of {quoted(name)}" if name else ""
    return (
        f"Nothing was run: your message was the text of a call{shown}, and there is no such "
        "tool, or the call cannot be read. Call a tool by its exact name, with one JSON object "
        "of arguments; or answer in plain words."
    )


CUT_OFF = "the call was cut off"
CANCELLED = "Cancelled before it ended. It may have had effects."
DENIED = "The user said no. Do not try it again; ask the user, or go on without it."
HOOK_FAILED = "The check of this call failed."
NOT_STARTED = "Cancelled before it began."
NO_OUTPUT = "Done. It returned nothing."


def refused(name: str, reason: str) -> str:
    """Return the answer to a call that the host did not let run."""
    return f"{name} was not run. {reason}"


def withheld(name: str) -> str:
    """Return the answer to a call that ran, and whose result a hook could not check."""
    return f"{name} ran, but the check of its result failed. It may have had effects."


def failed(name: str, kind: str, reason: str) -> str:
    """Return the answer to a call whose tool raised."""
    return f"{name} failed: {kind}{f': {reason}' if reason else ''}"


def timed_out(name: str, seconds: float) -> str:
    """Return the answer to a call that took too long."""
    return f"{name} did not end within {seconds:g} s and was stopped. It may have had effects."


HELD_BACK = (
    "Its server has changed what it says of it, and a person must look at it first, with "
    "`toolfold trust`. Tell the user."
)
GATEWAY_REFUSES = "It may destroy something, and this gateway refuses such calls."
CANNOT_ASK = (
    "It may destroy something, so the user must be asked, and this client cannot ask. "
    "Tell the user."
)


def question(tool: str, server: str, arguments: str) -> str:
    """Return what the user is asked before a destructive call."""
    return f"Run {tool} of the server {server!r}? It may destroy something. Arguments: {arguments}"


def server_down(tool: str, server: str, reason: str, *, lost: bool) -> str:
    """Return the answer to a call whose server did not take it, or died over it."""
    effects = " It may have had effects." if lost else " It was not run."
    return (
        f"{tool} failed: the server {server!r} {reason}.{effects} The server is being started "
        "again: try once more in a few seconds, or go on without it."
    )


def server_timed_out(tool: str, server: str, seconds: float) -> str:
    """Return the answer to a call of a server's tool that took too long."""
    return (
        f"{tool} did not end within {seconds:g} s and was given up. It may have had effects. "
        f"The server {server!r} may be busy: ask it for less."
    )


def content_left_out(kind: str, uri: Json) -> str:
    """Return what stands for content that is no text."""
    return f"[{kind}{f' {uri}' if isinstance(uri, str) else ''}: not shown, it is no text]"


def content_link(name: str, uri: str) -> str:
    """Return what stands for a link to a resource."""
    return f"[{name or 'resource'}: {uri}]"


def not_connected(name: str) -> str:
    """Return the answer to a call of a tool of which only the definition is known."""
    return f"{name} is not connected here: only its definition is known. Say so."


def gave_up(name: str) -> str:
    """Return the answer to a call that cancelled itself."""
    return f"{name} stopped by itself without a result."


def result_cut(shown: int, whole: int) -> str:
    """Foot of a result that was too long."""
    return f"(Cut: the first {shown:,} of {whole:,} characters. Ask for less, or for a part.)"


def may_help(signatures: Iterable[str]) -> str:
    """Return the note behind a user's message that names the tools that may help."""
    return "(Tools that may help, to be run with tool_call: " + "; ".join(signatures) + ")"


def found_earlier(names: Sequence[str], at_most: int) -> str:
    """Return what stands for an older discovery: what it found, on one line."""
    if not names:
        return "(An earlier answer, shortened.)"
    more = f" and {len(names) - at_most:,} more" if len(names) > at_most else ""
    return f"(Found earlier, still there: {', '.join(names[:at_most])}{more}.)"


LEFT_OUT = "(Left out.)"
"""What stands for a discovery so old that not even its line is kept."""


def result_earlier(size: int) -> str:
    """Return what stands for an older result of a tool."""
    return f"(An earlier result of {size:,} characters, left out. Call the tool again if needed.)"


def again(times: int) -> str:
    """Foot of a result that came again and again."""
    return (
        f"(You have made the same calls {times} times. Do something else, or answer with what "
        "you have.)"
    )
