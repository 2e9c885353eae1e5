"""How to serve: every key under `serve:`, its default, its range and its meaning.

This is the one declaration; the file's keys, the command line's flags and the reference
page are derived from it.
A token is never in it: only the variable that holds it, or its SHA-256 digest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolfold.config.oauth_settings import OAuthSettings
from toolfold.errors import ConfigError
from toolfold.settings.declared import check_fields, setting
from toolfold.store.store import check_tenant

__all__ = ["ServeSettings", "Token"]

FOLDED_WAIT, PLAIN_WAIT = 2.0, 10.0
_MEBIBYTE = 1024 * 1024
_DIGEST = re.compile(r"(?:sha256:)?[0-9A-Fa-f]{64}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PASSWORD = re.compile(r"(?i)://[^/@?]*:[^/@?]+@|\bpassword\s*=")


@dataclass(frozen=True, slots=True)
class Token:
    """Somebody who may ask over HTTP, known by a bearer token."""

    name: str = setting("", "What logs and the audit call its owner.")
    env: str = setting("", "The environment variable that holds the token.")
    sha256: str = setting("", "Or the SHA-256 digest of the token, in hexadecimal digits.")
    allow: tuple[str, ...] = setting(
        ("*",), "Patterns of the tools that exist for it; `@NAME` is a whole server."
    )
    deny: tuple[str, ...] = setting((), "Patterns of tools that do not; they win over `allow`.")
    read_only: bool = setting(
        False, "Whether only tools that say they change nothing exist for it."
    )
    rate_limit: int | None = setting(
        None,
        "Requests a minute for it, in place of `serve.rate_limit`; 0 is no limit.",
        low=0,
        high=1_000_000,
    )
    tenant: str = setting(
        "default", "Whose it is, among those who share a deployment and see nothing of each other."
    )
    profiles: tuple[str, ...] | None = setting(
        None,
        "The profiles under which it may ask, and nowhere else; unset, it may ask under all of "
        "them and without one.",
    )

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("a token has no `name`", hint="give it one, as `name: laptop`")
        if not self.name.isprintable() or self.name != self.name.strip():
            # It stands in logs and the audit, and tells conversations apart.
            raise ConfigError(
                f"a token is named {self.name!r}",
                hint="leave control characters, and blanks around it, out",
            )
        check_fields(self, f"tokens.{self.name}.")
        check_tenant(self.tenant, f"`tokens.{self.name}.tenant`")
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

    mode: Literal["bridge", "reveal"] | None = setting(
        None,
        "The older name of `strategy` under `tools: tool_search:`; still understood, and where "
        "both are written, this one counts.",
    )
    lazy: bool = setting(
        False,
        "Whether a server whose tools are known from the last run is started at its first call.",
    )
    wait: float | None = setting(
        None,
        "Seconds that a client's first list waits for servers that are still starting. Unset, "
        "2 where tools are folded by then, since the bridge finds what comes later, and 10 where "
        "none are: a client that never lists again would miss it.",
        low=0,
        high=600,
    )
    context_length: int = setting(
        200_000,
        "The context window that the gate reckons with, in tokens; clients do not tell theirs.",
        low=1,
        high=100_000_000,
    )
    destructive: Literal["allow", "ask", "refuse"] = setting(
        "allow",
        "What happens to a call that may destroy something: it runs, the person is asked "
        "first, or it is refused.",
    )
    trust: Literal["off", "changes", "all"] = setting(
        "off",
        "Which tools wait until a person has looked at them: none, those that changed, or "
        "new ones too.",
        false="off",
    )
    tokens: tuple[Token, ...] = setting((), "Who may ask over HTTP; a list of blocks.")
    oauth: OAuthSettings | None = setting(
        None, "Whose access tokens are taken beside `tokens`; a block of its own."
    )
    read_only: bool = setting(
        False, "Whether only tools that say they change nothing exist, for everybody."
    )
    body_limit: int = setting(
        4 * _MEBIBYTE,
        "The largest request over HTTP, in bytes.",
        low=1024,
        high=1_000_000_000,
    )
    rate_limit: int = setting(
        0,
        "Requests a minute for each token; 0 is no limit.",
        low=0,
        high=1_000_000,
    )
    request_timeout: float = setting(
        15.0,
        "Seconds in which a request over HTTP must have come whole, its headers and its body.",
        low=0.1,
        high=3_600,
    )
    max_connections: int = setting(
        512,
        "Connections over HTTP, in all, and no more than half of what the system lets the "
        "process open; beyond, the oldest without a request under way gives way.",
        low=1,
        high=100_000,
    )
    requests_per_token: int = setting(
        256,
        "Requests over HTTP that one token may have under way, streams included.",
        low=1,
        high=100_000,
    )
    max_sessions: int = setting(1_000, "Sessions over HTTP, in all.", low=1, high=1_000_000)
    sessions_per_token: int = setting(
        500, "Sessions over HTTP that one token may have open.", low=1, high=1_000_000
    )
    session_idle: float = setting(
        1_800.0,
        "Seconds after which a session without a request is closed.",
        low=1,
        high=1_000_000,
    )
    drain: float = setting(
        5.0,
        "Seconds that calls under way have to end when the gateway is told to stop; new ones are "
        "refused meanwhile.",
        low=0,
        high=3_600,
    )
    notice: float = setting(
        0.0,
        "Seconds between the moment at which `/readyz` fails, because the gateway was told to "
        "stop, and the one at which new calls are refused: as long as a balancer takes to notice.",
        low=0,
        high=600,
    )
    watch: bool = setting(
        False,
        "Whether the configuration is read again whenever its file changes. Whoever can write "
        "the file, an agent with a file tool, too, can then start programs and widen scopes.",
    )
    admin: str = setting(
        "off",
        "Who may change the gateway over HTTP, at `/admin/VERB`: the environment variable that "
        "holds the admin's token, or `sha256:` and its digest; `off` is nobody.",
        false="off",
    )
    allowed_hosts: tuple[str, ...] = setting(
        (),
        "More names under which the gateway may be asked over HTTP, beside loopback and the "
        "address it listens on.",
    )
    allowed_origins: tuple[str, ...] = setting(
        (), "Web pages that may ask, as `https://app.example.com`."
    )
    audit: str = setting(
        "auto",
        "Where calls are written down: a file, `auto` for one in `state_dir`, or `off`. With "
        "`auto` and a `store` that is a PostgreSQL they are written there, and to the file while "
        "that is away.",
        false="off",
    )
    audit_days: int = setting(
        90,
        "Days for which calls stand in the audit of a PostgreSQL; 0 is for ever. Files are bounded "
        "by their size.",
        low=0,
        high=36_500,
    )
    state_dir: str = setting(
        "auto", "The folder for what is remembered between runs; `auto` is the user's own."
    )
    store: str = setting(
        "files",
        "Where what is remembered and shared is kept: `files` for `state_dir`, or a PostgreSQL "
        "that several replicas share: its address as libpq takes it, without a password, or the "
        "environment variable that holds it.",
    )
    catalog: Literal["own", "shared"] = setting(
        "own",
        "Where tools are searched: among those that this gateway holds, or in the catalog that "
        "`store` keeps for several, without holding them. A server that is known there is started "
        "at its first call, unless it says `lazy: false`.",
    )
    catalog_tenant: str = setting(
        "default",
        "Whose shared catalog the tools are written to that the servers of this gateway list.",
    )
    max_parallel: int = setting(
        64,
        "Calls that one server, or one module of functions, runs at once; more wait.",
        low=1,
        high=10_000,
    )
    description_limit: int = setting(
        4_000,
        "The longest description of a tool that is passed on, in characters; a text that is cut "
        "says so.",
        low=100,
        high=1_000_000,
    )
    result_limit: int = setting(
        0,
        "The longest result that is passed on, in characters: of a call its content, and its "
        "structured content as JSON; what was read of a resource; a prompt. What is cut or left "
        "out says so. 0 is no limit.",
        low=0,
        high=1_000_000_000,
    )

    def __post_init__(self) -> None:
        check_fields(self, "serve.")
        _check_names(self.tokens)
        _check_admin(self.admin)
        _check_store(self.store)
        if self.catalog == "shared" and self.store == "files":
            raise ConfigError(
                "`serve.catalog` is shared, and `serve.store` names no PostgreSQL",
                hint="write its address, as `store: postgresql://user@host/name`",
            )
        check_tenant(self.catalog_tenant, "`serve.catalog_tenant`")

    @property
    def folded_wait(self) -> float:
        """How long a first list waits where the bridge is in it, in seconds."""
        return FOLDED_WAIT if self.wait is None else self.wait

    @property
    def plain_wait(self) -> float:
        """How long a first list waits where nothing is folded, in seconds."""
        return PLAIN_WAIT if self.wait is None else self.wait

    @property
    def knows_callers(self) -> bool:
        """Whether callers over HTTP are told apart: by tokens, or by an issuer's."""
        return bool(self.tokens) or self.oauth is not None

    @property
    def token_variables(self) -> tuple[str, ...]:
        """The environment variables that hold tokens, the admin's too, and the store's address."""
        admins = () if self.admin == "off" or self.admin.startswith("sha256:") else (self.admin,)
        stores = () if self.store == "files" or _is_address(self.store) else (self.store,)
        return (*(token.env for token in self.tokens if token.env), *admins, *stores)

    @property
    def state_folder(self) -> Path:
        """The folder that `state_dir` stands for. It need not exist."""
        if self.state_dir != "auto":
            return Path(self.state_dir).expanduser()
        import platformdirs

        return platformdirs.user_state_path("toolfold", appauthor=False)

    @property
    def store_address(self) -> str | None:
        """The address of the PostgreSQL that `store` stands for; None for files.

        Raises:
            ConfigError: It is to be in a variable, which is not set.
        """
        if self.store == "files":
            return None
        if _is_address(self.store):
            return self.store
        address = os.environ.get(self.store, "").strip()
        if not address:
            raise ConfigError(
                f"the address of the store is to be in the variable {self.store!r}, which is "
                "not set",
                hint=f"set it, as `export {self.store}=postgresql://user@host/name`",
            )
        return address

    @property
    def audit_file(self) -> Path | None:
        """The file that `audit` stands for, or None where nothing is written."""
        if self.audit == "off":
            return None
        if self.audit == "auto":
            return self.state_folder / "audit.jsonl"
        return Path(self.audit).expanduser()


