"""Tokens that were made by command: their digests, in one document.

A token itself is shown once, to whoever made it, and is kept nowhere. What was revoked stays
there as such: a gateway whose last token was revoked lets nobody in, and not everybody.
What cannot be read is an error, never an empty document.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolfold._json_values import compact_bytes, parse_strict
from toolfold.config.opened_store import store_of
from toolfold.config.serve_settings import Token
from toolfold.errors import ConfigError
from toolfold.store.files import documents_in
from toolfold.store.store import Documents
from toolfold.tool import Json, is_array, is_object

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig

__all__ = ["NOBODYS", "KeptToken", "TokenStore", "admitting", "new_token", "with_kept_tokens"]

VERSION = 1
LIMITED_VERSION = 2
"""Of a file with a token that is limited to profiles: who does not know of them refuses it."""
FILE_NAME = "tokens.json"
_PREFIX = "tf_"
NOBODYS = Token("(revoked)", sha256="0" * 64, allow=())
"""Keeps the door closed where all tokens were revoked: nothing has this digest."""


@dataclass(frozen=True, slots=True)
class KeptToken:
    """One token, without itself."""

    name: str
    sha256: str
    created: float
    """When, in seconds since 1970."""

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    read_only: bool = False
    tenant: str = "default"
    revoked: float | None = None
    """When it was revoked; None while it counts."""

    profiles: tuple[str, ...] | None = None
    """The profiles under which it may ask, and nowhere else; None where it may ask anywhere."""

    @property
    def token(self) -> Token:
        """It, as the settings have it."""
        return Token(
            self.name,
            sha256=self.sha256,
            allow=self.allow,
            deny=self.deny,
            read_only=self.read_only,
            tenant=self.tenant,
            profiles=self.profiles,
        )


def new_token() -> str:
    """Return a new token, too long to guess."""
    return f"{_PREFIX}{secrets.token_urlsafe(32)}"


class TokenStore:
    """The document.

    Args:
        place: The folder that its file is in, or where it is kept together with others.
    """

    def __init__(self, place: Path | Documents) -> None:
        self._documents = documents_in(place)

    def load(self) -> tuple[KeptToken, ...]:
        """Return all tokens, revoked ones too; none where there is no document.

        Raises:
            ConfigError: It cannot be read.
            StoreAwayError: It is shared, and cannot be reached.
        """
        try:
            return self._read(self._documents.read(FILE_NAME))
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from None

    def create(self, made: KeptToken) -> None:
        """Keep a token.

        Raises:
            ConfigError: One of that name counts already, or the file cannot be used.
        """

        def change(kept: tuple[KeptToken, ...]) -> tuple[KeptToken, ...]:
            if any(each.name == made.name and each.revoked is None for each in kept):
                raise ConfigError(
                    f"there is a token named {made.name!r} already",
                    hint="choose another name, or revoke that one first",
                )
            return (*(each for each in kept if each.name != made.name), made)

        self._update(change)

    def revoke(self, name: str, now: float) -> None:
        """Have a token count no more.

        Raises:
            ConfigError: There is none of that name, or the file cannot be used.
        """

        def change(kept: tuple[KeptToken, ...]) -> tuple[KeptToken, ...]:
            if not any(each.name == name and each.revoked is None for each in kept):
                raise ConfigError(
                    f"no token named {name!r} was made by command",
                    hint="see `toolfold tokens list`; those of the file are changed in the file",
                )
            return tuple(replace(each, revoked=now) if each.name == name else each for each in kept)

        self._update(change)

    def _update(self, change: Callable[[tuple[KeptToken, ...]], tuple[KeptToken, ...]]) -> None:
        def changed(content: bytes | None) -> bytes:
            kept = change(self._read(content))
            return compact_bytes({"version": _version(kept), "tokens": kept}) + b"\n"

        try:
            self._documents.update(FILE_NAME, changed)
        except TimeoutError:
            raise ConfigError(
                f"another process holds on to `{self._where}`", hint="end it, then try again"
            ) from None
        except OSError as error:
            raise ConfigError(
                f"cannot write `{self._where}`: {error.strerror or error}",
                hint="see who may write there, or name another folder as `serve.state_dir`",
            ) from None

    @property
    def _where(self) -> str:
        return self._documents.where(FILE_NAME)

    def _read(self, content: bytes | None) -> tuple[KeptToken, ...]:
        if content is None:
            return ()
        try:
            return _tokens(parse_strict(content))
        except (ValueError, TypeError, KeyError) as error:
            raise self._unusable(f"it is damaged: {error}") from None

    def _unusable(self, reason: str) -> ConfigError:
        return ConfigError(
            f"the tokens in `{self._where}` cannot be used: {reason}",
            hint="put the file back from a copy, or move it away and make the tokens again",
        )


def with_kept_tokens(config: GatewayConfig) -> GatewayConfig:
    """Return a configuration with the tokens that were made by command beside its own.

    Raises:
        ConfigError: They cannot be read, or one has the name of the file's.
        StoreAwayError: They are shared, and cannot be reached.
    """
    kept = TokenStore(store_of(config.serve).documents).load()
    if not kept:
        return config
    tokens = (*config.serve.tokens, *(each.token for each in kept if each.revoked is None))
    return replace(config, serve=replace(config.serve, tokens=tokens or (NOBODYS,)))


def admitting(config: GatewayConfig) -> list[Token]:
    """Return the tokens that let somebody in."""
    return [token for token in config.serve.tokens if token != NOBODYS]


def _version(kept: tuple[KeptToken, ...]) -> int:
    return VERSION if all(each.profiles is None for each in kept) else LIMITED_VERSION


def digest_of(token: str) -> str:
    """Return the digest by which a token is kept."""
    return hashlib.sha256(token.encode()).hexdigest()


def _tokens(document: Json) -> tuple[KeptToken, ...]:
    if not is_object(document) or document.get("version") not in (VERSION, LIMITED_VERSION):
        raise ValueError(f"it is not of version {VERSION} or {LIMITED_VERSION}")
    found = document["tokens"]
    if not is_array(found):
        raise TypeError("its tokens are no list")
    return tuple(map(_kept, found))


def _kept(value: Json) -> KeptToken:
    if not is_object(value):
        raise TypeError("a token in it is no object")
    revoked, profiles = value["revoked"], value.get("profiles")
    kept = KeptToken(
        str(value["name"]),
        str(value["sha256"]),
        float(value["created"]),
        tuple(map(str, value["allow"])),
        tuple(map(str, value["deny"])),
        value["read_only"] is True,
        str(value.get("tenant", "default")),
        None if revoked is None else float(revoked),
        None if profiles is None else tuple(map(str, profiles)),
    )
    try:
        assert kept.token
    except ConfigError as error:
        raise ValueError(error.message) from None
    return kept
