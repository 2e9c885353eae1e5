"""How to serve: every key under `serve:`, its default, its range and its meaning.

This is the one declaration; the file's keys and the reference page are derived from it.
A token is never in it: only the variable that holds it, or its SHA-256 digest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from toolfold.errors import ConfigError
from toolfold.settings.check import Kind, check

__all__ = ["ServeSettings", "Token", "kinds"]

_MEBIBYTE = 1024 * 1024
_DIGEST = re.compile(r"(?:sha256:)?[0-9A-Fa-f]{64}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _key(default: Any, meaning: str, kind: Kind) -> Any:
    return field(default=default, metadata={"meaning": meaning, "kind": kind})


def _check_fields(values: Any, prefix: str) -> None:
    for item in fields(values):
        value = getattr(values, item.name)
        if value is None and item.default is None:
            continue
        object.__setattr__(
            values, item.name, check(prefix + item.name, value, item.metadata["kind"])
        )


def kinds(cls: type[ServeSettings | Token]) -> dict[str, Kind]:
    """Return what each key takes."""
    return {item.name: item.metadata["kind"] for item in fields(cls)}


@dataclass(frozen=True, slots=True)
class Token:
    """Somebody who may ask over HTTP, known by a bearer token."""

    name: str = _key("", "What logs and the audit call its owner.", Kind("text"))
    env: str = _key("", "The environment variable that holds the token.", Kind("text"))
    sha256: str = _key(
        "", "Or the SHA-256 digest of the token, in hexadecimal digits.", Kind("text")
    )
    allow: tuple[str, ...] = _key(
        ("*",), "Patterns of the tools that exist for it; `@NAME` is a whole server.", Kind("names")
    )
    deny: tuple[str, ...] = _key(
        (), "Patterns of tools that do not; they win over `allow`.", Kind("names")
    )
    read_only: bool = _key(
        False, "Whether only tools that say they change nothing exist for it.", Kind("boolean")
    )
    rate_limit: int | None = _key(
        None,
        "Requests a minute for it, in place of `serve.rate_limit`; 0 is no limit.",
        Kind("integer", low=0, high=1_000_000),
    )

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("a token has no `name`", hint="give it one, as `name: laptop`")
        _check_fields(self, f"tokens.{self.name}.")
        if bool(self.env) == bool(self.sha256):
            what = "both `env` and `sha256`" if self.env else "neither `env` nor `sha256`"
            raise ConfigError(
                f"the token `{self.name}` has {what}",
                hint="name the environment variable that holds it, or give its SHA-256 digest",
            )
        # What is wrong with a digest is not shown: it may be the token itself.
        if self.sha256 and not _DIGEST.match(self.sha256):
            raise ConfigError(
                f"`tokens.{self.name}.sha256` is not 64 hexadecimal digits",
                hint='write the digest, for example from `printf %s "$TOKEN" | sha256sum`',
            )
        if self.env and not _VARIABLE.match(self.env):
            raise ConfigError(
                f"`tokens.{self.name}.env` is not the name of a variable",
                hint="write a name, as `TOOLFOLD_TOKEN`; the token itself does not belong here",
            )


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """How to serve. Frozen and checked: a `ServeSettings` that exists can be used."""

    mode: Literal["bridge", "reveal"] | None = _key(
        None,
        "The older name of `strategy` under `tools: tool_search:`; still understood, and where "
        "both are written, this one counts.",
        Kind("choice", choices=("bridge", "reveal")),
    )
    lazy: bool = _key(
        False,
        "Whether a server whose tools are known from the last run is started at its first call.",
        Kind("boolean"),
    )
    context_length: int = _key(
        200_000,
        "The context window that the gate reckons with, in tokens; clients do not tell theirs.",
        Kind("integer", low=1, high=100_000_000),
    )
    destructive: Literal["allow", "ask", "refuse"] = _key(
        "allow",
        "What happens to a call that may destroy something: it runs, the person is asked "
        "first, or it is refused.",
        Kind("choice", choices=("allow", "ask", "refuse")),
    )
    trust: Literal["off", "changes", "all"] = _key(
        "off",
        "Which tools wait until a person has looked at them: none, those that changed, or "
        "new ones too.",
        Kind("choice", choices=("off", "changes", "all"), false="off"),
    )
    tokens: tuple[Token, ...] = _key(
        (), "Who may ask over HTTP; a list of blocks.", Kind("block", type=tuple)
    )
    read_only: bool = _key(
        False,
        "Whether only tools that say they change nothing exist, for everybody.",
        Kind("boolean"),
    )
    body_limit: int = _key(
        4 * _MEBIBYTE,
        "The largest request over HTTP, in bytes.",
        Kind("integer", low=1024, high=1_000_000_000),
    )
    rate_limit: int = _key(
        0,
        "Requests a minute for each token; 0 is no limit.",
        Kind("integer", low=0, high=1_000_000),
    )
    allowed_hosts: tuple[str, ...] = _key(
        (),
        "More names under which the gateway may be asked over HTTP, beside loopback and the "
        "address it listens on.",
        Kind("names"),
    )
    allowed_origins: tuple[str, ...] = _key(
        (), "Web pages that may ask, as `https://app.example.com`.", Kind("names")
    )
    audit: str = _key(
        "auto",
        "Where calls are written down: a file, `auto` for one in `state_dir`, or `off`.",
        Kind("text", false="off"),
    )
    state_dir: str = _key(
        "auto",
        "The folder for what is remembered between runs; `auto` is the user's own.",
        Kind("text"),
    )
    max_parallel: int = _key(
        64,
        "Calls that one server runs at once; more wait.",
        Kind("integer", low=1, high=10_000),
    )
    description_limit: int = _key(
        4_000,
        "The longest description of a tool that is passed on, in characters.",
        Kind("integer", low=100, high=1_000_000),
    )

    def __post_init__(self) -> None:
        if isinstance(self.tokens, list):
            object.__setattr__(self, "tokens", tuple(self.tokens))
        _check_fields(self, "serve.")
        _check_names(self.tokens)

    @property
    def state_folder(self) -> Path:
        """The folder that `state_dir` stands for. It need not exist."""
        if self.state_dir != "auto":
            return Path(self.state_dir).expanduser()
        import platformdirs

        return platformdirs.user_state_path("toolfold", appauthor=False)

    @property
    def audit_file(self) -> Path | None:
        """The file that `audit` stands for, or None where nothing is written."""
        if self.audit == "off":
            return None
        if self.audit == "auto":
            return self.state_folder / "audit.jsonl"
        return Path(self.audit).expanduser()


def _check_names(tokens: Sequence[Token]) -> None:
    names = [token.name for token in tokens]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(
            f"two tokens are named `{twice}`", hint="give every token a name of its own"
        )
