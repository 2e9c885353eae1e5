"""Flags that are settings: name, choices, range, help and default are the declaration's."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from toolfold.settings.check import Kind
from toolfold.settings.declared import Declared, declared

__all__ = ["setting_option", "setting_options"]

F = TypeVar("F", bound=Callable[..., Any])

_SENTENCE_END = re.compile(r"\.(?:\s|\Z)")


def setting_options(cls: type, *keys: str, into: str) -> Callable[[F], F]:
    """Add a flag for each of some settings of a class.

    Args:
        cls: The class that declares them.
        keys: Which of them.
        into: The command's parameter that takes those that were given, by name.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def command(**arguments: Any) -> Any:
            values = {key: arguments.pop(key) for key in keys}
            given = {key: value for key, value in values.items() if value not in (None, ())}
            return function(**arguments, **{into: given})

        decorated: Any = command
        for key in reversed(keys):
            decorated = setting_option(cls, key)(decorated)
        return decorated

    return decorate


def setting_option(cls: type, key: str, *names: str, **more: Any) -> Callable[[F], F]:
    """Add the flag of one setting.

    Args:
        cls: The class that declares it.
        key: Which of them.
        names: The flag's names, where they are not those of the setting.
        more: What `click.option` is to be told otherwise.
    """
    item = declared(cls)[key]
    given: dict[str, Any] = {"help": _help(item), **_kind(item.kind), **more}
    return click.option(*(names or _names(item)), **given)


def _names(item: Declared) -> tuple[str, ...]:
    flag = f"--{item.key.replace('_', '-')}"
    # What a file has switched on can be switched off for once.
    return (f"{flag}/--no-{flag[2:]}" if item.kind.name == "boolean" else flag, item.key)


def _help(item: Declared) -> str:
    sentence = _SENTENCE_END.split(item.meaning, maxsplit=1)[0]
    if item.kind.name == "names":
        sentence += "; repeatable"
    default = item.default
    if isinstance(default, bool):
        default = "yes" if default else "no"
    return sentence if default in (None, "", (), "default") else f"{sentence}  [default: {default}]"


def _kind(kind: Kind) -> dict[str, Any]:
    match kind.name:
        case "switch" | "choice":
            return {"type": click.Choice(kind.choices)}
        case "integer":
            return {"type": click.IntRange(_whole(kind.low), _whole(kind.high)), "metavar": "N"}
        case "number":
            return {"type": click.FloatRange(kind.low, kind.high), "metavar": "X"}
        case "names":
            return {"multiple": True, "metavar": "PATTERN"}
        case "boolean":
            return {"default": None}
        case _:
            return {"metavar": "TEXT"}


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
