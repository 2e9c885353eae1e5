"""An operation of an API: what it is called, and where each argument of a call goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolfold._json_values import Json

__all__ = ["Body", "BodyProperty", "Operation", "Parameter", "ParameterLocation", "Requirement"]

ParameterLocation: TypeAlias = Literal["path", "query", "header", "cookie"]
"""Where a parameter stands in a request."""

Requirement: TypeAlias = tuple[str, ...]
"""Names of security schemes that are used together."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an operation outside of its body."""

    argument: str
    """What the tool calls it."""

    name: str
    """What the API calls it."""

    location: ParameterLocation
    style: str
    explode: bool
    allow_reserved: bool = False
    media_type: str | None = None
    """How its value is written, where it is written as a whole: `application/json`."""


@dataclass(frozen=True, slots=True)
class BodyProperty:
    """One property of a body whose properties are the tool's arguments, or of a form."""

    name: str
    """What the API calls it."""

    is_file: bool = False
    """Whether its value is bytes, which a model writes in base64."""

    media_type: str | None = None
    """The type of its part, where the document names one."""

    style: str = "form"
    explode: bool = True
    allow_reserved: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """The body of an operation's request."""

    media_type: str
    """As the document writes it."""

    argument: str | None = None
    """The tool's argument that is the whole body; None where its properties are arguments."""

    properties: Mapping[str, BodyProperty] = field(default_factory=dict[str, BodyProperty])
    """The properties that are known: by argument, or by name where there is one argument."""

    is_required: bool = False
    is_file: bool = False
    """Whether the whole body is bytes, which a model writes in base64."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, as it is called."""

    name: str
    """What the API calls it; unique in its document."""

    method: str
    path: str
    """Its path, with `{…}` for the parameters in it."""

    server: str
    """The address that the path follows."""

    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    security: tuple[Requirement, ...] | None = None
    """What may be used to sign in, the first that can be had; None where nothing is said."""

    accept: str = "application/json"
    """What it is asked to answer with."""

    title: str = ""
    description: str = ""
    schema: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)
    """The schema of the tool's arguments."""

    output: Mapping[str, Json] | None = field(default=None, repr=False)
    """The schema of what it answers, where that is an object."""

    tags: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """What a person reads: `GET /pets/{id}`."""
        return f"{self.method} {self.path}"
