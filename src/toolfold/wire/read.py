"""Entries of a tool list, of any shape, read into tools.

Reading is memoised by JSON text, of the whole list and of each entry, so an unchanged
list costs one serialisation; one changed in place is a different text and is read anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from toolfold._json_values import (
    NotJsonError,
    compact,
    compact_bytes,
    fast_bytes,
    parse,
    parse_strict,
)
from toolfold._memo import Memo
from toolfold.errors import InvalidToolError
from toolfold.tool import (
    Json,
    Policy,
    Shape,
    Tool,
    is_array,
    is_mapping,
    is_object,
    source_in_name,
)
from toolfold.wire._foreign import not_a_tool, takes_anything

__all__ = ["GROUP_KEYS", "Entry", "group_key", "read"]

GROUP_KEYS = ("functionDeclarations", "function_declarations")
"""Where a Gemini tool object keeps its functions, in REST's and in the SDK's spelling."""

_GEMINI_SCHEMA_KEYS = ("parametersJsonSchema", "parameters_json_schema")
_GEMINI_BUILT_INS = frozenset(
    {
        "googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval",
        "codeExecution", "code_execution", "urlContext", "url_context", "googleMaps",
        "google_maps", "computerUse", "computer_use", "fileSearch", "file_search", "retrieval",
        "enterpriseWebSearch", "enterprise_web_search", "mcpServers", "mcp_servers",
    }
)  # fmt: skip
_POLICIES: tuple[Policy, ...] = ("never", "automatic", "always")


class Entry(NamedTuple):
    """One item of a tool list, and the tools it holds.

    Most hold one. A Gemini tool object holds several; a provider's own tool (a hosted
    web search, say) holds none and passes through whatever the fold does.
    """

    raw: Any
    """The caller's object, as it came in."""

    shape: Shape | None
    """Its wire shape, or None where it is a `Tool` or a function."""

    tools: tuple[Tool, ...]
    """The tools it holds."""

    characters: tuple[int, ...]
    """The length of each tool's compact JSON, in its own shape."""

    size: int
    """The length of the whole entry's compact JSON."""

    @property
    def in_group(self) -> bool:
        """Whether the tools stand in a Gemini tool object, other things beside them."""
        return self.shape == "gemini" and group_key(self.raw) is not None

    @property
    def is_flat(self) -> bool:
        """Whether this is a record that is itself the tool."""
        return is_mapping(self.raw) and group_key(self.raw) is None

    def only(self, places: Sequence[int]) -> Entry | None:
        """Return this entry with some of its tools, or None where nothing is left."""
        key = group_key(self.raw)
        if key is None:
            return self if places else None
        raw = {name: value for name, value in self.raw.items() if name != key or places}
        if places:
            raw[key] = [self.raw[key][i] for i in places]
        tools = tuple(self.tools[i] for i in places)
        characters = tuple(self.characters[i] for i in places)
        return Entry(raw, self.shape, tools, characters, len(compact(raw))) if raw else None

    def as_tools(self) -> tuple[Entry, ...]:
        """Return an entry for each tool, to be written in another shape."""
        beside = self.only(()) if self.in_group else None
        apart = tuple(Entry(tool, None, (tool,), (), 0) for tool in self.tools)
        return apart if beside is None else (*apart, beside)


@runtime_checkable
class _Model(Protocol):
    """A pydantic model, such as the MCP SDK's `Tool`."""

    def model_dump(self, *, by_alias: bool, exclude_none: bool, mode: str) -> object: ...


def group_key(raw: object) -> str | None:
    """Return the key under which a Gemini tool object keeps its functions, if it is one."""
    if not is_mapping(raw):
        return None
    return next((key for key in GROUP_KEYS if key in raw), None)


class _Origin(NamedTuple):
    source: str | None
    lets_speak: bool
    """Whether what records say themselves of their source and policy counts."""


class _Reading(NamedTuple):
    shape: Shape | None
    tools: tuple[Tool, ...]
    characters: tuple[int, ...]
    size: int


_LIST_LIMIT = 5_000
"""Beyond this many entries the text of the whole list is not worth its memory."""

_KEPT = 24 * 1024 * 1024
_READING_BYTES = 1024


def _bytes(reading: _Reading) -> int:
    """Return what a reading takes in memory, nearly: several times its JSON text."""
    return _READING_BYTES + 4 * reading.size


_LISTS: Memo[tuple[bytes, _Origin], tuple[_Reading, ...]] = Memo(
    64, room=_KEPT, size=lambda readings: sum(map(_bytes, readings))
)
_READINGS: Memo[tuple[bytes, _Origin], _Reading] = Memo(65_536, room=_KEPT, size=_bytes)


