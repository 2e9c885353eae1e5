"""What a model reads from the gateway itself, beside the bridge's own words."""

from __future__ import annotations

__all__ = ["INSTRUCTIONS", "REVEALED_FOOT", "REVEAL_SEARCH"]

INSTRUCTIONS = (
    "Tools of several servers, named server__tool. If tool_search is listed, most of them are "
    "not: before you say that something cannot be done, look for a tool with it, and run what "
    "it finds as its answer says. Call listed tools directly."
)
"""What a client may put into its system prompt."""

REVEAL_SEARCH = (
    "Find tools that are not listed here, by what they do. What is found is then listed: call "
    "it directly, by its name."
)
REVEALED_FOOT = "They are listed now. Call them directly, by name."
