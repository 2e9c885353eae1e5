"""A catalog whose tools say nothing of what they do, and requests that led to them."""

from __future__ import annotations

from pathlib import Path

from toolfold import Catalog, Settings, Tool
from toolfold.bridge import Bridge
from toolfold.memory import Memory, Share, Use
from toolfold.search import SearchMemory

TOPICS: dict[str, tuple[str, ...]] = {
    "svc_01": ("book a flight to Lisbon", "reserve a plane ticket", "buy an airline seat"),
    "svc_02": ("what is the weather tomorrow", "will it rain today", "forecast for the weekend"),
    "svc_03": ("translate this letter into French", "say it in Spanish", "put this in German"),
    "svc_04": ("resize the photo", "crop this picture", "make the image smaller"),
    "svc_05": ("play some jazz music", "put on a song", "start my favourite album"),
    "svc_06": ("pay the electricity bill", "settle the invoice", "transfer money for the rent"),
    "svc_07": ("order a pizza", "get dinner delivered", "have food brought to me"),
    "svc_08": ("how many steps did I walk", "log my workout", "count my running kilometres"),
    "svc_09": ("turn off the lamp", "dim the lights", "switch the kitchen light on"),
    "svc_10": ("wake me at seven", "set an alarm clock", "remind me in an hour"),
}
UNSEEN = {
    "svc_01": "find me a cheap flight ticket",
    "svc_02": "is it going to rain this weekend",
    "svc_04": "crop the photo and make it smaller",
    "svc_09": "switch off the lights in the kitchen",
    "svc_10": "set the alarm to wake me at six",
}
"""Requests like those, which nobody made before."""


def opaque_tools(note: str = "") -> list[Tool]:
    """Return tools that search by itself knows nothing about."""
    return [Tool(name, f"Calls service {name[-2:]}{note}.", {"type": "object"}) for name in TOPICS]


def bridge_with(memory: SearchMemory | None, tools: list[Tool] | None = None) -> Bridge:
    """Return a bridge over opaque tools that shows every hit."""
    from dataclasses import replace

    settings = Settings(enabled="on", relevance_floor=0.0, cache_dir="off")
    return replace(Bridge.over(Catalog(tools or opaque_tools()), settings), memory=memory)


def taught(
    path: Path | None = None, *, principal: str = "ann", share: Share = "all", bound: int = 20_000
) -> Memory:
    """Return a memory of one use of each topic's tool for each of its requests."""
    memory = Memory(path, share=share, bound=bound)
    teach(memory, principal)
    return memory


def teach(memory: Memory, principal: str = "ann", tools: list[Tool] | None = None) -> None:
    """Search for every request of the topics, and call its tool."""
    bridge = bridge_with(memory.of(principal), tools)
    by_name = {tool.name: tool for tool in bridge.catalog}
    for place in range(3):
        for name, requests in TOPICS.items():
            bridge.search(requests[place], 5)
            memory.learn(Use(requests[place], name, by_name[name].digest, principal=principal))
    memory.flush()


def found_first(memory: SearchMemory | None, tools: list[Tool] | None = None) -> int:
    """Return for how many unseen requests the right tool is the first hit."""
    bridge = bridge_with(memory, tools)
    return sum(bridge.search(text, 1)[0].name == name for name, text in UNSEEN.items())