def read(
    tools: Iterable[object], *, source: str | None = None, own_words: bool = False
) -> tuple[Entry, ...]:
    """Read a list of tools, each in whatever shape it is.

    Args:
        tools: Records of any wire shape, `Tool`s, Python functions, or objects whose
            `model_dump` is such a record (the MCP SDK's own tools), mixed as they come.
        source: Where the records come from. What they say themselves of their source, toolset,
            policy and aliases counts where none is given.
        own_words: Whether it counts all the same, because the host wrote the records; `source`
            is then the source of those that do not name one.

    Raises:
        InvalidToolError: An entry is not a tool. The error names its place.
    """
    origin = _Origin(source, source is None or own_words)
    items = list(tools)
    whole = _list_digest(items)
    if whole is not None and (known := _LISTS.get((whole, origin))) is not None:
        return tuple(map(Entry._make, ((item, *r) for item, r in zip(items, known, strict=True))))
    entries: list[Entry] = []
    for place, item in enumerate(items, 1):
        try:
            entries.append(_entry(item, origin))
        except InvalidToolError as error:
            raise InvalidToolError(str(error), hint=error.hint, place=place) from None
    if whole is not None:
        _LISTS.put((whole, origin), tuple(_Reading(*entry[1:]) for entry in entries))
    return tuple(entries)


def _list_digest(items: list[object]) -> bytes | None:
    """Return the digest of a list's JSON text; None where it does not consist of records."""
    if len(items) > _LIST_LIMIT or not all(type(item) is dict for item in items):
        return None
    text = fast_bytes(items)
    return None if text is None else hashlib.sha1(text, usedforsecurity=False).digest()


def _entry(item: object, origin: _Origin) -> Entry:
    if isinstance(item, Tool):
        tool = item
    elif is_mapping(item):
        return Entry(item, *_reading(item, origin))
    elif isinstance(item, _Model) and not isinstance(item, type):
        return _dumped(item, origin)
    elif callable(item) and not takes_anything(item):
        from toolfold.sources.functions import tool_from_function

        tool = tool_from_function(item, source=origin.source)
    else:
        raise not_a_tool(item)
    return Entry(tool, tool.shape, (tool,), (tool.size,) if tool.size else (), tool.size)


def _dumped(item: _Model, origin: _Origin) -> Entry:
    """Read an object by the record that it dumps, if that is one with its parameters in it."""
    try:
        dumped = item.model_dump(by_alias=True, exclude_none=True, mode="json")
        entry = _entry(dumped, origin) if is_mapping(dumped) else None
    except InvalidToolError:
        raise
    except Exception:  # a field that is no JSON, in the words of whichever library dumps
        raise not_a_tool(item) from None
    if entry is None or (entry.shape == "plain" and not _is_schema(entry.raw.get("parameters"))):
        raise not_a_tool(item)
    return entry


def _is_schema(value: Json) -> bool:
    return is_object(value) and (value.get("type") == "object" or "properties" in value)


def _reading(raw: Mapping[str, Json], origin: _Origin) -> _Reading:
    # Key order is kept: the signature that a model reads follows it.
    fast = fast_bytes(raw)
    text = _text(raw) if fast is None else fast
    key = (hashlib.sha1(text, usedforsecurity=False).digest(), origin)
    found = _READINGS.get(key)
    if found is None:
        found = _READINGS.put(
            key, _read(parse(text) if fast is None else parse_strict(text), origin)
        )
    return found


def _text(raw: Mapping[str, Json]) -> bytes:
    try:
        return compact_bytes(raw)
    except NotJsonError as error:
        raise InvalidToolError(f"it {error}", hint=error.hint) from None


def _read(raw: dict[str, Json], origin: _Origin) -> _Reading:
    shape, tools = recognise(raw, origin)
    size = tools[0].size if len(tools) == 1 and tools[0].raw is raw else len(compact(raw))
    return _Reading(shape, tools, tuple(tool.size for tool in tools), size)


def recognise(raw: dict[str, Json], origin: _Origin) -> tuple[Shape | None, tuple[Tool, ...]]:
    """Return the shape of a record and the tools it holds."""
    kind = raw.get("type")
    if is_object(raw.get("function")):
        return "openai-chat", (_tool(raw, raw["function"], "parameters", "openai-chat", origin),)
    group = group_key(raw)
    if group is not None:
        declarations = raw[group]
        if not is_array(declarations):
            raise InvalidToolError(f"`{group}` is not a list", hint="list the functions in it")
        return "gemini", tuple(_gemini(item, origin) for item in declarations)
    if "input_schema" in raw:
        return "anthropic", (_tool(raw, raw, "input_schema", "anthropic", origin),)
    if "inputSchema" in raw:
        return "mcp", (_tool(raw, raw, "inputSchema", "mcp", origin),)
    if any(key in raw for key in _GEMINI_SCHEMA_KEYS) or _is_gemini_schema(raw.get("parameters")):
        return "gemini", (_gemini(raw, origin),)
    if kind == "function":
        return "openai-responses", (_tool(raw, raw, "parameters", "openai-responses", origin),)
    if isinstance(kind, str) or (raw and raw.keys() <= _GEMINI_BUILT_INS):
        return None, ()
    return "plain", (_tool(raw, raw, "parameters", "plain", origin),)


