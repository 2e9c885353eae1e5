"""A request cut into the needs it names.

"Find a flight to Oslo and book a hotel there" holds two needs, and one tool rarely serves
both. A cut is made where a new need begins: at the end of a sentence, at `also`,
`then` and their like, or where `and` or a comma is followed by a verb that asks for something.
"""

from __future__ import annotations

import re

from toolfold.search._text import is_telling, query_words

__all__ = ["CLAUSES_AT_MOST", "clauses"]

CLAUSES_AT_MOST = 6
"""How many needs of one request are looked at."""

_QUERY_LIMIT = 4_000
_BLANKS = re.compile(r"[ \t]+")
_BREAK = re.compile(
    # All begin with one of these: where none stands, nothing else is tried.
    r"(?=[\s,;])(?:(?<=[.;?!])\s+|\n+|;\s*"
    r"|,?\s+(?:and then|and also|as well as|after that|additionally|also|then|plus|and)\s+"
    r"|,\s+(?=\w+\s))",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:please|also|then|finally|next|lastly|additionally|furthermore|moreover|can you|could you"
    r"|would you|i want to|i need to|i also|i'd like to|i would like to|help me|let me|,|\s)+",
    re.IGNORECASE,
)
_CONNECTIVES = frozenset(
    {"also", "and also", "and then", "then", "additionally", "after that", "as well as", "plus"}
)
_STARTS = frozenset(
    """
    get find show tell give list search look lookup check calculate compute determine create
    make add generate send book reserve buy order update change modify set delete remove cancel
    retrieve fetch provide convert translate analyze analyse compare recommend suggest play
    schedule remind track monitor estimate predict identify explain describe validate verify
    download upload share post write read open close start stop turn what how where when which
    who is are do does i we summarize extract evaluate plan design measure assess fetching know
    see view save store register apply submit perform run use obtain query classify detect
    simulate solve draw plot sort filter count pay transfer invite call text email
    """.split()
)


def clauses(query: str) -> list[str]:
    """Return the needs of a request; the request itself where it names one."""
    query = _BLANKS.sub(" ", query[:_QUERY_LIMIT])
    parts: list[str] = []
    position = 0
    for match in _BREAK.finditer(query):
        joint = match[0].strip(" ,;.\n").lower()
        ends_sentence = match[0].strip() in ("", ";")
        if ends_sentence or joint in _CONNECTIVES or _first_word(query[match.end() :]) in _STARTS:
            parts.append(query[position : match.start()])
            position = match.end()
    if not parts:
        return [query]
    parts.append(query[position:])
    needs: list[str] = []
    for part in parts:
        # One telling word is no need of its own: it belongs to the clause before.
        if sum(map(is_telling, query_words(part))) >= 2:
            needs.append(part.strip())
        elif needs:
            needs[-1] += f" {part.strip()}"
    return needs[:CLAUSES_AT_MOST] if len(needs) > 1 else [query]


def _first_word(text: str) -> str:
    words = _OPENING.sub("", text[:200]).split(maxsplit=1)
    return words[0].lower().strip(",.'\"") if words else ""
