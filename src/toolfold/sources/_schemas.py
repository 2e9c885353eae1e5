"""The JSON Schema of a Python type, and whether a JSON value is one of its values as it is."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import pathlib
import types
import typing
import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from toolfold.sources._conversion import Adapter, ConversionError
from toolfold.sources._hints import is_field_mark, is_typed_dict, simplified
from toolfold.tool import Json, is_array, is_object

__all__ = ["SchemaWriter", "is_plain", "json_default"]

_PLAIN: dict[Any, dict[str, Json]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    type(None): {"type": "null"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "string", "format": "duration"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    decimal.Decimal: {"anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}]},
}
_AS_IT_IS = (str, int, float, bool, type(None), object)
_LISTS = (
    list,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Collection,
    collections.abc.Iterable,
)
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_DEPTH = 8


def is_plain(hint: Any, within: tuple[Any, ...] = ()) -> bool:
    """Whether a value that came as JSON is already what the type says."""
    hint = simplified(hint)
    if hint is Any or hint is inspect.Parameter.empty or hint in _AS_IT_IS:
        return True
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return is_plain(arguments[0], within) and not any(map(_is_rule, arguments[1:]))
    if origin is Literal:
        return all(type(item) in _AS_IT_IS for item in arguments)
    if origin is Union or origin is types.UnionType or is_field_mark(origin):
        return all(is_plain(item, within) for item in arguments)
    if is_typed_dict(hint):
        fields = typing.get_type_hints(hint, include_extras=True).values()
        return hint in within or all(is_plain(item, (*within, hint)) for item in fields)
    if (origin or hint) in _OBJECTS:
        keys_are_texts = not arguments or simplified(arguments[0]) in (str, Any)
        return keys_are_texts and all(is_plain(item, within) for item in arguments[1:])
    return (origin or hint) in _LISTS and all(is_plain(item, within) for item in arguments)


def _is_rule(item: object) -> bool:
    """Whether something in an `Annotated` type is a rule that pydantic understands."""
    module = type(item).__module__.partition(".")[0]
    return module in ("pydantic", "annotated_types") or any(
        hasattr(item, name)
        for name in ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__")
    )


def json_default(value: object) -> Json | None:
    """Return a parameter's default as JSON, or None where it has no plain text."""
    if isinstance(value, enum.Enum):
        return json_default(value.value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta) and value >= datetime.timedelta(0):
        return f"PT{value.total_seconds():.6f}".rstrip("0").rstrip(".") + "S"
    if isinstance(value, uuid.UUID | pathlib.PurePath | decimal.Decimal):
        return str(value)
    return value if _is_json(value) else None


def _is_json(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_json(item) for item in typing.cast(Sequence[object], value))
    return isinstance(value, str | int | float | bool)


