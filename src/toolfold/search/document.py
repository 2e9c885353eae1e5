"""A tool as the words it is found by.

Each field weighs differently: a word in the name says more than the same word in a
parameter's description. A document is made once per content of a tool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from toolfold.memo import Memo
from toolfold.search.text import terms
from toolfold.signature import follow
from toolfold.tool import Json, Tool, is_array, is_object

__all__ = ["Document", "Fields", "document", "fields"]

NAME_WEIGHT = 3.0
DESCRIPTION_WEIGHT = 1.0
PARAMETER_WEIGHT = 0.6
PARAMETER_TEXT_WEIGHT = 0.3
SOURCE_WEIGHT = 1.0
ALIAS_WEIGHT = 3.0

_DESCRIPTION_LIMIT = 4_000
_PARAMETERS_AT_MOST = 64
_PARAMETER_TEXT_LIMIT = 300
_DEPTH = 3


class Fields(NamedTuple):
    """The texts of a tool that a search looks at."""

    name: str
    source: str
    aliases: str
    description: str
    parameters: str
    parameter_texts: str


class Document(NamedTuple):
    """The terms of a tool with their weights."""

    terms: tuple[str, ...]
    weights: tuple[float, ...]
    length: float


_DOCUMENTS: Memo[str, Document] = Memo(65_536)


def document(tool: Tool) -> Document:
    """Return the document of a tool, made once per content."""
    found = _DOCUMENTS.get(tool.digest)
    return _DOCUMENTS.put(tool.digest, _document(tool)) if found is None else found


def fields(tool: Tool) -> Fields:
    """Return the texts of a tool that a search looks at, each within bounds."""
    names: list[str] = []
    texts: list[str] = []
    for name, text in _parameters(tool.parameters, tool.parameters, _DEPTH):
        names.append(name)
        texts.append(text[:_PARAMETER_TEXT_LIMIT])
        if len(names) == _PARAMETERS_AT_MOST:
            break
    title = f"{tool.title}. " if tool.title and tool.title != tool.name else ""
    return Fields(
        name=tool.bare_name,
        source=tool.source or "",
        aliases=" ".join(tool.aliases),
        description=title + tool.description[:_DESCRIPTION_LIMIT],
        parameters=" ".join(names),
        parameter_texts=" ".join(texts),
    )


def _document(tool: Tool) -> Document:
    texts = fields(tool)
    weights: dict[str, float] = {}
    length = 0.0
    for text, weight in (
        (texts.name, NAME_WEIGHT),
        (texts.source, SOURCE_WEIGHT),
        (texts.aliases, ALIAS_WEIGHT),
        (texts.description, DESCRIPTION_WEIGHT),
        (texts.parameters, PARAMETER_WEIGHT),
        (texts.parameter_texts, PARAMETER_TEXT_WEIGHT),
    ):
        for term in terms(text):
            weights[term] = weights.get(term, 0.0) + weight
            length += weight
    return Document(tuple(weights), tuple(weights.values()), length)


def _parameters(
    schema: Json, root: Json, depth: int
) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of parameters, nested ones after their parents."""
    if depth == 0 or not is_object(schema):
        return
    schema = follow(schema, root)
    properties = schema.get("properties")
    if is_object(properties):
        for name, value in properties.items():
            target = follow(value, root)
            text = value.get("description") if is_object(value) else None
            text = text if isinstance(text, str) else target.get("description")
            yield name, " ".join((text if isinstance(text, str) else "", _options(target)))
            yield from _parameters(target, root, depth - 1)
    if is_object(schema.get("items")):
        yield from _parameters(schema["items"], root, depth - 1)


def _options(schema: Json) -> str:
    enum = schema.get("enum")
    return " ".join(str(option) for option in enum[:16]) if is_array(enum) else ""
