"""A session as bytes, and back: what a conversation has done, kept beyond a process."""

from __future__ import annotations

from toolfold._json_values import compact_bytes, parse
from toolfold.session import SentArray, Session
from toolfold.tool import Json, is_array, is_object

__all__ = ["dump_session", "load_session", "session_fields", "session_of"]

_VERSION = 1


def dump_session(session: Session) -> bytes:
    """Return a session as a store keeps it."""
    return compact_bytes([_VERSION, session_fields(session)])


def load_session(kept: bytes | None) -> Session | None:
    """Return what a store kept; None where that cannot be read, or is of another version."""
    try:
        value = parse(kept) if kept is not None else None
        if not is_array(value) or value[0] != _VERSION:
            return None
        return session_of(value[1])
    except (ValueError, RecursionError, KeyError, TypeError, IndexError, AttributeError):
        return None


def session_fields(session: Session) -> Json:
    """Return a session as a JSON value."""
    sent = session.sent
    fields: dict[str, Json] = {
        "revealed": session.revealed,
        "defined": session.defined,
        "bridged": session.bridged,
        "breaks": session.breaks,
        "refused": session.refused,
        "sent": None
        if sent is None
        else {
            "api": sent.api,
            "strategy": sent.strategy,
            "digest": sent.digest,
            "records": sent.records,
            "deferred": sorted(sent.deferred),
            "guidance": sent.guidance,
        },
    }
    return {**fields, "fruitless": session.fruitless} if session.fruitless else fields


def session_of(value: Json) -> Session:
    """Return the session that a JSON value holds.

    Raises:
        KeyError: It holds none; or `TypeError`, `ValueError`, `AttributeError`.
    """
    sent = value["sent"]
    return Session(
        revealed=tuple(map(str, value["revealed"])),
        fruitless=int(value.get("fruitless", 0)),
        defined=_pairs(value["defined"]),
        bridged=bool(value["bridged"]),
        breaks=int(value["breaks"]),
        refused=tuple(map(str, value["refused"])),
        sent=SentArray(
            str(sent["api"]),
            str(sent["strategy"]),
            str(sent["digest"]),
            _pairs(sent["records"]),
            frozenset(map(str, sent["deferred"])),
            str(sent["guidance"]),
        )
        if is_object(sent)
        else None,
    )


def _pairs(value: Json) -> tuple[tuple[str, str], ...]:
    return tuple((str(one), str(other)) for one, other in value)