class SchemaWriter:
    """Writes the schemas of one function's parameters, whose definitions share one root."""

    def __init__(self) -> None:
        self._taken: dict[str, Json] = {}
        self._definitions: dict[str, Json] = {}

    def write(self, hint: Any) -> tuple[dict[str, Json], dict[str, Json]]:
        """Return the schema of a type, and the definitions that it refers to at the root.

        Raises:
            ConversionError: No JSON value becomes a value of the type.
        """
        self._definitions = {}
        return self._schema(hint, _DEPTH), self._definitions

    def _schema(self, hint: Any, depth: int) -> dict[str, Json]:
        """Return the JSON Schema of a type; the empty one where there is none to say."""
        hint = simplified(hint)
        if depth == 0 or hint in (Any, object, inspect.Parameter.empty):
            return {}
        if isinstance(hint, type) and hint in _PLAIN:
            return dict(_PLAIN[hint])
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self._annotated(hint, arguments, depth)
        if origin is Literal:
            return {"enum": [i.value if isinstance(i, enum.Enum) else i for i in arguments]}
        if origin is Union or origin is types.UnionType:
            return {"anyOf": [self._schema(item, depth - 1) for item in arguments]}
        if is_field_mark(origin):
            return self._schema(arguments[0], depth)
        if origin is type or hint is type:
            raise ConversionError
        if isinstance(origin, type):
            return self._generic(hint, typing.cast("type[Any]", origin), arguments, depth)
        if isinstance(hint, type):
            return self._class(typing.cast("type[Any]", hint), depth)
        return self._foreign(hint)

    def _annotated(self, hint: Any, arguments: tuple[Any, ...], depth: int) -> dict[str, Json]:
        text = next((item for item in arguments[1:] if isinstance(item, str)), None)
        ruled = any(map(_is_rule, arguments[1:]))
        schema = self._foreign(hint) if ruled else self._schema(arguments[0], depth)
        return {"description": text, **schema} if text else schema

    def _generic(
        self, hint: Any, origin: type[Any], arguments: tuple[Any, ...], depth: int
    ) -> dict[str, Json]:
        if issubclass(origin, Mapping):
            values = self._schema(arguments[1], depth - 1) if len(arguments) == 2 else {}
            return {"type": "object", "additionalProperties": values or True}
        if issubclass(origin, tuple) and arguments and arguments[-1] is not Ellipsis:
            items = [self._schema(item, depth - 1) for item in arguments]
            whole = {"minItems": len(items), "items": False}
            return {"type": "array", "prefixItems": items, **whole}
        if issubclass(origin, Sequence | Set) or origin in _LISTS:
            inner = self._schema(arguments[0], depth - 1) if arguments else {}
            unique = {"uniqueItems": True} if issubclass(origin, Set) else {}
            return {"type": "array", **({"items": inner} if inner else {}), **unique}
        return self._foreign(hint)

    def _class(self, hint: type[Any], depth: int) -> dict[str, Json]:
        json_schema = getattr(hint, "model_json_schema", None)
        if callable(json_schema):  # a pydantic model
            return self._at_the_root(typing.cast(Mapping[str, Json], json_schema()))
        if issubclass(hint, enum.Enum):
            values = [member.value for member in hint.__members__.values()]
            if not all(isinstance(value, _AS_IT_IS[:-1]) for value in values):
                raise ConversionError("its members have values that are not JSON")
            return {"enum": values}
        if hasattr(hint, "__pydantic_core_schema__"):
            return self._foreign(hint)
        named_tuple = hasattr(hint, "_fields") and tuple in hint.__mro__
        if dataclasses.is_dataclass(hint) or is_typed_dict(hint) or named_tuple:
            return self._record(hint, depth)
        if issubclass(hint, pathlib.PurePath):
            return {"type": "string", "format": "path"}
        if issubclass(hint, str | bytes):
            return self._foreign(hint)
        return self._generic(hint, hint, (), depth)

    def _record(self, hint: type[Any], depth: int) -> dict[str, Json]:
        hints = typing.get_type_hints(hint, include_extras=True)
        if dataclasses.is_dataclass(hint):
            given = [field for field in dataclasses.fields(hint) if field.init]
            names = [field.name for field in given]
            missing = dataclasses.MISSING
            required = [
                f.name for f in given if f.default is missing and f.default_factory is missing
            ]
        elif is_typed_dict(hint):
            names = list(hints)
            needed = typing.cast(Iterable[str], getattr(hint, "__required_keys__", ()))
            required = [n for n in sorted(needed) if get_origin(hints[n]) is not typing.NotRequired]
        else:  # a named tuple
            names = list(typing.cast(Any, hint)._fields)
            defaults = typing.cast(Any, hint)._field_defaults
            required = [name for name in names if name not in defaults]
        properties = {name: self._schema(hints.get(name, Any), depth - 1) for name in names}
        return {"type": "object", "properties": properties, "required": required}

    def _foreign(self, hint: Any) -> dict[str, Json]:
        return self._at_the_root(Adapter(hint).schema())

    def _at_the_root(self, schema: Mapping[str, Json]) -> dict[str, Json]:
        """Return a schema whose references are from the root, and put its definitions there."""
        rest = {key: value for key, value in schema.items() if key != "$defs"}
        own: Mapping[str, Json] = schema.get("$defs", {})
        suffix, i = "", 1
        while any(self._taken.get(name + suffix, body) != body for name, body in own.items()):
            i += 1
            suffix = f"_{i}"
        self._taken.update({name + suffix: body for name, body in own.items()})
        moved = {f"#/$defs/{name}": f"#/$defs/{name}{suffix}" for name in own} if suffix else {}
        definitions = {name + suffix: _moved(body, moved) for name, body in own.items()}
        self._definitions.update(definitions)
        return _moved(rest, moved)


def _moved(value: Json, places: Mapping[str, str]) -> Json:
    """Return a schema with its references to some places led to others."""
    if is_object(value):
        return {key: _moved(item, places) for key, item in value.items()} if places else value
    if is_array(value):
        return [_moved(item, places) for item in value]
    return places.get(value, value) if isinstance(value, str) else value
