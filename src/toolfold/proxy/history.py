"""The model's history in a client's request: what the client does not know is put back.

A client sends back the real call and its result. What the model saw besides, searches and
their answers and its own words for the call, is kept as bytes under the call's id and stands
in every later request as it stood in the first. A turn without a call is kept under a digest of
what stands before it. What is not kept any more goes up as the client has it: a direct call by
name, which a fold answers like any other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from toolfold._json_values import NotJsonError, canonical, sendable
from toolfold.proxy.conversation import FoldedConversation, conversation_key
from toolfold.proxy.dialects.dialect import ClientTurn, Dialect
from toolfold.proxy.json_spans import Edit, Element, without
from toolfold.proxy.request import ProxiedRequest
from toolfold.proxy.store import HistoryStore
from toolfold.proxy.turns import KeptTurn
from toolfold.strategy import FoundForm
from toolfold.tool import Json

__all__ = ["History", "Restored"]

_STRONG_ID = re.compile(r".{4,}[A-Za-z0-9]{7}\Z", re.DOTALL)
"""An id as `call_0` or `functions.read_file:0` may be another call's, too."""


class Restored(NamedTuple):
    """What puts the model's history back."""

    edits: tuple[Edit, ...]
    turns: int
    """How many turns were put back."""

    items: frozenset[int]
    """The places of the items that they stand in."""


