"""A Python function as a tool: its signature is the schema, its docstring the description.

What the schema lets through becomes what the signature says: `bind` is the way from a
model's JSON to the arguments of a call.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeAlias

from toolfold.arguments import Checked, Fault
from toolfold.errors import InvalidToolError
from toolfold.sources._conversion import (
    FAULTS_AT_MOST,
    Adapter,
    ConversionError,
    MissingPydanticError,
)
from toolfold.sources._hints import UNREADABLE, Unresolved, described_by, named_hints, typed_by
from toolfold.sources._schemas import SchemaWriter, is_plain, json_default
from toolfold.tool import Json, Tool

__all__ = ["bind", "takes_json", "tool_from_function"]

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class _Parameter:
    """What JSON a parameter takes, and what becomes of it."""

    schema: Mapping[str, Json]
    definitions: Mapping[str, Json]
    """What the schema refers to, by its name at the root."""

    adapter: Adapter | None
    """Converts a value; None where it stays as it came."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why a parameter cannot be given by a model."""

    message: str
    hint: str
    is_foreign: bool = False
    """Whether no JSON value becomes its type, so that a default can stand for it."""


_Annotated: TypeAlias = Mapping[str, _Parameter | _Problem]

_READ: weakref.WeakKeyDictionary[Any, _Annotated] = weakref.WeakKeyDictionary()
"""The annotated parameters of functions that were read."""

_ANY = _Parameter({}, {}, None)


def tool_from_function(
    function: Callable[..., Any], *, name: str | None = None, source: str | None = None
) -> Tool:
    """Return the tool that calls a function.

    The description is the docstring up to its arguments; each argument's line there, or a
    text in its `Annotated` type, describes the parameter. A parameter that has a default
    and a type which no JSON value becomes is left to the program: models do not see it.

    Args:
        function: The function, plain or asynchronous.
        name: The tool's name; by default the function's.
        source: The tool's source; by default the module of the function, if it has a name.

    Raises:
        InvalidToolError: The function cannot be called by argument names, or a parameter's
            type cannot be read from JSON.
    """
    named = described_by(function)
    own = name or getattr(named, "__name__", type(named).__name__)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise InvalidToolError(
            f"{own!r} has no signature that can be read", hint="wrap it in a Python function"
        ) from None
    text, described = _docstring(named, typed_by(function))
    takes_more = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    parameters = _parameters(own, signature, _annotated(function), described)
    if not takes_more:
        parameters["additionalProperties"] = False
    module = getattr(named, "__module__", None)
    from_module = source or (module if module != "__main__" else None)
    return Tool(own, text, parameters, source=from_module, function=function)


def bind(tool: Tool | Callable[..., Any], arguments: Mapping[str, Json]) -> Checked:
    """Return arguments that came as JSON as what a function's signature says.

    Dates, enumerations, dataclasses, pydantic models and the like are made from their JSON;
    a value that is already what its type says stays the very same.

    Args:
        tool: The function, or the tool of one.
        arguments: JSON values by the names of parameters, checked against the schema.

    Returns:
        The values to call the function with, usable if there are no faults.

    Raises:
        InvalidToolError: The type of a parameter cannot be read from JSON.
    """
    function = tool.function if isinstance(tool, Tool) else tool
    bound = dict(arguments)
    if function is None:
        return Checked(bound)
    faults: list[Fault] = []
    annotated = _annotated(function)
    for name, value in arguments.items():
        parameter = annotated.get(name, _ANY)
        if isinstance(parameter, _Problem):
            raise InvalidToolError(parameter.message, hint=parameter.hint)
        if parameter.adapter is not None:
            bound[name], found = parameter.adapter.convert(name, value)
            faults += found
    return Checked(dict(arguments), tuple(faults[:FAULTS_AT_MOST])) if faults else Checked(bound)


def takes_json(function: Callable[..., Any]) -> bool:
    """Whether a function takes its arguments as they come: `bind` would change nothing."""
    return all(
        isinstance(parameter, _Parameter) and parameter.adapter is None
        for parameter in _annotated(function).values()
    )


def _annotated(function: Callable[..., Any]) -> _Annotated:
    plain = type(function) is FunctionType and function in _READ
    typed = function if plain else typed_by(function)
    with suppress(TypeError):  # what cannot be kept weakly is read anew
        known = _READ.get(typed)
        if known is not None:
            return known
    writer = SchemaWriter()
    own = getattr(typed, "__name__", type(typed).__name__)
    read = {
        name: _parameter(f"the parameter {name!r} of {own!r}", hint, writer)
        for name, hint in named_hints(typed).items()
    }
    # A name that is missing may be there the next time.
    if not any(isinstance(parameter, _Problem) for parameter in read.values()):
        with suppress(TypeError):
            _READ[typed] = read
    return read


def _parameter(which: str, hint: Any, writer: SchemaWriter) -> _Parameter | _Problem:
    """Return how a parameter of a type is read, or why it cannot be."""
    if isinstance(hint, Unresolved):
        return _Problem(
            f"{which} has the type {hint.annotation!r}, which cannot be resolved: {hint.reason}",
            hint="import or define it where the function's module can see it when it runs",
        )
    shown = inspect.formatannotation(hint)
    try:
        adapter = None if is_plain(hint) else Adapter(hint)
        return _Parameter(*writer.write(hint), adapter)
    except MissingPydanticError:
        return _Problem(
            f"{which} has the type `{shown}`, and pydantic is needed to read it from JSON",
            hint="install it with `pip install 'toolfold[types]'`",
        )
    except (ConversionError, *UNREADABLE) as error:
        reason = f": {error}" if str(error) else ""
        return _Problem(
            f"{which} has the type `{shown}`, which cannot be read from JSON{reason}",
            hint="give it a default, so that models leave it alone, or take a dataclass, "
            "a pydantic model or a type of JSON"
            if not reason
            else "mend the type, or give the parameter a default, so that models leave it alone",
            is_foreign=True,
        )


def _parameters(
    own: str,
    signature: inspect.Signature,
    annotated: _Annotated,
    described: Mapping[str, str],
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
        if type(parameter.default).__name__ == "FieldInfo":
            raise InvalidToolError(
                f"the default of the parameter {parameter.name!r} of {own!r} is a pydantic field",
                hint="put it in the type, as `Annotated[int, Field(ge=1)] = 1`",
            )
        has_default = parameter.default is not inspect.Parameter.empty
        read = annotated.get(parameter.name, _ANY)
        if isinstance(read, _Problem):
            if read.is_foreign and has_default:
                continue
            raise InvalidToolError(read.message, hint=read.hint)
        schema = dict(read.schema)
        definitions.update(read.definitions)
        if parameter.name in described:
            schema = {"description": described[parameter.name], **schema}
        if not has_default:
            required.append(parameter.name)
        elif (default := json_default(parameter.default)) is not None:
            schema = {**schema, "default": default}
        properties[parameter.name] = schema
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        **({"$defs": definitions} if definitions else {}),
    }


def _docstring(*functions: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the description and the texts of the parameters, of the first that has any."""
    text = next((text for function in functions if (text := inspect.getdoc(function))), None)
    if not text:
        return "", {}
    import docstring_parser

    parsed = docstring_parser.parse(text)
    parts = (parsed.short_description, parsed.long_description)
    described = {p.arg_name: p.description for p in parsed.params if p.description}
    return "\n\n".join(part for part in parts if part) or text, described
