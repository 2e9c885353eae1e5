"""A model's answer, read: what of it may stand as words of a tool.

Whatever a model writes, what is kept is a few short lines of plain words: no markup, no
address, nothing that cannot be seen, and no other tool's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple

import orjson

from toolfold.search._tool_words import clean_phrases
from toolfold.tool import Json, Tool, is_array, is_object

__all__ = ["AnsweredWords", "answered_words", "names_of"]

_ANSWER_LIMIT = 20_000
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)
_TEXT = re.compile(r'"((?:[^"\\\n]|\\.){3,400})"')
_MARKUP = re.compile(r"://|www\.|[<>{}`\\|]|\$\(")
_KEYS = frozenset({"requests", "words"})
_SYNONYM_WORDS_AT_MOST = 4


class AnsweredWords(NamedTuple):
    """What an answer holds for one tool."""

    requests: tuple[str, ...]
    words: tuple[str, ...]
    refused: int
    """How many of its texts were left out."""


def names_of(tools: Iterable[Tool]) -> frozenset[str]:
    """Return the names that no words may consist of, in small letters."""
    return frozenset(
        name.casefold() for tool in tools for name in (tool.name, tool.bare_name) if _is_name(name)
    )


def _is_name(text: str) -> bool:
    """Whether a text is a name and not also a plain word, as `search` is."""
    return not text.isalpha()


def answered_words(
    text: str, names: Set[str], *, requests: int, words: int
) -> AnsweredWords | None:
    """Return what a model's answer holds, or None where it holds no requests.

    Args:
        text: The answer.
        names: The names of all tools: see `names_of`.
        requests: How many requests are kept.
        words: How many synonyms are kept.
    """
    given = _lists(text[:_ANSWER_LIMIT])
    if given is None:
        return None
    asked, synonyms = given
    kept = [value for value in asked if _may_stand(value, names)]
    short = [
        value
        for value in synonyms
        if _may_stand(value, names) and len(str(value).split()) <= _SYNONYM_WORDS_AT_MOST
    ]
    refused = len(asked) + len(synonyms) - len(kept) - len(short)
    found = AnsweredWords(clean_phrases(kept, requests), clean_phrases(short, words), refused)
    return found if found.requests else None


def _may_stand(value: Json, names: Set[str]) -> bool:
    if not isinstance(value, str) or _MARKUP.search(value):
        return False
    return value.strip().casefold() not in names


def _lists(text: str) -> tuple[list[Json], list[Json]] | None:
    """Return the requests and the synonyms of an answer, also of one that was cut off."""
    match = _OBJECT.search(text)
    try:
        row: Json = orjson.loads(match[0]) if match else None
    except orjson.JSONDecodeError:
        row = None
    if is_object(row):
        asked, synonyms = row.get("requests"), row.get("words")
        if is_array(asked):
            return list(asked), list(synonyms) if is_array(synonyms) else []
        return None
    # Small models forget a bracket: what stands in quotes before `words` was meant all the same.
    before, _, behind = text.partition('"words"')
    if '"requests"' not in before:
        return None
    return list(_quoted(before)), list(_quoted(behind))


def _quoted(text: str) -> Iterator[str]:
    return (found[1] for found in _TEXT.finditer(text) if found[1] not in _KEYS)
