"""The types that a callable's signature names, as types.

A callable is read by the function that runs in the end: behind a partial, a method, a
decorator, an object with `__call__`. That function names the types, and what is computed
from them is kept under it.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NewType, TypeVar

__all__ = [
    "UNREADABLE",
    "Unresolved",
    "described_by",
    "is_field_mark",
    "is_typed_dict",
    "named_hints",
    "simplified",
    "typed_by",
    "union_of",
]

_STEPS_AT_MOST = 32
UNREADABLE = (NameError, TypeError, AttributeError, SyntaxError)
"""What is raised where an annotation cannot be read."""


@dataclass(frozen=True, slots=True)
class Unresolved:
    """An annotation that names something which is not there at run time."""

    annotation: str
    reason: str


def typed_by(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, or the class, whose annotations are the types of a callable."""
    found: Any = function
    for _ in range(_STEPS_AT_MOST):
        step = _inner(found)
        if step is found:
            break
        found = step
    return found


def described_by(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what has the name, the module and the docstring of a callable."""
    found: Any = function
    while isinstance(found, functools.partial):
        found = typing.cast("functools.partial[Any]", found).func
    return found


def _inner(function: Any) -> Any:
    if isinstance(function, functools.partial):
        return typing.cast("functools.partial[Any]", function).func
    if isinstance(function, types.MethodType):
        return function.__func__
    if isinstance(function, type):
        return typing.cast(Any, function)
    if hasattr(function, "__signature__"):  # a decorator's own: what it wraps is not called so
        return function
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        return wrapped
    return function if inspect.isroutine(function) else type(function).__call__


def named_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the type of each annotated parameter; an `Unresolved` where it cannot be known.

    Args:
        function: What `typed_by` returns.
    """
    signed = getattr(function, "__signature__", None)
    if isinstance(signed, inspect.Signature):
        named = {p.name: p.annotation for p in signed.parameters.values()}
        found = {n: a for n, a in named.items() if a is not inspect.Parameter.empty}
        return {**_hints(inspect.unwrap(function)), **_each(found, function)}
    if isinstance(function, type):
        own = typing.cast("type[Any]", function)
        return {**_hints(own), **_hints(own.__new__), **_hints(own.__init__)}
    return _hints(function)


def _hints(function: Any) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except UNREADABLE:
        hints = _each(getattr(function, "__annotations__", {}), function)
    return {name: hint for name, hint in hints.items() if name != "return"}


def _each(annotations: Mapping[str, Any], function: Any) -> dict[str, Any]:
    """Return what each annotation means by itself: one that is unknown spoils no other."""
    inner: Any = inspect.unwrap(function)
    module = inspect.getmodule(inner)
    spaces = getattr(inner, "__globals__", None) or (vars(module) if module else {})
    found: dict[str, Any] = {}
    for name, annotation in annotations.items():
        alone = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints = typing.get_type_hints(alone, spaces, _local_names(inner), include_extras=True)
            found[name] = hints[name]
        except UNREADABLE as error:
            found[name] = Unresolved(_written(annotation), str(error))
    return found


def _local_names(function: Any) -> dict[str, Any]:
    """Return what a function can see beside its module: its closure and its type parameters."""
    names = {
        parameter.__name__: parameter for parameter in getattr(function, "__type_params__", ())
    }
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    for name, cell in zip(code.co_freevars if code else (), cells or (), strict=False):
        with suppress(ValueError):  # not yet filled
            names[name] = cell.cell_contents
    return names


def _written(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else repr(annotation)


def simplified(hint: Any) -> Any:
    """Return the type that another name stands for: an alias's, a `NewType`'s, a variable's."""
    for _ in range(_STEPS_AT_MOST):
        if isinstance(hint, NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        elif isinstance(hint, TypeVar):
            bound = Any if hint.__bound__ is None else hint.__bound__
            hint = union_of(hint.__constraints__) if hint.__constraints__ else bound
        else:
            break
    return hint


def union_of(choices: tuple[Any, ...]) -> Any:
    """Return the union of types."""
    union: Any = typing.Union
    return union[choices]


def is_typed_dict(hint: Any) -> bool:
    """Whether a type is a `TypedDict`, of the standard library or of typing_extensions."""
    return isinstance(hint, type) and dict in hint.__mro__ and hasattr(hint, "__required_keys__")


def is_field_mark(origin: Any) -> bool:
    """Whether an origin is what a `TypedDict` wraps the type of a field in."""
    return getattr(origin, "_name", None) in ("Required", "NotRequired", "ReadOnly")