class History:
    """The hidden part of one conversation.

    Args:
        dialect: How its requests are written.
        request: The request at hand.
        store: What remembers.
        owner: Names the caller: nobody is given what another's conversation kept.
        headers: The request's headers: some clients name their conversations.
    """

    def __init__(
        self,
        dialect: Dialect,
        request: ProxiedRequest,
        store: HistoryStore,
        owner: str,
        headers: Mapping[str, str],
    ) -> None:
        self._dialect = dialect
        self._request = request
        self._store = store
        self._owner = f"{dialect.name} {owner}"
        self._digests = self._chain()
        self._turns = dialect.turns(request)
        named = request.document.get("prompt_cache_key")
        self._conversation = conversation_key(self._begins(), headers, named)

    @property
    def digest(self) -> str:
        """Names the conversation as it stands."""
        return self._digests[-1]

    @property
    def name(self) -> str:
        """Names the conversation, however far it has come."""
        return self._conversation

    @property
    def conversation(self) -> FoldedConversation | None:
        """How the conversation's tools were folded, where the model has spoken in it before."""
        return FoldedConversation.load(self._store.get(self._conversation)) if self._turns else None

    def remember(self, conversation: FoldedConversation) -> None:
        """Keep how the conversation's tools are folded."""
        made = conversation.dump()
        if self._store.get(self._conversation) != made:
            self._store.put(self._conversation, made)

    def alias(self, told: str, known: str) -> None:
        """Keep under which id the server knows an answer, where the client was told another."""
        if told != known:
            self._store.put(self._key("alias", told), known.encode("utf-8", "replace"))

    def known_as(self, told: str) -> str:
        """Return the id under which the server knows an answer."""
        known = self._store.get(self._key("alias", told))
        return told if known is None else known.decode("utf-8", "replace")

    def restored(self, is_ours: Callable[[str], bool], form: FoundForm) -> Restored:
        """Return what puts every turn back that something is kept of.

        Args:
            is_ours: Whether a call of this name is always kept.
            form: How what was found is said to the model now.
        """
        edits: list[Edit] = []
        items: set[int] = set()
        count = place = 0
        turns = self._turns
        while place < len(turns):
            turn, parts = turns[place], turns[place : place + 1]
            kept = self._kept(turn)
            if kept is not None and kept.form not in ("text", form):
                kept = None  # said in a way that this upstream does not know
            if kept is not None:
                parts = _same_turn(turns[place:], kept)
            made = self._dialect.restored(self._request, turn, kept) if kept and parts else None
            if made is not None:
                edits += made
                edits += (self._request.removal(part.first, part.end) for part in parts[1:])
                items.update(place for part in parts for place in range(part.first, part.end))
                count += 1
            elif any(map(is_ours, turn.names)):
                lost = self._dialect.lost(self._request, turn)
                edits += lost
                items.update(range(turn.first, turn.end) if lost else ())
            place += len(parts) if made is not None else 1
        return Restored(tuple(edits), count, frozenset(items))

    def keep(self, turn: KeptTurn, text: str) -> None:
        """Keep what the model's history holds of the turn that answers this request.

        Args:
            turn: What it holds.
            text: What the client reads of the turn.
        """
        # What a broken answer left stands before this one, with nothing between them.
        last = self._turns[-1] if self._turns else None
        lead = last.end - last.first if last and last.end == len(self._request.items) else 0
        before, kept = self._digests[-1], replace(turn, lead=lead).dump()
        for call_id, _, _ in turn.calls:
            self._store.put(self._call_key(call_id, before), kept)
        if not turn.calls:
            self._store.put(self._text_key(text, before), kept)

    def keep_note(self, text: str) -> None:
        """Keep a note that stands behind the last message of this request from now on.

        It is a message of its own and never inside the client's, under a digest of all that
        stands before it.
        """
        note = sendable({"role": "user", "content": text})
        self._store.put(self._key("note", self.digest), note)

    def notes(self) -> Iterator[Edit]:
        """Yield what puts the notes back that were kept behind messages of the user."""
        for place, item in enumerate(self._request.items):
            if item.value.get("role") != "user":
                continue
            note = self._store.get(self._key("note", self._digests[place + 1]))
            if note is not None:
                more = self._request.separator + note.decode("utf-8", "replace")
                yield Edit(item.end, item.end, more)

    def missing_answers(self) -> Iterator[Edit]:
        """Yield the answers that a server misses which holds the conversation itself.

        It knows of all calls of a turn, and the client only of those that it was handed.
        """
        given: set[str] = set()
        for place, item in enumerate(self._request.items):
            call_id = item.value.get("call_id")
            if not isinstance(call_id, str) or call_id in given or not _STRONG_ID.match(call_id):
                continue
            kept = self._store.get(self._call_key(call_id, self._digests[place]))
            found = None if kept is None else KeptTurn.load(kept)
            if found is not None:
                given.update(other for other, _, _ in found.calls)
                for answer in found.answers:
                    yield Edit(item.start, item.start, answer + self._request.separator)

    def _kept(self, turn: ClientTurn) -> KeptTurn | None:
        before = self._digests[turn.first]
        if not turn.calls:
            kept = self._store.get(self._text_key(turn.text, before))
            return None if kept is None else KeptTurn.load(kept)
        for call_id, _, _ in turn.calls:
            kept = self._store.get(self._call_key(call_id, before))
            found = None if kept is None else KeptTurn.load(kept)
            if found is not None:
                return found
        return None

    def _chain(self) -> list[str]:
        """Return, for every place in the conversation, a digest of what stands before it."""
        chain = hashlib.sha256(self._owner.encode("utf-8", "surrogatepass"))
        digests = [chain.hexdigest()]
        if self._request.is_one_text:
            said = {"role": "user", "content": self._request.document.get("input")}
            chain.update(canonical(said) + b"\n")
            digests.append(chain.hexdigest())
        for item in self._request.items:
            chain.update(self._said(item) + b"\n")
            digests.append(chain.hexdigest())
        return digests

    def _begins(self) -> str:
        """Return a digest of the conversation up to the first message of the user."""
        if self._request.is_one_text:
            return self._digests[1]
        for place, item in enumerate(self._request.items):
            if item.value.get("role") == "user":
                return self._digests[place + 1]
        return self._digests[0]

    def _said(self, item: Element) -> bytes:
        text = item.text(self._request.text)
        try:
            marked = "cache_control" in text
            value = without(item.value, "cache_control") if marked else item.value
            return canonical(self._dialect.normal(value))
        except (NotJsonError, RecursionError):  # too deep for all but its first reader
            return text.encode()

    def _call_key(self, call_id: str, before: str) -> str:
        return self._key("call", call_id, "" if _STRONG_ID.match(call_id) else before)

    def _text_key(self, text: str, before: str) -> str:
        return self._key("text", "".join(text.split()), before)

    def _key(self, *parts: str) -> str:
        whole = "\0".join((self._owner, *parts)).encode("utf-8", "surrogatepass")
        return hashlib.sha256(whole).hexdigest()


def _same_turn(turns: Sequence[ClientTurn], kept: KeptTurn) -> list[ClientTurn]:
    """Return the turns that are one for the model, though a client has results between them.

    None where the client does not send back all that it was handed, or something else.
    """
    parts: list[ClientTurn] = []
    calls: list[tuple[str, str, Json]] = []
    for turn in turns:
        parts.append(turn)
        calls += turn.calls
        if len(calls) >= len(kept.calls) or not turn.calls:
            break
    return parts if kept.is_of(calls) else []
