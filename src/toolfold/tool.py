"""A tool: what a model may call, whatever shape it came in.

A `Tool` is a value. It owns its data (nothing a caller changes later in a dict reaches
it) and two tools are equal when their content is. Its digest names that content; every
cache is keyed by it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from toolfold import _json_values as json_values
from toolfold._json_values import Json, NotJsonError, copied, is_array, is_mapping, is_object
from toolfold.errors import InvalidToolError

__all__ = [
    "NAME_LIMIT",
    "Json",
    "Policy",
    "ProviderApi",
    "Shape",
    "Tool",
    "bare_name",
    "canonical",
    "copied",
    "is_array",
    "is_mapping",
    "is_object",
    "wire_name",
]

Policy = Literal["never", "automatic", "always"]
"""Whether a tool may be folded: never, when the gate says so, or always."""

Shape = Literal["openai-chat", "openai-responses", "anthropic", "mcp", "gemini", "plain"]
"""The wire shapes in which tools come and go."""

ProviderApi = Literal["anthropic-messages", "openai-responses"]
"""The APIs of providers that can defer tools themselves."""

NAME_LIMIT = 512
"""The longest name that is read. No client takes more than a fraction of it."""

_WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_NOT_WIRE = re.compile(r"[^A-Za-z0-9_-]")
_SEPARATORS = "_-.:/ "
_SOURCE_IN_NAME = re.compile(r"(?:mcp__)?([A-Za-z0-9][A-Za-z0-9.-]*(?:_[A-Za-z0-9.-]+)*)__(?=.)")


def _no_parameters() -> dict[str, Json]:
    return {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One tool. Immutable; equal to every tool of the same content.

    Example:
        tool = Tool("create_issue", "Open an issue.", {"type": "object"}, source="github")
        assert tool.toolset_name == "github"
    """

    name: str
    """The name by which it is found and called, unique in a catalog."""

    description: str = ""
    """What it does, as its owner says it."""

    parameters: Mapping[str, Json] = field(default_factory=_no_parameters)
    """The JSON Schema of its arguments. Read it; do not change it."""

    source: str | None = None
    """Where it comes from: an MCP server, a module, a file."""

    toolset: str | None = None
    """The group it belongs to, where that is not its source."""

    policy: Policy = "automatic"
    """Whether it may be folded, as its owner says."""

    aliases: tuple[str, ...] = ()
    """Other words under which a search finds it."""

    annotations: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """MCP's hints: `readOnlyHint`, `destructiveHint` and the like."""

    title: str | None = None
    """A name for people."""

    shape: Shape | None = None
    """The wire shape it came in, if it came over a wire."""

    raw: Mapping[str, Json] | None = field(default=None, repr=False)
    """The record it came in, with the fields toolfold does not know."""

    size: int = field(default=0, repr=False)
    """The length of that record's compact JSON; 0 where there is no record."""

    function: Callable[..., Any] | None = field(default=None, repr=False)
    """The Python function behind it, where there is one."""

    own_name: str = field(default="", repr=False)
    """What its source calls it, where that cannot be read from `name`: see `bare_name`."""

    digest: str = field(init=False, repr=False, default="")
    """Names the content: equal tools have equal digests."""

    wire_name: str = field(init=False, repr=False, default="")
    """The name under which OpenAI and Anthropic take it."""

    def __post_init__(self) -> None:
        check_name(self.name)
        content = (
            self.name,
            self.description,
            self.parameters,
            self.source,
            self.toolset,
            self.policy,
            self.aliases,
            self.annotations,
            self.title,
            *((self.own_name,) if self.own_name else ()),
        )
        digest = hashlib.sha1(canonical(content), usedforsecurity=False).hexdigest()
        object.__setattr__(self, "digest", digest)
        if self.raw is None:
            object.__setattr__(self, "parameters", copied(self.parameters))
            object.__setattr__(self, "annotations", copied(self.annotations))
        object.__setattr__(self, "wire_name", wire_name(self.name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tool) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def with_aliases(self, aliases: Mapping[str, tuple[str, ...]]) -> Tool:
        """Return this tool with the aliases that stand under its name, if there are any."""
        given = aliases.get(self.name, ())
        more = tuple(alias for alias in given if alias not in self.aliases)
        return replace(self, aliases=(*self.aliases, *more)) if more else self

    def with_annotations(self, hints: Mapping[str, Json]) -> Tool:
        """Return this tool with other hints over its own, in its MCP record, too."""
        if all(key in self.annotations and self.annotations[key] == hints[key] for key in hints):
            return self
        annotations = {**self.annotations, **hints}
        if self.raw is None or self.shape != "mcp":
            return replace(self, annotations=annotations)
        raw = {**self.raw, "annotations": annotations}
        return replace(self, annotations=annotations, raw=raw, size=len(canonical(raw).decode()))

    @property
    def is_read_only(self) -> bool:
        """Whether it says that it changes nothing.

        The hint counts where it is the JSON value `true`; "yes" or 1 is no promise.
        """
        return self.annotations.get("readOnlyHint") is True

    @property
    def is_destructive(self) -> bool:
        """Whether it may destroy something: as MCP has it, unless it says otherwise."""
        return not self.is_read_only and self.annotations.get("destructiveHint") is not False

    @property
    def toolset_name(self) -> str | None:
        """The toolset: the one given, else the source."""
        return self.toolset if self.toolset is not None else self.source

    @property
    def says_destructive(self) -> bool:
        """Whether it says of itself that it destroys something, and so wants to run alone."""
        return self.annotations.get("destructiveHint") is True

    @property
    def shown_name(self) -> str:
        """The name that a model reads: the one on the wire where a letter cannot be seen."""
        return self.name if self.name.isprintable() else self.wire_name

    @property
    def bare_name(self) -> str:
        """What its source calls it: the name without the prefix that names the source."""
        return self.own_name or bare_name(self.name, self.source)


def canonical(value: Json) -> bytes:
    """Return the one JSON text of a value, with sorted keys and no white space.

    Raises:
        InvalidToolError: The value is not JSON.
    """
    try:
        return json_values.canonical(value)
    except NotJsonError as error:
        raise InvalidToolError(f"a tool {error}", hint=error.hint) from None


def check_name(name: object) -> None:
    """Raise `InvalidToolError` where `name` cannot name a tool."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidToolError(f"a tool has no name: {name!r}", hint="give it a `name`")
    if len(name) > NAME_LIMIT:
        raise InvalidToolError(
            f"a tool's name has {len(name):,} characters: {name[:40]!r}…",
            hint=f"use at most {NAME_LIMIT}",
        )
    if not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name):
        raise InvalidToolError(
            f"a tool's name holds half a character: {name!r}", hint="write it in valid Unicode"
        )


def source_in_name(name: str) -> str | None:
    """Return the source that a name carries by convention: `mcp__github__x`, `github__x`."""
    match = _SOURCE_IN_NAME.match(name)
    return match[1] if match else None


def bare_name(name: str, source: str | None) -> str:
    """Return `name` without the prefix that names its source.

    `mcp__github__create_issue`, `mcp_github_create_issue`, `github.create_issue` and
    `github/create_issue` are all `create_issue` of the source `github`.
    """
    if source is None:
        return name
    for prefix in (source, f"mcp__{source}", f"mcp_{source}"):
        rest = name[len(prefix) :]
        if name.startswith(prefix) and rest[:1] and rest[0] in _SEPARATORS:
            return rest.lstrip(_SEPARATORS) or name
    return name


def wire_name(name: str) -> str:
    """Return the name under which OpenAI and Anthropic take a tool.

    They take `[A-Za-z0-9_-]{1,64}`. Such a name stays; any other has the rest replaced
    and ends in eight digits of its digest, so the mapping is the same everywhere and
    a catalog can turn it back.
    """
    if _WIRE_NAME.match(name):
        return name
    digest = hashlib.sha1(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return f"{_NOT_WIRE.sub('_', name)[:55]}_{digest[:8]}"
