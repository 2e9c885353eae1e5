"""What signs the requests to an API: the configuration's credentials, at the document's places.

An operation gets what it asks for and nothing else: the first of its alternatives for which
there are credentials. A document that asks for nothing anywhere says nothing about it, so
there all credentials are sent that were given.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Literal, NamedTuple

from toolfold._bounds import one_line
from toolfold._json_values import Json, is_mapping
from toolfold.errors import ConfigError
from toolfold.sources.openapi.api_document import ApiDocument, DocumentFault
from toolfold.sources.openapi.operation import Operation

__all__ = ["Credential", "Credentials"]

_GENERAL = ("bearer", "basic")


class Credential(NamedTuple):
    """What is added to a request."""

    location: Literal["header", "query", "cookie"]
    name: str
    value: str

    def __repr__(self) -> str:
        return f"Credential({self.location!r}, {self.name!r})"


class Credentials:
    """The credentials for one document.

    Args:
        source: The source's name, for errors.
        document: The document.
        given: What the configuration gives, by the scheme's name, or as `bearer` or `basic`.

    Raises:
        ConfigError: One is for no scheme of the document, or cannot be sent.
    """

    def __init__(self, source: str, document: ApiDocument, given: Mapping[str, str]) -> None:
        schemes = _schemes(document)
        self._known = frozenset(schemes)
        self._by_scheme: dict[str, Credential] = {}
        self._always: list[Credential] = []
        for name, value in given.items():
            key = f"`openapi.{source}.auth.{name}`"
            if not value.isprintable() or not value.strip():
                raise ConfigError(f"{key} cannot be sent", hint="leave control characters out")
            if name in schemes:
                self._by_scheme[name] = _credential(schemes[name], value, key)
            elif name in _GENERAL:
                self._always.append(_credential({"type": "http", "scheme": name}, value, key))
            else:
                known = ", ".join(f"`{one_line(each, 60)}`" for each in [*schemes, *_GENERAL][:12])
                raise ConfigError(f"{key} is no security scheme", hint=f"use one of {known}")

    @property
    def hidden(self) -> frozenset[tuple[str, str]]:
        """ParameterLocation and name of what they fill in, which no model has to."""
        every = (*self._by_scheme.values(), *self._always)
        return frozenset(
            (c.location, c.name.lower() if c.location == "header" else c.name) for c in every
        )

    def of(self, operation: Operation) -> list[Credential]:
        """Return what is added to the requests of an operation."""
        wanted = operation.security
        if wanted is None:
            return [*self._always, *self._by_scheme.values()]
        for requirement in wanted:
            if requirement and all(name in self._by_scheme for name in requirement):
                return [*self._always, *(self._by_scheme[name] for name in requirement)]
        return self._always

    def missing(self, operation: Operation) -> tuple[str, ...]:
        """Return the schemes of which an operation asks for one, and for none is there any."""
        if self.of(operation) or not operation.security:
            return ()
        names = (n for requirement in operation.security for n in requirement if n in self._known)
        return tuple(dict.fromkeys(names))


def _schemes(document: ApiDocument) -> dict[str, Mapping[str, Json]]:
    node = document.node("components", "securitySchemes")
    found: dict[str, Mapping[str, Json]] = {}
    for name in node.value if is_mapping(node.value) else ():
        try:
            scheme = document.resolved(node.at(name)).value
        except DocumentFault:
            continue
        if is_mapping(scheme):
            found[name] = scheme
    return found


def _credential(scheme: Mapping[str, Json], value: str, key: str) -> Credential:
    kind = scheme.get("type")
    if kind == "apiKey":
        location, name = scheme.get("in"), scheme.get("name")
        if (
            location not in ("header", "query", "cookie")
            or not isinstance(name, str)
            or not (name.isprintable() and name.isascii() and name)
        ):
            raise ConfigError(f"{key} is for a scheme that cannot be used", hint="use `headers`")
        if location == "header":
            return _in_header(name, value, key)
        return Credential(location, name, value)
    if kind == "http" and str(scheme.get("scheme")).lower() == "basic":
        if ":" not in value:
            raise ConfigError(f"{key} has no `:`", hint="write user:password")
        return Credential("header", "Authorization", f"Basic {b64encode(value.encode()).decode()}")
    if kind == "http" and str(scheme.get("scheme")).lower() != "bearer":
        raise ConfigError(
            f"{key} is for the scheme {one_line(str(scheme.get('scheme')), 40)!r}",
            hint="write the whole header under `headers`, as `Authorization`",
        )
    if kind == "mutualTLS":
        raise ConfigError(f"{key} is a certificate's", hint="only keys and tokens can be given")
    # OAuth 2 and OpenID Connect: the access token is got elsewhere.
    return _in_header("Authorization", f"Bearer {value}", key)


def _in_header(name: str, value: str, key: str) -> Credential:
    if not value.isascii():
        raise ConfigError(f"{key} cannot be sent", hint="headers take plain ASCII")
    return Credential("header", name, value)
