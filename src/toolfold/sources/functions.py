"""A Python function as a tool: its signature is the schema, its docstring the description."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from toolfold.errors import InvalidToolError
from toolfold.tool import Json, Tool

__all__ = ["tool_from_function"]

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
}
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_DEPTH = 8


def tool_from_function(
    function: Callable[..., Any], *, name: str | None = None, source: str | None = None
) -> Tool:
    """Return the tool that calls a function.

    The description is the docstring up to its arguments; each argument's line there, or a
    text in its `Annotated` type, describes the parameter.

    Args:
        function: The function, plain or asynchronous.
        name: The tool's name; by default the function's.
        source: The tool's source; by default the module of the function, if it has a name.

    Raises:
        InvalidToolError: The function cannot be called by argument names.
    """
    own = name or getattr(function, "__name__", type(function).__name__)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise InvalidToolError(
            f"{own!r} has no signature that can be read", hint="wrap it in a Python function"
        ) from None
    hints = _hints(function)
    text, described = _docstring(function)
    takes_more = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    parameters = _parameters(own, signature, hints, described)
    if not takes_more:
        parameters["additionalProperties"] = False
    module = getattr(function, "__module__", None)
    named = source or (module if module != "__main__" else None)
    return Tool(own, text, parameters, source=named, function=function)


def _parameters(
    own: str, signature: inspect.Signature, hints: Mapping[str, Any], described: Mapping[str, str]
) -> dict[str, Json]:
    """Return the JSON Schema of a signature."""
    properties: dict[str, Json] = {}
    required: list[str] = []
    definitions: dict[str, Json] = {}
    for parameter in signature.parameters.values():
        if parameter.kind in _VARIADIC or parameter.name in ("self", "cls"):
            continue
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise InvalidToolError(
                f"the parameter {parameter.name!r} of {own!r} is positional only",
                hint="a model calls by name: take the `/` out of the signature",
            )
        schema = _schema(hints.get(parameter.name, Any), _DEPTH)
        # References in a model's schema are from the root, so its definitions go there.
        definitions.update(schema.pop("$defs", {}))
        if parameter.name in described:
            schema = {"description": described[parameter.name], **schema}
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
        elif parameter.default is not None and _is_json(parameter.default):
            schema = {**schema, "default": parameter.default}
        properties[parameter.name] = schema
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        **({"$defs": definitions} if definitions else {}),
    }


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    # Names that exist for a type checker alone cannot be looked up; such a parameter is
    # taken as it is written, without a type.
    try:
        return typing.get_type_hints(inspect.unwrap(function), include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the description and the texts of the parameters."""
    text = inspect.getdoc(function)
    if not text:
        return "", {}
    import docstring_parser

    parsed = docstring_parser.parse(text)
    parts = (parsed.short_description, parsed.long_description)
    described = {p.arg_name: p.description for p in parsed.params if p.description}
    return "\n\n".join(part for part in parts if part) or text, described


def _schema(hint: Any, depth: int) -> dict[str, Json]:
    """Return the JSON Schema of a type; the empty one where there is none to say."""
    if depth == 0 or hint is Any or hint is inspect.Parameter.empty:
        return {}
    if hint in _PLAIN if isinstance(hint, type) else False:
        return dict(_PLAIN[hint])
    origin = get_origin(hint)
    arguments = get_args(hint)
    if origin is Annotated:
        text = next((item for item in arguments[1:] if isinstance(item, str)), None)
        schema = _schema(arguments[0], depth)
        return {"description": text, **schema} if text else schema
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is Union or origin is types.UnionType:
        return {"anyOf": [_schema(item, depth - 1) for item in arguments]}
    if isinstance(origin, type):
        return _generic(origin, arguments, depth)
    return _class(hint, depth) if isinstance(hint, type) else {}


def _generic(origin: type, arguments: tuple[Any, ...], depth: int) -> dict[str, Json]:
    if issubclass(origin, Mapping):
        values = _schema(arguments[1], depth - 1) if len(arguments) == 2 else {}
        return {"type": "object", "additionalProperties": values or True}
    if issubclass(origin, tuple) and arguments and arguments[-1] is not Ellipsis:
        items = [_schema(item, depth - 1) for item in arguments]
        return {"type": "array", "prefixItems": items, "items": False}
    if issubclass(origin, Sequence | Set):
        inner = _schema(arguments[0], depth - 1) if arguments else {}
        unique = {"uniqueItems": True} if issubclass(origin, Set) else {}
        return {"type": "array", **({"items": inner} if inner else {}), **unique}
    return {}


def _class(hint: type[Any], depth: int) -> dict[str, Json]:
    json_schema = getattr(hint, "model_json_schema", None)
    if callable(json_schema):  # a pydantic model
        return dict(typing.cast(Mapping[str, Json], json_schema()))
    members: Mapping[str, Any] | None = getattr(hint, "__members__", None)
    if members is not None and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in members.values()]}
    if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint):
        return _record(hint, depth)
    return _generic(hint, (), depth)


def _record(hint: type[Any], depth: int) -> dict[str, Json]:
    hints = typing.get_type_hints(hint, include_extras=True)
    if dataclasses.is_dataclass(hint):
        names = [
            f.name
            for f in dataclasses.fields(hint)
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        ]
    else:
        names = sorted(getattr(hint, "__required_keys__", ()))
    properties = {name: _schema(item, depth - 1) for name, item in hints.items()}
    return {"type": "object", "properties": properties, "required": names}


def _is_json(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_json(item) for item in typing.cast(Sequence[object], value))
    return isinstance(value, str | int | float | bool)
