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
from functools import cached_property
from typing import NamedTuple

from toolfold._json_values import NotJsonError, canonical, compact_bytes, parse
from toolfold.proxy.conversation import FoldedConversation, conversation_key
from toolfold.proxy.dialects.dialect import ClientTurn, Dialect
from toolfold.proxy.json_spans import Edit, Element, without
from toolfold.proxy.request import ProxiedRequest
from toolfold.proxy.turns import KeptTurn
from toolfold.store.store import Entries
from toolfold.strategy import FoundForm
from toolfold.tool import Json, is_array

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
        store: Entries,
        owner: str,
        headers: Mapping[str, str],
    ) -> None:
        self._dialect = dialect
        self._request = request
        self._store = store
        self._owner = f"{dialect.name} {owner}"
        self._turns = dialect.turns(request)
        named = request.document.get("prompt_cache_key")
        self._conversation = conversation_key(self._begins(), headers, named)

    @cached_property
    def _digests(self) -> list[str]:
        """For every place in the conversation, a digest of what stands before it.

        Most requests below the gate never ask for it.
        """
        return self._chain(len(self._request.items))

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

    @property
    def called(self) -> frozenset[str]:
        """The names of the tools that were called."""
        return frozenset(name for turn in self._turns for name in turn.names)

    @property
    def has_answers(self) -> bool:
        """Whether the model has spoken."""
        return bool(self._turns)

    def keep_note(self, place: int, note: str, names: Sequence[str]) -> None:
        """Keep a message of ours that stands behind one of the user's from now on.

        Args:
            place: How many items stand before it.
            note: The message, as JSON.
            names: The tools that it names.
        """
        self._store.put(self._note_key(place), compact_bytes([note, *names]))

    def has_note(self, place: int) -> bool:
        """Whether a note is kept for a place, of whatever tools."""
        return self._note_key(place) in self._found

    def note(self, place: int, is_there: Callable[[str], bool]) -> str | None:
        """Return the note that is kept for a place; None where a tool that it names is not there.

        Conversations that begin the same may have other tools, and another scope.
        """
        kept = self._found.get(self._note_key(place))
        try:
            value = None if kept is None else parse(kept)
        except (ValueError, RecursionError):
            return None
        texts = [text for text in (value if is_array(value) else ()) if isinstance(text, str)]
        return texts[0] if texts and all(map(is_there, texts[1:])) else None

    def missing_answers(self) -> Iterator[Edit]:
        """Yield the answers that a server misses which holds the conversation itself.

        It knows of all calls of a turn, and the client only of those that it was handed.
        """
        given: set[str] = set()
        called: list[tuple[Element, str, str]] = []
        for place, item in enumerate(self._request.items):
            call_id = item.value.get("call_id")
            if isinstance(call_id, str) and _STRONG_ID.match(call_id):
                called.append((item, call_id, self._call_key(call_id, self._digests[place])))
        all_kept = self._store.get_all([key for _, _, key in called])
        for item, call_id, key in called:
            kept = all_kept.get(key) if call_id not in given else None
            found = None if kept is None else KeptTurn.load(kept)
            if found is not None:
                given.update(other for other, _, _ in found.calls)
                for answer in found.answers:
                    yield Edit(item.start, item.start, answer + self._request.separator)

    def _kept(self, turn: ClientTurn) -> KeptTurn | None:
        for key in self._keys(turn):
            kept = self._found.get(key)
            found = None if kept is None else KeptTurn.load(kept)
            if found is not None:
                return found
        return None

    @cached_property
    def _found(self) -> Mapping[str, bytes]:
        """All that is kept of the conversation's turns and notes, asked for at once."""
        keys = {key for turn in self._turns for key in self._keys(turn)}
        keys.update(map(self._note_key, range(1, len(self._digests))))
        return self._store.get_all(keys)

    def _keys(self, turn: ClientTurn) -> Iterator[str]:
        """Yield what a turn may be kept under."""
        before = self._digests[turn.first]
        if not turn.calls:
            yield self._text_key(turn.text, before)
        for call_id, _, _ in turn.calls:
            yield self._call_key(call_id, before)

    def _chain(self, end: int) -> list[str]:
        """Return, for every place up to one, a digest of what stands before it."""
        chain = hashlib.sha256(self._owner.encode("utf-8", "surrogatepass"))
        digests = [chain.hexdigest()]
        if self._request.is_one_text:
            said = {"role": "user", "content": self._request.document.get("input")}
            chain.update(canonical(said) + b"\n")
            digests.append(chain.hexdigest())
        for item in self._request.items[:end]:
            chain.update(self._said(item) + b"\n")
            digests.append(chain.hexdigest())
        return digests

    def _begins(self) -> str:
        """Return a digest of the conversation up to the first message of the user."""
        if self._request.is_one_text:
            return self._chain(0)[1]
        for place, item in enumerate(self._request.items):
            if item.value.get("role") == "user":
                return self._chain(place + 1)[-1]
        return self._chain(0)[0]

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

    def _note_key(self, place: int) -> str:
        return self._key("note", self._digests[place])

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
