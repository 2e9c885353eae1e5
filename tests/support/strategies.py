"""Generated tools, for the property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from toolfold.prompts import BRIDGE_NAMES

NAMES = st.text("abcdefgxyz_-", min_size=1, max_size=12)
"""Names that every provider takes."""

ANY_NAMES = st.text(
    st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=80
).filter(lambda name: bool(name.strip()) and name not in BRIDGE_NAMES)
"""Names of every kind: dots, slashes, quotes, Unicode, over-long."""

TEXTS = st.text(max_size=40)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)

_KINDS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 0},
        {"type": "array", "items": {"type": "string"}},
        {"type": "string", "enum": ["open", "closed"]},
        {"anyOf": [{"type": "number"}, {"type": "null"}]},
        {"type": "object", "properties": {"inner": {"type": "boolean"}}},
    ]
)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Parameter schemas as tools have them."""
    properties = draw(st.dictionaries(NAMES, _KINDS, max_size=4))
    required = [name for name in properties if draw(st.booleans())]
    return {"type": "object", "properties": properties, "required": required}


UNKNOWN_FIELDS = st.dictionaries(NAMES.map(lambda name: f"x_{name}"), JSON_VALUES, max_size=3)
"""Fields that toolfold does not know."""


@st.composite
def records(draw: st.DrawFn, shape: str, names: st.SearchStrategy[str] = NAMES) -> dict[str, Any]:
    """Records of one wire shape, with unknown fields."""
    name, text, schema = draw(names), draw(TEXTS), draw(schemas())
    extra = draw(UNKNOWN_FIELDS)
    match shape:
        case "openai-chat":
            inner = draw(UNKNOWN_FIELDS)
            body = {"name": name, "description": text, "parameters": schema, **inner}
            return {"type": "function", "function": body, **extra}
        case "openai-responses":
            body = {"name": name, "description": text, "parameters": schema}
            return {"type": "function", **body, **extra}
        case "anthropic":
            return {"name": name, "description": text, "input_schema": schema, **extra}
        case "mcp":
            hints = {"annotations": {"readOnlyHint": True}, "title": text}
            return {"name": name, "description": text, "inputSchema": schema, **hints, **extra}
        case "gemini":
            body = {"name": name, "description": text, "parametersJsonSchema": schema, **extra}
            return {"functionDeclarations": [body]}
        case _:
            return {"name": name, "description": text, "parameters": schema, "server": "s", **extra}


SHAPES = ("openai-chat", "openai-responses", "anthropic", "mcp", "gemini", "plain")


def name_of(record: dict[str, Any]) -> str:
    """The name in a record of any shape."""
    if "functionDeclarations" in record:
        return record["functionDeclarations"][0]["name"]
    return record.get("function", record)["name"]


def lists_of(shape: str, *, min_size: int = 1, max_size: int = 6) -> st.SearchStrategy[list[Any]]:
    """Lists of records of one shape, with distinct names."""
    return st.lists(records(shape), min_size=min_size, max_size=max_size, unique_by=name_of)


MIXED_LISTS = st.lists(
    st.sampled_from(SHAPES).flatmap(records), min_size=1, max_size=6, unique_by=name_of
)
"""Lists of records of every shape."""
