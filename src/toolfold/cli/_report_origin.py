"""Where a report comes from, and where it goes: the command that was typed, and the file."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from toolfold.errors import ConfigError
from toolfold.redact import redact

__all__ = ["made_now", "typed_command", "write_text"]


def typed_command() -> str:
    """Return the running command as it was typed, quoted for a shell, without secrets."""
    context = click.get_current_context()
    words = [*context.command_path.split(), *_words(context)]
    return redact(shlex.join(["toolfold", *words[1:]]))


def made_now() -> str:
    """Return when and with which version, as one line."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    return f"{now} UTC, toolfold {version('toolfold')}."


def write_text(file: str, text: str) -> None:
    """Write a chart or a page.

    Raises:
        ConfigError: It cannot be written.
    """
    try:
        Path(file).write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise ConfigError(
            f"cannot write `{file}`: {error.strerror}",
            hint="give a file in a folder that is there, and yours",
        ) from None


def _words(context: click.Context) -> Iterator[str]:
    """Yield the options that were given and then the arguments."""
    arguments: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        values = _values(context.params.get(name))
        if isinstance(parameter, click.Option):
            flag = max(parameter.opts, key=len)
            for one in values:
                yield from (flag,) if parameter.is_flag else (flag, one)
        else:
            arguments += values
    yield from arguments


def _values(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, tuple) else [str(value)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
