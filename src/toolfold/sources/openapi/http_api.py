"""One HTTP API, as a configuration or a program names it.

An `HttpApi` that exists can be asked, unless it says why it cannot (`problem`). Its `repr` shows
no credential.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolfold.errors import ConfigError
from toolfold.redact import SHORTEST, is_secret_name
from toolfold.settings.declared import check_fields, setting
from toolfold.settings.frozen import FrozenMapping
from toolfold.sources.openapi._servers import check_address
from toolfold.sources.openapi.client_credentials import ClientCredentials

__all__ = ["HttpApi"]

_NOTHING: Mapping[str, str] = FrozenMapping[str]()
_NO_CREDENTIALS: Mapping[str, str | ClientCredentials] = FrozenMapping[str | ClientCredentials]()


@dataclass(frozen=True, slots=True, repr=False)
class HttpApi:
    """An API with an OpenAPI document: where both are, and what is sent along.

    Its settings are declared here, under the keys that a file has for them.

    Example:
        HttpApi("pets", file="petstore.yaml", base_url="https://pets.example/v1")
    """

    name: str
    """Its name in the configuration; the source of its tools."""

    file: str = setting(
        "",
        "The document: a file of JSON or YAML, OpenAPI 3.0 or 3.1. A relative path starts at the "
        "configuration.",
    )
    url: str = setting(
        "",
        "The address of the document, in place of `file`. It is fetched at the start, and then "
        "every `refresh`.",
    )
    refresh: float = setting(
        3_600.0,
        "Seconds until a document at an address is asked for again, or a text such as `30m` or "
        "`1h`; 0 for never. While it cannot be had, the last one stays.",
        low=0,
        high=2_592_000,
    )
    base_url: str = setting(
        "",
        "The address that paths follow, in place of what the document says. It is needed where "
        "the document names a private address, and where one that came from a `url` names "
        "another host than that.",
    )
    auth: Mapping[str, str | ClientCredentials] = setting(
        _NO_CREDENTIALS,
        "Credentials, by the name that the document has for the security scheme, or as `bearer` "
        "(a token) or `basic` (`user:password`) where it has none. Write them as references "
        "(`${NAME}`). Where an access token is to be fetched and renewed, a block of the keys "
        "below, under the scheme's name or `oauth2`.",
    )
    headers: Mapping[str, str] = setting(_NOTHING, "Headers of every request to the API.")
    variables: Mapping[str, str] = setting(
        _NOTHING, "Values of the variables in the document's server address."
    )
    allow: tuple[str, ...] = setting(
        ("*",), "Patterns over the operations' names; the others do not exist."
    )
    deny: tuple[str, ...] = setting(
        (), "Patterns of operations that do not exist; they win over `allow`."
    )
    deprecated: bool = setting(False, "Whether deprecated operations are tools, too.")
    output_schemas: bool = setting(
        False,
        "Whether tools carry the schema of their answers, and answers are checked by it: one that "
        "does not fit is an error.",
    )
    timeout: float = setting(60.0, "Seconds until a call must be answered.", low=0.1, high=86_400)
    response_limit: int = setting(
        4_000_000,
        "Bytes of an answer that are read; the rest is left, and the model is told.",
        low=1_000,
        high=100_000_000,
    )
    disabled: bool = setting(False, "Whether to leave the API out.")
    folder: Path = Path()
    """Where a relative path starts."""

    problem: ConfigError | None = field(default=None, compare=False)
    """Why it cannot be used, where that is known already."""

    hidden: tuple[str, ...] = ()
    """What came out of references and must not be shown."""

    def __post_init__(self) -> None:
        prefix = f"openapi.{self.name}."
        check_fields(self, prefix)
        if self.file and self.url:
            raise ConfigError(f"`openapi.{self.name}` has both `file` and `url`", hint="give one")
        for key in ("url", "base_url"):
            if url := getattr(self, key):
                check_address(prefix + key, url)
        for name, value in self.headers.items():
            if not value.isprintable() or not value.isascii() or not _is_token(name):
                raise ConfigError(
                    f"`{prefix}headers.{name}` cannot be sent",
                    hint="leave line breaks and control characters out",
                )

    def __repr__(self) -> str:
        return f"HttpApi({self.name!r}, {self.file or self.url!r})"

    @property
    def credentials(self) -> tuple[str, ...]:
        """What signs its requests: what no result may show, should the API repeat it."""
        found: dict[str, None] = {}
        for value in self.auth.values():
            if isinstance(value, ClientCredentials):
                pair = f"{value.client_id}:{value.client_secret}"
                found |= dict.fromkeys((value.client_secret, b64encode(pair.encode()).decode()))
                continue
            found[value] = None
            # The password of `user:password` by itself, and both as they are sent.
            found[value.partition(":")[2]] = None
            found[b64encode(value.encode()).decode()] = None
        for name, value in self.headers.items():
            if is_secret_name(name):
                found[value] = None
                found[value.rpartition(" ")[2]] = None
        return tuple(value for value in found if len(value) >= SHORTEST)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must never be written down, for a `Redactor`."""
        return tuple(dict.fromkeys((*self.hidden, *self.credentials)))

    @property
    def path(self) -> Path | None:
        """The document's file, where it is one."""
        return self.folder / Path(self.file).expanduser() if self.file else None


def _is_token(name: str) -> bool:
    return bool(name) and name.isascii() and name.isprintable() and not set(name) & set(' :()/,"')