def _tool(
    raw: dict[str, Json], body: dict[str, Json], schema_key: str, shape: Shape, origin: _Origin
) -> Tool:
    name = body.get("name")
    if not isinstance(name, str) or not name.strip():
        raise InvalidToolError("it has no name", hint="give it a `name`")
    own: dict[str, Json] = body if shape == "plain" and origin.lets_speak else {}
    return Tool(
        name=name,
        description=_description(name, body.get("description")),
        parameters=_parameters(name, schema_key, body.get(schema_key)),
        source=_text_or_none(name, own, "server")
        or _text_or_none(name, own, "source")
        or origin.source
        or source_in_name(name),
        toolset=_text_or_none(name, own, "toolset"),
        policy=_policy(name, own.get("policy", "automatic")),
        aliases=_aliases(name, own.get("aliases", [])),
        annotations=_annotations(body.get("annotations")),
        title=_title(body),
        shape=shape,
        raw=raw,
        size=len(compact(raw)),
    )


def _gemini(raw: Json, origin: _Origin) -> Tool:
    if not is_object(raw):
        raise InvalidToolError("a function declaration is not an object", hint="give it a `name`")
    key = next((key for key in _GEMINI_SCHEMA_KEYS if key in raw), None)
    if key is None:
        tool = _tool(raw, raw, "parameters", "gemini", origin)
        return replace(tool, parameters=_from_gemini_schema(tool.parameters))
    return _tool(raw, raw, key, "gemini", origin)


def _is_gemini_schema(schema: Json) -> bool:
    kind = schema.get("type") if is_object(schema) else None
    return isinstance(kind, str) and kind.isupper()


def _from_gemini_schema(schema: Json) -> Json:
    """Return a Gemini schema (`"type": "OBJECT"`, `nullable`) as JSON Schema."""
    if is_array(schema):
        return [_from_gemini_schema(item) for item in schema]
    if not is_object(schema):
        return schema
    out: dict[str, Json] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs", "defs") and is_object(value):
            out[key] = {name: _from_gemini_schema(item) for name, item in value.items()}
        elif key in ("items", "anyOf", "prefixItems", "additionalProperties"):
            out[key] = _from_gemini_schema(value)
        elif key == "type" and isinstance(value, str):
            out[key] = value.lower()
        else:
            out[key] = value
    if out.pop("nullable", False) is True and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    return out


def _parameters(name: str, key: str, schema: Json) -> dict[str, Json]:
    # JSON Schema knows true and false, too: anything, and nothing.
    if schema is None or schema is False:
        return {"type": "object", "properties": {}}
    if schema is True:
        return {"type": "object"}
    if not is_object(schema):
        raise InvalidToolError(
            f"`{key}` of {name!r} is not a JSON Schema object: {_short(schema)}",
            hint='write {"type": "object", "properties": {…}}',
        )
    return schema


def _description(name: str, description: Json) -> str:
    if description is None:
        return ""
    if not isinstance(description, str):
        raise InvalidToolError(
            f"`description` of {name!r} is not a text: {_short(description)}",
            hint="write it as a string",
        )
    return description


def _text_or_none(name: str, body: dict[str, Json], key: str) -> str | None:
    value = body.get(key)
    if value is None or isinstance(value, str):
        return value or None
    raise InvalidToolError(
        f"`{key}` of {name!r} is not a text: {_short(value)}", hint="write it as a string"
    )


def _policy(name: str, policy: Json) -> Policy:
    if policy in _POLICIES:
        return policy
    raise InvalidToolError(
        f"`policy` of {name!r} is {_short(policy)}", hint="write never, automatic or always"
    )


def _aliases(name: str, aliases: Json) -> tuple[str, ...]:
    if is_array(aliases) and all(isinstance(alias, str) for alias in aliases):
        return tuple(aliases)
    raise InvalidToolError(
        f"`aliases` of {name!r} is not a list of texts: {_short(aliases)}", hint='write ["…", "…"]'
    )


def _annotations(annotations: Json) -> dict[str, Json]:
    return annotations if is_object(annotations) else {}


def _title(body: dict[str, Json]) -> str | None:
    title = body.get("title") or _annotations(body.get("annotations")).get("title")
    return title if isinstance(title, str) else None


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
