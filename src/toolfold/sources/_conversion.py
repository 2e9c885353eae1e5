"""JSON values as the types of a signature, by pydantic.

Pydantic is imported here alone, when the first type that needs it is met. What it says
about a value is told like a fault of a schema: where, what, on one line, without the value.
"""

from __future__ import annotations

import enum
import json
import sys
import types
import typing
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from toolfold._bounds import one_line
from toolfold.arguments import Fault
from toolfold.redact import redact
from toolfold.sources._hints import is_field_mark, is_typed_dict, simplified, union_of
from toolfold.tool import Json, is_array, is_mapping

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = ["FAULTS_AT_MOST", "Adapter", "ConversionError", "MissingPydanticError"]

FAULTS_AT_MOST = 5
"""How many faults of a call are told."""

_MESSAGE_LIMIT = 240
_PATH_LIMIT = 120


class ConversionError(Exception):
    """No JSON value becomes a value of this type."""


class MissingPydanticError(ConversionError):
    """A type needs pydantic, which is not installed."""


class Adapter:
    """Turns JSON values into values of one type.

    Args:
        hint: The type.

    Raises:
        MissingPydanticError: Pydantic is not installed.
        ConversionError: Pydantic does not know the type.
    """

    def __init__(self, hint: Any) -> None:
        try:
            from pydantic import ConfigDict, TypeAdapter
        except ImportError:
            raise MissingPydanticError from None
        config = ConfigDict(val_json_bytes="base64", ser_json_bytes="base64")
        holder: Any = tuple
        try:
            # In a tuple: the configuration reaches a dataclass only from what holds it.
            self._adapter: TypeAdapter[Any] = TypeAdapter(
                holder[(_supported(hint, ()),)], config=config
            )
        except Exception as error:  # whatever the type's own hooks raise
            raise ConversionError(_reason(error)) from error

    def schema(self) -> dict[str, Json]:
        """Return pydantic's JSON Schema of the type, with its definitions under `$defs`.

        Raises:
            ConversionError: The type has none.
        """
        from pydantic.json_schema import GenerateJsonSchema

        class Quiet(GenerateJsonSchema):
            ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

        try:
            whole = self._adapter.json_schema(schema_generator=Quiet)
        except Exception as error:
            raise ConversionError(_reason(error)) from error
        definitions = whole.get("$defs")
        return {**whole["prefixItems"][0], **({"$defs": definitions} if definitions else {})}

    def convert(self, name: str, value: Json) -> tuple[Any, tuple[Fault, ...]]:
        """Return a value as the type says, or what is wrong with it.

        Args:
            name: The parameter, for the path of a fault.
            value: A JSON value, or one that is already of the type.
        """
        from pydantic import ValidationError

        try:
            text = json.dumps([value])
        except (TypeError, ValueError, RecursionError):
            text = None
        try:
            if text is None:
                return self._adapter.validate_python((value,))[0], ()
            return self._adapter.validate_json(text)[0], ()
        except ValidationError as error:
            return None, _faults(name, value, error)


def _reason(error: Exception) -> str:
    from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

    if isinstance(error, PydanticSchemaGenerationError | PydanticInvalidForJsonSchema):
        return ""
    lines = str(error).splitlines()
    return one_line(lines[0] if lines else type(error).__name__, _MESSAGE_LIMIT).rstrip(".")


def _supported(hint: Any, within: tuple[Any, ...]) -> Any:
    """Return a type as one that pydantic reads from JSON.

    A member of an enumeration in a `Literal` is there by its value, anything iterable is a
    list, and a `TypedDict` of the standard library before 3.12 is one of typing_extensions.
    """
    hint = simplified(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _literal(hint, arguments)
    if is_typed_dict(hint) and _is_old(hint) and hint not in within:
        return _typed_dict(hint, (*within, hint))
    if origin is None or not arguments:
        return hint
    if origin is Annotated:
        ruled: Any = Annotated
        return ruled[(_supported(arguments[0], within), *arguments[1:])]
    changed = tuple(_supported(item, within) for item in arguments)
    if origin in (Iterable, Collection):
        origin = list
    elif changed == arguments:
        return hint
    return union_of(changed) if _is_union(origin) else origin[changed]


def _is_union(origin: Any) -> bool:
    return origin is typing.Union or origin is types.UnionType


def _is_old(hint: Any) -> bool:
    return sys.version_info < (3, 12) and type(hint).__module__ == "typing"


def _literal(hint: Any, values: Sequence[Any]) -> Any:
    members = [value for value in values if isinstance(value, enum.Enum)]
    if not members:
        return hint
    from pydantic import BeforeValidator

    def member(value: Any) -> Any:
        return next((m for m in members if m.value == value), value)

    return Annotated[hint, BeforeValidator(member)]


def _typed_dict(hint: Any, within: tuple[Any, ...]) -> Any:
    import typing_extensions

    fields: dict[str, Any] = {}
    for name, item in typing.get_type_hints(hint, include_extras=True).items():
        inner = _supported(get_args(item)[0] if is_field_mark(get_origin(item)) else item, within)
        needed = name in hint.__required_keys__ and get_origin(item) is not typing.NotRequired
        mark: Any = typing.Required if needed else typing.NotRequired
        fields[name] = mark[inner]
    make: Any = typing_extensions.TypedDict
    return make(hint.__name__, fields)


def _faults(name: str, value: Json, error: ValidationError) -> tuple[Fault, ...]:
    """Return what pydantic found, one fault a place; of a union, what each branch wanted."""
    found: dict[str, list[str]] = {}
    for item in error.errors(include_url=False, include_input=False):
        location = item["loc"][1:]  # the first is the tuple's
        if item["type"] in ("missing", "missing_argument") and location:
            path, message = location[:-1], f"missing argument {location[-1]!r}"
        else:
            path, message = location, _message(item["msg"])
        said = found.setdefault(_path(name, value, path), [])
        if message not in said:
            said.append(message)
    faults = [Fault(p, one_line(" or ".join(said), _MESSAGE_LIMIT)) for p, said in found.items()]
    return tuple(faults[:FAULTS_AT_MOST])


def _message(text: str) -> str:
    for prefix in ("Input ", "Value error, ", "Assertion failed, "):
        if text.startswith(prefix):
            return one_line(redact(text.removeprefix(prefix)), _MESSAGE_LIMIT)
    return one_line(redact(text[:1].lower() + text[1:]), _MESSAGE_LIMIT)


def _path(name: str, value: Json, location: Sequence[str | int]) -> str:
    """Return a place in the arguments, without the parts that name a branch of a union."""
    parts = [name]
    for part in location:
        if is_mapping(value) and part in value:
            parts.append(f".{part}")
            value = value[str(part)]
        elif is_array(value) and isinstance(part, int) and 0 <= part < len(value):
            parts.append(f"[{part}]")
            value = value[part]
    return one_line("".join(parts), _PATH_LIMIT)
