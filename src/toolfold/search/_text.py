"""Words: how names, descriptions and queries become terms that can be compared.

Words are whole (`me` finds `get_me`, not `comment`), Unicode-aware, folded to lower case
without accents and stemmed as English; scripts written without spaces become pairs of
letters. The same text always gives the same terms.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

__all__ = [
    "STOPWORDS",
    "compounds",
    "is_compound",
    "is_telling",
    "query_words",
    "raw_words",
    "stem",
    "telling_words",
    "terms",
]

STOPWORDS = frozenset(
    """
    a about all also am an and any are as at be been but by can could did do does e for from g
    had has have he help her his how i if in into is it its just let like me my need no not of
    on or our out please s she should so some t than that the their them then there these they
    this those to up us want was we were what when where which who will with would you your
    """.split()
)
"""Words that say nothing about what a tool does. Dropped where other words are left."""

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = re.compile(
    "[\u0e00-\u0e7f\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]+"
)
_ACCENTS = re.compile("[\u0300-\u034e\u0350-\u036f]+")
_TEXT_LIMIT = 20_000
_WORDS_KEPT = 16_384
_WORD_KEPT = 40
_QUERIES_KEPT = 256
_QUERY_KEPT = 400

_local: Any = threading.local()


def raw_words(text: str) -> Iterator[str]:
    """Yield the words of a text in order, lower-case, split at case changes."""
    for token in _WORD.findall(_folded(text[:_TEXT_LIMIT])):
        if token.isascii():
            if token.islower():
                yield token
            elif token[1:].islower():
                yield token.lower()
            else:
                for part in _CAMEL.split(token):
                    yield part.lower()
        else:
            yield from _unicode_words(token)


def query_words(text: str) -> tuple[str, ...]:
    """Return the words of a request, which a search looks at several times."""
    return _kept_words(text) if len(text) <= _QUERY_KEPT else tuple(raw_words(text))


@lru_cache(maxsize=_QUERIES_KEPT)
def _kept_words(text: str) -> tuple[str, ...]:
    return tuple(raw_words(text))


def compounds(text: str) -> Iterator[str]:
    """Yield the words of a text that are one word in two cases (`GitHub`), in lower case."""
    if text.isascii():
        for token in _WORD.findall(text[:_TEXT_LIMIT]):
            if is_compound(token):
                yield token.lower()


def is_compound(token: str) -> bool:
    """Whether a token is two words written as one, the way names of products are: `GitHub`."""
    if not token[:1].isupper() or token[1:].islower() or not token.isalpha():
        return False
    return len(_CAMEL.split(token)) == 2


def is_telling(word: str) -> bool:
    """Whether a word says something about what a tool does: no stopword, no number."""
    return word not in STOPWORDS and not word.isdigit()


def telling_words(text: str) -> tuple[str, ...]:
    """Return the words of a request that say something about what a tool does."""
    return tuple(filter(is_telling, query_words(text)))


def terms(text: str) -> list[str]:
    """Return the terms of a text in order: its words, stemmed."""
    return [stem(word) for word in raw_words(text)]


def stem(word: str) -> str:
    """Return the English stem of a lower-case word; other scripts stay as they are."""
    if not word.isascii():
        return word
    # A stranger may write words of any length: the stems of those are not kept.
    return _kept_stem(word) if len(word) <= _WORD_KEPT else _stem(word)


def _stem(word: str) -> str:
    if len(word) < 3 or not word.isalpha():
        return word
    return _stemmer().stemWord(word)


_kept_stem = lru_cache(maxsize=_WORDS_KEPT)(_stem)


def _stemmer() -> Any:
    # The stemmer's C object may not be shared between threads.
    known: Any = getattr(_local, "stemmer", None)
    if known is not None:
        return known
    import Stemmer

    made: Any = getattr(Stemmer, "Stemmer")("english", 0)  # noqa: B009 - it has no type stubs
    _local.stemmer = made
    return made


def _folded(text: str) -> str:
    """Return `text` with compatibility forms and accents taken off."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _unicode_words(token: str) -> Iterator[str]:
    position = 0
    for run in _UNSPACED.finditer(token):
        if run.start() > position:
            yield from _cased_words(token[position : run.start()])
        letters = run[0]
        if len(letters) == 1:
            yield letters
        for i in range(len(letters) - 1):
            yield letters[i : i + 2]
        position = run.end()
    if position < len(token):
        yield from _cased_words(token[position:])


def _cased_words(token: str) -> Iterator[str]:
    """Yield the words of a token in any script that has two cases."""
    start = 0
    for i in range(1, len(token)):
        if token[i].isupper() and token[i - 1].islower():
            yield token[start:i].lower()
            start = i
    yield token[start:].lower()
