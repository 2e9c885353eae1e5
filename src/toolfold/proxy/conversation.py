"""What holds for a whole conversation: how its tools were folded, and the very bytes of it.

A conversation is known by how it begins: its first messages, up to the first of the user, and
what a client says to name it. Its beginning may be another's, too, so what is kept is read only
by requests in which the model has spoken already, and written by every one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from toolfold._json_values import compact_bytes, parse
from toolfold.session import Session
from toolfold.store.session_bytes import session_fields, session_of
from toolfold.tool import Json, is_array

__all__ = ["FoldedConversation", "conversation_key", "sample_of"]

_VERSION = 2
_SAMPLE = 32
_NAMES = ("x-claude-code-session-id", "session-id", "session_id", "thread-id", "x-session-id")
"""Headers in which clients name a conversation."""

Form = Literal["bridge", "native"]


@dataclass(frozen=True, slots=True)
class FoldedConversation:
    """How a conversation's tools were folded."""

    prefix: str
    """What the names of our tools begin with."""

    ours: tuple[str, ...]
    """Our tools, as JSON texts; none where the session has them."""

    session: Session = field(default_factory=Session)
    sample: tuple[str, ...] = ()
    """Marks of some of its tools, by which it is told from another that begins the same."""

    def is_of(self, names: Iterable[str]) -> bool:
        """Whether tools of these names may be this conversation's, some of them come or gone."""
        given = set(map(_mark, names))
        # The sample holds the smallest marks: of those given, these would be in it.
        seen = {mark for mark in given if self.sample and mark <= self.sample[-1]}
        common = 2 * len(given.intersection(self.sample))
        return common >= len(self.sample) or (bool(seen) and common >= len(seen))

    def dump(self) -> bytes:
        """Return it as a store keeps it."""
        # What was in vain in one request says nothing of the next.
        session = session_fields(replace(self.session, fruitless=0))
        return compact_bytes([_VERSION, self.prefix, self.ours, session, self.sample])

    @classmethod
    def load(cls, kept: bytes | None) -> FoldedConversation | None:
        """Return what a store kept, or None where that cannot be read."""
        try:
            value = parse(kept) if kept is not None else None
            if not is_array(value) or value[0] != _VERSION:
                return None
            ours, sample = (tuple(map(str, value[place])) for place in (2, 4))
            return cls(str(value[1]), ours, session_of(value[3]), sample)
        except (ValueError, RecursionError, KeyError, TypeError, IndexError, AttributeError):
            return None


def sample_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return marks of some of the tools, the same ones whatever the others are."""
    return tuple(sorted(set(map(_mark, names)))[:_SAMPLE])


def _mark(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def conversation_key(begins: str, headers: Mapping[str, str], named: Json = None) -> str:
    """Return what a conversation is kept under.

    Args:
        begins: A digest of its beginning and of whose it is.
        headers: The headers of a request, their names in lower case.
        named: What the request itself calls it.
    """
    names = [headers[name] for name in _NAMES if name in headers]
    names.append(named if isinstance(named, str) else "")
    whole = "\0".join(("conversation", begins, *names)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(whole).hexdigest()
