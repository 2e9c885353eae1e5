"""A tool as the words it is found by, field by field.

A word in the name says more than the same word in a parameter's description, so fields
are counted apart. A document is made once per content of a tool.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from toolfold._memo import Memo
from toolfold._signature import follow
from toolfold.search._lexicon import in_english
from toolfold.search._text import compounds, is_telling, raw_words, stem
from toolfold.tool import Json, Tool, is_array, is_object

__all__ = [
    "DETAILS",
    "FIELDS",
    "NAME",
    "READ_TOGETHER",
    "Document",
    "Fields",
    "document",
    "english_fields",
    "fields",
]

FIELDS = ("name", "source", "description", "parameters", "details", "aliases")
"""The fields, in the order in which documents number them."""

NAME = FIELDS.index("name")
"""The number of the name's field."""

DETAILS = FIELDS.index("details")
"""The number of the field with the texts of parameters."""

_PATHS = re.compile(r"'[\w.-]{1,60}/[\w./-]{1,60}'|\"[\w.-]{1,60}/[\w./-]{1,60}\"")
"""Quoted paths in the text of a parameter are values: `'Asia/Tokyo'` does not make a tool one
about Tokyo."""

_DESCRIPTION_LIMIT = 4_000
_PARAMETERS_AT_MOST = 64
_PARAMETER_TEXT_LIMIT = 300
_OPTIONS_AT_MOST = 12
_DEPTH = 2
_COUNT_LIMIT = 255


class Fields(NamedTuple):
    """The texts of a tool that a search looks at, each within bounds."""

    name: str
    source: str
    description: str
    parameters: str
    """The names of the parameters."""
    details: str
    """Their descriptions and options."""
    aliases: str


class Document(NamedTuple):
    """The terms of a tool, counted by field."""

    terms: tuple[str, ...]
    """A term for every field that holds it."""
    fields: bytes
    """The number of that field."""
    counts: bytes
    """How often it stands there."""
    lengths: tuple[int, ...]
    """How many telling words each field has."""


_TERM_BYTES = 80
_DOCUMENTS: Memo[str, Document] = Memo(
    65_536, room=32 * 1024 * 1024, size=lambda own: _TERM_BYTES * len(own.terms)
)


READ_TOGETHER = 64
"""How many tools' texts are kept in English: first words are made of them, then vectors."""

_ENGLISH: Memo[str, tuple[str, ...]] = Memo(READ_TOGETHER)


def document(tool: Tool) -> Document:
    """Return the document of a tool, made once per content."""
    found = _DOCUMENTS.get(tool.digest)
    return _DOCUMENTS.put(tool.digest, _document(tool)) if found is None else found


def fields(tool: Tool) -> Fields:
    """Return the texts of a tool that a search looks at."""
    names: list[str] = []
    texts: list[str] = []
    for name, text in _parameters(tool.parameters, tool.parameters, _DEPTH):
        names.append(name)
        texts.append(text[:_PARAMETER_TEXT_LIMIT])
        if len(names) == _PARAMETERS_AT_MOST:
            break
    title = f"{tool.title}. " if tool.title and tool.title != tool.name else ""
    return Fields(
        name=tool.name,
        source=tool.source or "",
        description=title + tool.description[:_DESCRIPTION_LIMIT],
        parameters=" . ".join(names),
        details=" . ".join(text for text in texts if text),
        aliases=" . ".join(tool.aliases),
    )


def english_fields(tool: Tool) -> Fields:
    """Return the texts of a tool, in English where they are in a language that can be read."""
    own = fields(tool)
    return Fields(*(new or text for text, new in zip(own, _english(tool, own), strict=True)))


def _english(tool: Tool, own: Fields) -> tuple[str, ...]:
    """Return the texts of a tool in English; "" for those that are not read."""
    if all(map(str.isascii, own)):
        return ("",) * len(own)
    found = _ENGLISH.get(tool.digest)
    return _ENGLISH.put(tool.digest, in_english(own)) if found is None else found


def _document(tool: Tool) -> Document:
    terms: list[str] = []
    numbers = bytearray()
    counts = bytearray()
    lengths: list[int] = []
    own = fields(tool)
    for number, (text, english) in enumerate(zip(own, _english(tool, own), strict=True)):
        words = list(raw_words(_PATHS.sub(" ", text) if number == DETAILS else text))
        telling = [stem(word) for word in words if is_telling(word)]
        lengths.append(len(telling))
        counted = Counter(telling)
        if english:
            counted |= Counter(stem(word) for word in raw_words(english) if is_telling(word))
        if number == NAME:
            # A name may be nothing but small words (`get_me`); only there do they count.
            counted.update(dict.fromkeys((stem(w) for w in words if not is_telling(w)), 1))
        else:
            # `GitHub` is also said `github`, and `form 1099` is meant by its number.
            counted.update(stem(word) for word in compounds(text))
            counted.update({word: 1 for word in words if is_label(word)})
        terms.extend(counted)
        numbers.extend([number] * len(counted))
        counts.extend(min(count, _COUNT_LIMIT) for count in counted.values())
    return Document(tuple(terms), bytes(numbers), bytes(counts), tuple(lengths))


def is_label(word: str) -> bool:
    """Whether a number is one that things are called by: round ones and small ones are amounts."""
    return word.isdigit() and len(word) > 2 and word[-1] != "0"


def _parameters(schema: Json, root: Json, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of parameters, nested ones after their parents."""
    if depth == 0 or not is_object(schema):
        return
    properties = follow(schema, root).get("properties")
    if not is_object(properties):
        return
    for name, value in properties.items():
        target = follow(value, root)
        own = value.get("description") if is_object(value) else None
        text = own if isinstance(own, str) else target.get("description")
        yield name, f"{text if isinstance(text, str) else ''} {_options(target)}".strip()
        yield from _parameters(target, root, depth - 1)
        yield from _parameters(target.get("items"), root, depth - 1)


def _options(schema: Json) -> str:
    enum = schema.get("enum")
    return " ".join(str(option) for option in enum[:_OPTIONS_AT_MOST]) if is_array(enum) else ""
