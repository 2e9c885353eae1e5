"""HTML from elements and texts: a text is escaped because it is a text, and only then.

`element` takes texts and what `element` made. A plain `str` is a text, whoever wrote it, so
nothing that a model, a tool or a file says can become markup; characters that nobody sees are
written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from toolfold._bounds import cut
from toolfold.invisible import shown

__all__ = ["Markup", "bounded", "breakable", "element", "joined", "text"]

_MARKS = re.compile(r"(?<=[+_.:/-])(?=\w)")
_WORDS_AT_MOST = 2_000
_NAME_AT_MOST = 200
_EMPTY = frozenset({"meta", "br", "hr"})

Content = str | None | Iterable[str | None]


class Markup(str):
    """HTML, as opposed to a text: made by `element`, `text` and `joined` alone."""

    __slots__ = ()


def text(said: str) -> Markup:
    """Return a text as HTML that shows it, whatever stands in it."""
    return said if isinstance(said, Markup) else Markup(escape(shown(said)))


def bounded(said: str, limit: int = _WORDS_AT_MOST) -> str:
    """Return a text, cut where it is longer than what anybody reads; markup as it is."""
    return said if isinstance(said, Markup) else cut(said, limit)


def breakable(name: str) -> Markup:
    """Return a name that may break behind its marks before it breaks within a word."""
    parts = _MARKS.split(bounded(name, _NAME_AT_MOST))
    return Markup("<wbr>".join(text(part) for part in parts))


def joined(*children: Content) -> Markup:
    """Return elements and texts, one after the other; None is nothing."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, str):
            parts.append(text(child))
        elif child is not None:
            parts.extend(text(one) for one in child if one is not None)
    return Markup("".join(parts))


def element(tag: str, *children: Content, **attributes: str | int | bool | None) -> Markup:
    """Return an element.

    Args:
        tag: Its name: a word of ours, never of a stranger.
        children: Texts and elements; None is nothing.
        attributes: Its attributes: `class_` and the like lose the underscore behind them, one
            between words is a hyphen. None and False leave an attribute out.
    """
    opened = "".join([f"<{tag}", *map(_attribute, attributes.items()), ">"])
    if tag in _EMPTY:
        return Markup(opened)
    return Markup(f"{opened}{joined(*children)}</{tag}>")


def _attribute(given: tuple[str, str | int | bool | None]) -> str:
    name, value = given
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(shown(str(value)))}"'
