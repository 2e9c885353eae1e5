"""Characters that nobody sees.

Controls and formats, direction marks, tag letters, private and unassigned ones, halves of
surrogate pairs, and what is assigned and printing yet drawn as nothing: variation selectors,
fillers, the blank braille pattern. A joiner and the mark for a coloured picture are seen by
what they do, so they are hidden only where they do nothing.

This is the only list. `bounds` drops what stands on it, `invisible` writes it out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["CharacterRun", "has_hidden", "runs"]

# Assigned, and of a printing category, yet drawn as nothing.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)
_EMOJI_STYLE = "\ufe0f"
_JOINERS = "\u200c\u200d"
_PLAIN = re.compile(r"[\t\n -~]*\Z")


class CharacterRun(NamedTuple):
    """Characters that stand side by side, all of them seen or none."""

    text: str
    is_hidden: bool


def has_hidden(text: str, layout: str = "\t\n") -> bool:
    """Whether a text holds a character that is not seen.

    Args:
        text: The text.
        layout: The characters that break and indent lines.
    """
    return bool(_hidden_places(text, layout))


def runs(text: str, layout: str = "\t\n") -> Iterator[CharacterRun]:
    """Return a text in runs of characters that are seen and such that are not.

    Args:
        text: The text.
        layout: The characters that break and indent lines; they count as seen.
    """
    places = _hidden_places(text, layout)
    start = 0
    for i, place in enumerate(places):
        if i and place == places[i - 1] + 1:
            continue
        if start < place:
            yield CharacterRun(text[start:place], False)
        end = i + 1
        while end < len(places) and places[end] == places[end - 1] + 1:
            end += 1
        start = places[end - 1] + 1
        yield CharacterRun(text[place:start], True)
    if start < len(text):
        yield CharacterRun(text[start:], False)


def _hidden_places(text: str, layout: str) -> list[int]:
    if _PLAIN.match(text):
        return []
    # Each character is looked up once, however long the text is.
    suspects = {c for c in set(text) if c not in layout and _is_suspect(c)}
    if not suspects:
        return []
    return [i for i, c in enumerate(text) if c in suspects and not _does_something(text, i)]


def _is_suspect(character: str) -> bool:
    if character.isprintable():
        return character in _BLANK
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")


def _does_something(text: str, place: int) -> bool:
    """Whether a character that is drawn as nothing changes how its neighbours are drawn."""
    character = text[place]
    if character == _EMOJI_STYLE:
        # The mark for a coloured picture, after a sign or a keycap's digit.
        return place > 0 and unicodedata.category(text[place - 1]) in ("So", "Sm", "Po", "Nd")
    if character not in _JOINERS or not 0 < place < len(text) - 1:
        return False
    before, after = text[place - 1], text[place + 1]
    if character == "\u200d" and unicodedata.category(after) == "So":
        if before == _EMOJI_STYLE:
            return _does_something(text, place - 1)
        return before not in _BLANK and unicodedata.category(before) in ("So", "Sk")
    # In scripts that are written with joiners.
    return all(
        "\u0600" <= c <= "\u1fff" and c not in _BLANK and unicodedata.category(c)[0] in "LM"
        for c in (before, after)
    )