def _check_admin(admin: str) -> None:
    # What is wrong with it is not shown: it may be the token itself.
    if admin.startswith("sha256:") and not _DIGEST.match(admin):
        raise ConfigError(
            "`serve.admin` is not `sha256:` and 64 hexadecimal digits",
            hint='write the digest, for example from `printf %s "$TOKEN" | sha256sum`',
        )
    if not admin.startswith("sha256:") and not _VARIABLE.match(admin):
        raise ConfigError(
            "`serve.admin` is not the name of a variable",
            hint="write a name, as `TOOLFOLD_ADMIN`; the token itself does not belong here",
        )


def _is_address(store: str) -> bool:
    return "://" in store or "=" in store


def _check_store(store: str) -> None:
    if not _is_address(store):
        if _VARIABLE.match(store):
            return
        raise ConfigError(
            "`serve.store` is neither an address nor the name of a variable",
            hint="write `files`, `postgresql://user@host/name`, or a name as `TOOLFOLD_STORE`",
        )
    if "://" in store and not store.startswith(("postgresql://", "postgres://")):
        raise ConfigError(
            "`serve.store` is not the address of a PostgreSQL",
            hint="write it as `postgresql://user@host/name`",
        )
    # What is wrong with it is not shown: it holds the password.
    if _PASSWORD.search(store):
        raise ConfigError(
            "`serve.store` has a password in it, which does not belong in the file",
            hint="put the whole address into a variable and name that, or use a password file",
        )


def _check_names(tokens: Sequence[Token]) -> None:
    names = [token.name for token in tokens]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(
            f"two tokens are named `{twice}`", hint="give every token a name of its own"
        )
