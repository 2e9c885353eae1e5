"""What was approved and what waits, in one document that several processes share.

Two gateways and a person at the command line may use it at once: every change reads it again
under a lock and replaces it whole, so that no approval is lost and none is read by half. What
cannot be read is an error, never an empty document: nothing is approved by breaking it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from toolfold._json_values import compact_bytes, parse_strict
from toolfold.errors import ToolfoldError
from toolfold.store.files import documents_in
from toolfold.store.store import Documents, Signature
from toolfold.tool import Json, is_object

__all__ = ["Approved", "Book", "Reason", "TrustEntry", "TrustError", "TrustStore", "Waiting"]

VERSION = 1
FILE_NAME = "trust.json"

Reason = Literal["new", "changed"]
"""Why a tool waits."""


class TrustError(ToolfoldError):
    """The file of approvals cannot be used."""


@dataclass(frozen=True, slots=True)
class Approved:
    """What of a tool was approved."""

    fingerprint: str
    at: float
    """When, in seconds since 1970."""

    how: Literal["first use", "person"]
    content: str = field(default="{}", repr=False)
    """What a model read of it then, in JSON."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What of a tool waits for a person."""

    fingerprint: str
    at: float
    """When it was first seen, in seconds since 1970."""

    reason: Reason
    content: str = field(default="{}", repr=False)
    """What a model would read of it, in JSON."""

    marks: tuple[str, ...] = ()
    """What in it should be looked at twice."""

    is_shown: bool = False
    """Whether a person has seen exactly this."""

    is_rejected: bool = False
    """Whether a person has turned down exactly this."""


@dataclass(frozen=True, slots=True)
class TrustEntry:
    """All that is known of one tool."""

    approved: Approved | None = None
    waiting: Waiting | None = None


Book = Mapping[str, Mapping[str, TrustEntry]]
"""The entries by server and by tool."""


class TrustStore:
    """The document.

    Args:
        place: The folder that its file is in, or where it is kept together with others.
    """

    def __init__(self, place: Path | Documents) -> None:
        self._documents = documents_in(place)

    def signature(self) -> Signature:
        """Return what changes whenever it is replaced; None where there is none.

        Raises:
            StoreAwayError: It is shared, and cannot be reached.
        """
        return self._documents.signature(FILE_NAME)

    def load(self) -> Book:
        """Return what it holds; nothing where there is none.

        Raises:
            TrustError: It cannot be read.
            StoreAwayError: It is shared, and cannot be reached.
        """
        try:
            return self._read(self._documents.read(FILE_NAME))
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from None

    def update(self, change: Callable[[Book], Book]) -> Signature:
        """Replace its content by what `change` makes of it; return its signature.

        Raises:
            TrustError: It cannot be read, written or locked.
            StoreAwayError: It is shared, and cannot be reached.
        """

        def changed(content: bytes | None) -> bytes | None:
            old = self._read(content)
            new = change(old)
            if new == old:
                return None
            return compact_bytes({"version": VERSION, "servers": new}) + b"\n"

        try:
            return self._documents.update(FILE_NAME, changed)
        except TimeoutError:
            raise TrustError(
                f"another process holds on to `{self._where}`", hint="end it, then try again"
            ) from None
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from None

    def vanished(self) -> TrustError:
        """Return what is wrong where it was there and is no more."""
        return self._unusable("it was there, and is no more")

    @property
    def _where(self) -> str:
        return self._documents.where(FILE_NAME)

    def _read(self, content: bytes | None) -> Book:
        if content is None:
            return {}
        try:
            return _book(parse_strict(content))
        except KeyError as error:
            raise self._unusable(f"{error} is missing in it") from None
        except (ValueError, TypeError) as error:
            raise self._unusable(f"it is damaged: {error}") from None

    def _unusable(self, reason: str) -> TrustError:
        return TrustError(
            f"the approvals in `{self._where}` cannot be used: {reason}",
            hint="put the file back from a copy, or move it away and approve the tools again",
        )


def _book(document: Json) -> Book:
    if not is_object(document) or document.get("version") != VERSION:
        raise ValueError(f"it is not of version {VERSION}")
    return {
        _text(server): {_text(name): _entry(value) for name, value in _object(tools).items()}
        for server, tools in _object(document["servers"]).items()
    }


def _entry(value: Json) -> TrustEntry:
    approved, waiting = _object(value)["approved"], value["waiting"]
    return TrustEntry(
        None if approved is None else _approved(_object(approved)),
        None if waiting is None else _waiting(_object(waiting)),
    )


def _approved(value: dict[str, Json]) -> Approved:
    if value["how"] not in ("first use", "person"):
        raise ValueError("an approval says not how it came about")
    at = float(value["at"])
    return Approved(_text(value["fingerprint"]), at, value["how"], _text(value["content"]))


def _waiting(value: dict[str, Json]) -> Waiting:
    if value["reason"] not in ("new", "changed"):
        raise ValueError("a tool waits for no known reason")
    return Waiting(
        fingerprint=_text(value["fingerprint"]),
        at=float(value["at"]),
        reason=value["reason"],
        content=_text(value["content"]),
        marks=tuple(map(_text, value["marks"])),
        is_shown=value["is_shown"] is True,
        is_rejected=value["is_rejected"] is True,
    )


def _object(value: Json) -> dict[str, Json]:
    if not is_object(value):
        raise TypeError("something in it is not an object")
    return value


def _text(value: Json) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("something in it is not a text")
    return value
