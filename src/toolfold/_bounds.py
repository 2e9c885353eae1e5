"""Texts from strangers, made short and harmless before a model or a person reads them.

Names, descriptions and schemas come from servers nobody here wrote. Characters that nobody
sees are dropped, white space is folded, and every text has a limit.
"""

from __future__ import annotations

import re

from toolfold._characters import has_hidden, runs

__all__ = ["cut", "first_sentence", "one_line", "sentences", "visible"]

ELLIPSIS = "…"

_LAYOUT = "\t\n\r\u2028\u2029"
_ASCII_PRINTABLE = re.compile(r"[\t\n\r -~]*\Z")
_PARAGRAPH = re.compile(r"\n\s*(?:\n|(?=[-*•#]\s|\d+\.\s))")
_SPACE = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)\s+(?=[\"'(\[]?[A-Z0-9])")


def visible(text: str) -> str:
    """Return `text` without the characters that nobody sees; line breaks and tabs stay."""
    if _ASCII_PRINTABLE.match(text) or not has_hidden(text, _LAYOUT):
        return text
    return "".join(run.text for run in runs(text, _LAYOUT) if not run.is_hidden)


def cut(text: str, limit: int) -> str:
    """Return `text`, or its first part with an ellipsis where it is longer than `limit`."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + ELLIPSIS


def one_line(text: str, limit: int) -> str:
    """Return `text` on one line, visible characters only, at most `limit` long."""
    # Four times the limit is enough to find the first `limit` characters among white space,
    # and keeps a description of a megabyte from being scanned whole.
    return cut(_SPACE.sub(" ", visible(text[: 4 * limit])).strip(), limit)


def first_sentence(text: str, limit: int) -> str:
    """Return the first sentence of `text` on one line, at most `limit` long."""
    first_paragraph = text[: 4 * limit].strip().split("\n\n", 1)[0]
    return cut(_SENTENCE_END.split(one_line(first_paragraph, 4 * limit), 1)[0], limit)


def sentences(text: str) -> list[str]:
    """Return the sentences of `text`, each on one line; points of a list are sentences, too."""
    paragraphs = (one_line(part, len(part)) for part in _PARAGRAPH.split(text.strip()))
    found = (one for part in paragraphs for one in _SENTENCE_END.split(part))
    return [sentence for sentence in found if sentence]
