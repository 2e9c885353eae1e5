"""OAuth 2's client credentials: who we are at a token server, and where that is.

Its `repr` shows no secret. Where a token is asked for is a person's to say: the address that a
document names is a stranger's, and is taken only where somebody wrote so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from toolfold.errors import ConfigError
from toolfold.settings.declared import check_fields, setting
from toolfold.settings.frozen import FrozenMapping
from toolfold.sources.openapi._servers import check_address

__all__ = ["DOCUMENTS_OWN", "ClientCredentials"]

DOCUMENTS_OWN = "document"
"""In place of a token server's address: the one that the document names."""

_NOTHING: Mapping[str, str] = FrozenMapping[str]()


@dataclass(frozen=True, slots=True, repr=False)
class ClientCredentials:
    """What an access token is asked for with.

    Example:
        HttpApi("shop", file="shop.yaml", auth={"oauth2": ClientCredentials(
            token_url="https://login.shop.example/token", client_id="me", client_secret=secret
        )})
    """

    token_url: str = setting(
        "",
        "The address that gives access tokens; `document` takes the one that the document names, "
        "whoever wrote it.",
    )
    client_id: str = setting("", "Who asks for a token.")
    client_secret: str = setting("", "The secret of the client, as a reference (`${NAME}`).")
    scopes: tuple[str, ...] = setting((), "What the token shall allow; by default nothing is said.")
    send: Literal["header", "body"] = setting(
        "header",
        "Where the token server takes id and secret: in a header, as OAuth wants of everybody, or "
        "in the body, as some insist.",
    )
    parameters: Mapping[str, str] = setting(
        _NOTHING, "More that the token server wants to know, such as `audience` or `resource`."
    )

    def __post_init__(self) -> None:
        check_fields(self, "")
        if not self.token_url:
            raise ConfigError(
                "`token_url` is missing",
                hint=f"write the token server's address, or `{DOCUMENTS_OWN}` for the one that "
                "the document names",
            )
        if self.token_url != DOCUMENTS_OWN:
            check_address("token_url", self.token_url)
        for key in ("client_id", "client_secret"):
            value = getattr(self, key)
            if not value.strip() or not value.isprintable():
                problem = "cannot be sent" if value.strip() else "is missing"
                raise ConfigError(f"`{key}` {problem}", hint="write it as a reference, `${NAME}`")
        if any(not scope.isprintable() or " " in scope for scope in self.scopes):
            raise ConfigError("`scopes` has one with a space in it", hint="write a list")

    def __repr__(self) -> str:
        return f"ClientCredentials({self.token_url!r})"
