"""The model-API proxy: every key under `proxy:`, its default, its range and its meaning.

A key of a provider is never in it: only a reference to where it is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal
from urllib.parse import urlsplit

from toolfold.config.serve_settings import Token
from toolfold.errors import ConfigError
from toolfold.settings.declared import check_fields, setting

__all__ = ["ProxySettings", "Upstream"]

_MEBIBYTE = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9._-]+\Z")
_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)+\Z")
_REFERENCE = re.compile(r"\$\{[^{}]+\}\Z")


@dataclass(frozen=True, slots=True)
class Upstream:
    """A model server behind the proxy."""

    name: str = setting("", "What logs, metrics and errors call it.")
    url: str = setting(
        "", "Its base URL, with or without `/v1`, as `http://127.0.0.1:11434` or another's own."
    )
    models: tuple[str, ...] = setting(
        (), "Patterns of the models that it serves: requests for them go to it."
    )
    path: str = setting(
        "", "The first part of the path of requests that go to it, as `/local`; it is taken off."
    )
    key: str = setting(
        "",
        "A reference to its key, as `${OPENAI_API_KEY}` or `${file:PATH}`; it is sent in place of "
        "what clients send as theirs. The key itself may not stand here.",
    )
    pass_key: bool | None = setting(
        None,
        "Whether it gets the key that a client sends. By default it does where it is asked by "
        "`path`, or has neither `path` nor `models`, or is the only one; and never where it has "
        "a `key`.",
    )
    context_length: int | None = setting(
        None,
        "The context window of its models, in tokens, that the gate reckons with; models do not "
        "tell theirs.",
        low=1,
        high=100_000_000,
    )
    recover: bool = setting(
        False,
        "Whether a text of its models that is a call of an offered tool becomes a call.",
    )
    searches: bool | None = setting(
        None,
        "Whether it understands a client's own tool search (`defer_loading` and references). By "
        "default its address and the model tell.",
    )

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("an upstream has no `name`", hint="give it one, as `name: local`")
        check_fields(self, f"proxy.upstreams.{self.name}.")
        where = f"`proxy.upstreams.{self.name}"
        if not _NAME.match(self.name):
            raise ConfigError(
                f"an upstream is named {self.name!r}", hint="use letters, digits, `.`, `_`, `-`"
            )
        object.__setattr__(self, "url", checked_url(self.url, f"{where}.url`"))
        if self.path and not _PATH.match(self.path):
            raise ConfigError(
                f"{where}.path` is {self.path!r}", hint="write a path without an end, as `/local`"
            )
        # What is wrong with a key is not shown: it may be the key itself.
        if self.key and not _REFERENCE.match(self.key):
            raise ConfigError(
                f"{where}.key` is no reference",
                hint="put the key into an environment variable and write `key: ${NAME}`",
            )

    def serves(self, model: str) -> bool:
        """Whether requests for a model go to it."""
        return any(fnmatchcase(model, pattern) for pattern in self.models)


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """How to stand before model servers. One that exists can be used."""

    upstreams: tuple[Upstream, ...] = setting(
        (), "The model servers; a list of blocks. Requests that name none go to the first."
    )
    listen: str = setting("127.0.0.1:8788", "Where to listen: `HOST:PORT`.")
    tokens: tuple[Token, ...] = setting(
        (), "Who may ask; a list of blocks, as under `serve`. Off this machine there must be some."
    )
    body_limit: int = setting(
        32 * _MEBIBYTE,
        "The largest request that is folded, in bytes; others pass without being held.",
        low=1024,
        high=1_000_000_000,
    )
    reply_limit: int = setting(
        64 * _MEBIBYTE,
        "The largest answer to a folded request, in bytes, with all its rounds' streams.",
        low=1024,
        high=1_000_000_000,
    )
    connect_timeout: float = setting(
        10.0, "Seconds in which an upstream must be reached.", low=0.1, high=600
    )
    timeout: float = setting(600.0, "Seconds that an upstream may be silent.", low=0.1, high=86_400)
    keep_alive: float = setting(
        15.0,
        "Seconds of silence after which a client of a folded stream is told that work goes on.",
        low=0.05,
        high=3_600,
    )
    rounds: int = setting(
        6,
        "How often an upstream is asked for one request of a client, at most.",
        low=1,
        high=50,
    )
    store: Literal["memory", "file"] = setting(
        "memory",
        "Where the hidden turns of conversations are kept: in memory, or in a file in "
        "`serve.state_dir` that outlives the process. Where `serve.store` is a PostgreSQL they are "
        "there, and a conversation goes on at any proxy.",
    )

    def __post_init__(self) -> None:
        check_fields(self, "proxy.")
        for what in ("name", "path"):
            given = [value for each in self.upstreams if (value := getattr(each, what))]
            twice = next((value for value in given if given.count(value) > 1), None)
            if twice is not None:
                raise ConfigError(
                    f"two upstreams have the {what} `{twice}`",
                    hint=f"give every upstream a {what} of its own",
                )
        names = [token.name for token in self.tokens]
        double = next((name for name in names if names.count(name) > 1), None)
        if double is not None:
            raise ConfigError(
                f"two tokens are named `{double}`", hint="give every token a name of its own"
            )


def checked_url(url: str, where: str) -> str:
    """Return a base URL without its last slash.

    Raises:
        ConfigError: It is none, or holds what must not stand in it.
    """
    try:
        parts = urlsplit(url)
        port_is_good = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_is_good = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_good:
        # An address may hold a password: it is not shown.
        raise ConfigError(
            f"{where} is no address of a model server",
            hint="write one as `http://127.0.0.1:11434` or `https://api.openai.com`",
        )
    if parts.username or parts.password:
        raise ConfigError(
            f"{where} holds a password", hint="write `key: ${NAME}` beside it in place of that"
        )
    if parts.query or parts.fragment:
        raise ConfigError(f"{where} has a query", hint="write the base URL alone")
    return url.rstrip("/")
