"""The tools that a request offers, each as it came and as the upstream takes it."""

from __future__ import annotations

from typing import NamedTuple

from toolfold._json_values import sendable
from toolfold.proxy.json_spans import Edit
from toolfold.tool import Json, is_object

__all__ = ["Lowered", "Offered", "name_of", "offered"]


class Offered(NamedTuple):
    """A tool of the client's, or an entry that the provider answers itself."""

    record: Json
    """What a fold reads."""

    text: str
    """What goes up where it stays."""

    namespace: str = ""
    """Where the client has it, in a dialect that has such."""

    own_name: str = ""
    """What it is called there."""


class Lowered(NamedTuple):
    """A request as an upstream takes it that knows neither deferral nor namespaces."""

    tools: tuple[Offered, ...]
    edits: tuple[tuple[int, Edit], ...] = ()
    """What is changed of the conversation, each with the place of the item it is in."""

    is_changed: bool = False
    """Whether the tools are others than the client's own."""


def offered(record: Json, namespace: str = "", own_name: str = "") -> Offered:
    """Return a tool that is written anew."""
    return Offered(record, sendable(record).decode(), namespace, own_name)


def name_of(record: Json) -> str:
    """Return the name of a tool's record; empty where it has none."""
    if not is_object(record):
        return ""
    function = record.get("function")
    name = function.get("name") if is_object(function) else record.get("name")
    return name if isinstance(name, str) else ""
