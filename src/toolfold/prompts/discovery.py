"""What a search or a describe answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolfold.prompts.bridge_tools import DEFAULT_NAMES, BridgeNames
from toolfold.prompts.wording import plural, quoted, source_counts, source_name

__all__ = [
    "ALSO",
    "ALSO_UNLISTED",
    "ALSO_UNLOADED",
    "BLANK_QUERY",
    "CATALOG_AWAY",
    "FOUND_THEN",
    "FRUITLESS_AT_MOST",
    "HITS_FOOT",
    "LISTED_FOOT",
    "LOADED_FOOT",
    "NAME_MISSING",
    "QUERY_MISSING",
    "REVEALED_FOOT",
    "also",
    "beside",
    "bridged",
    "description_cut",
    "found",
    "found_by_name",
    "hit",
    "hit_in_full",
    "hit_in_short",
    "hits_left_out",
    "loaded",
    "named_hit",
    "names_left_out",
    "names_there_are",
    "nearest",
    "needs_left_out",
    "no_match",
    "schema_cut",
    "search_for_it",
    "search_notes",
    "search_says",
    "text_cut",
]

FRUITLESS_AT_MOST = 3
"""After so many searches in vain the model is told to go on."""

FOUND_THEN = "What this search found then cannot be loaded now. Search again for what you need."
"""What an old answer says where nothing of what it found can be loaded any more."""

_SOURCES_AT_MOST = 30


def found(count: int, query: str, searched: int) -> str:
    """Head of a need's hits."""
    return f"{count} of {plural(searched, 'tool')} for {quoted(query)}:"


def nearest(query: str) -> str:
    """Head of a need's hits where even the best is probably none."""
    return f"No close match for {quoted(query)}; nearest:"


def hit(signature: str, source: str | None, summary: str) -> str:
    """Return one hit."""
    origin = f" [{source_name(source)}]" if source else ""
    return f"- {signature}{origin}{f': {summary}' if summary else ''}"


def hit_in_full(definition: str) -> str:
    """Return one hit with the whole definition of its tool, as JSON."""
    return f"- {definition}"


def hit_in_short(name: str) -> str:
    """Return one hit that has been shown before, or for which there is no more room."""
    return f"- {name}"


ALSO = "Also (tool_describe first):"
"""Before the hits that are shown by name."""
ALSO_UNLISTED = "Also, not listed (search for the name):"
"""The same where hits with signatures join the list of tools."""


def also(lead: str, hits: Sequence[str]) -> str:
    """Return the line of a need's hits that are shown by name."""
    return f"{lead} {', '.join(hits)}"


def named_hit(name: str, words: str) -> str:
    """Return one hit by name, with a few words about it where there are some."""
    return f"{name} ({words})" if words else name


def beside(names: Sequence[str]) -> str:
    """Return the line of tools that may be needed beside the hits."""
    return f"May be needed too: {', '.join(names)}"


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
LISTED_FOOT = "They are listed now. Call them directly, by name."
LOADED_FOOT = "They are loaded now. Call them directly, by name."
ALSO_UNLOADED = "Also, not loaded (search for the name):"
"""Before the hits that are shown by name, where a provider loads those with signatures."""


def bridged(text: str, names: BridgeNames = DEFAULT_NAMES) -> str:
    """Return what a search answered where the provider loaded the tools, said for the bridge."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line == LOADED_FOOT:
            lines.append(names.said(HITS_FOOT))
        elif line.startswith(ALSO_UNLOADED):
            lines.append(f"{names.said(ALSO)}{line.removeprefix(ALSO_UNLOADED)}")
        else:
            lines.append(line)
    return "\n".join(lines)


def loaded(names: Sequence[str]) -> str:
    """Return the answer to a search whose hits are defined right behind it."""
    return f"Found, and defined below: {', '.join(names)}. Call them directly, by name."


def found_by_name(names: Sequence[str]) -> str:
    """Return what stands for references to tools, where a model cannot be given those."""
    return f"Found: {', '.join(names)}." if names else "Nothing was found."


def search_says(text: str) -> str:
    """Return what a search has to say where its answer may hold nothing but definitions."""
    return f"tool_search found nothing to load. It says: {text}"


def search_notes(note: str) -> str:
    """Return what a search says beside the definitions that its answer may hold."""
    return f"tool_search says: {note}"


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


def names_there_are(names: Sequence[str], total: int) -> str:
    """List the tools a stub search can load."""
    more = total - len(names)
    return "Tools: " + ", ".join(names) + (f" and {more:,} more" if more else "")


CATALOG_AWAY = (
    "The catalog of tools cannot be reached now, so nothing can be looked up in it. Tools that "
    "you have found already can be called all the same. Try once more in a moment; if it is "
    "still away then, go on without, and say so."
)
"""What a search or a describe answers while the database of a shared catalog is away."""

BLANK_QUERY = "The query is blank. Say in a few words what you need."
QUERY_MISSING = 'tool_search needs a query, as {"query": "what you need"}.'
NAME_MISSING = 'Which tool? Give its name, as {"name": "…"}.'


def search_for_it() -> str:
    """Next step after an unknown name without near names."""
    return "Find tools with tool_search."


def description_cut() -> str:
    """Note on a definition too long to be shown whole."""
    return "(Texts were shortened to fit.)"


def text_cut(whole: int) -> str:
    """Foot of a description that is longer than what is passed on."""
    return f"(Cut: the whole text has {whole:,} characters.)"


def schema_cut(signature: str) -> str:
    """Stand-in for a schema too long to be shown at all."""
    return f"(The schema is too long to show.) Signature: {signature}"
