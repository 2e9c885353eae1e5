"""One entry put into a client's file, or taken out, with every other byte left alone.

JSON with comments, TOML and YAML are edited as texts, and the result is read again: where
it does not hold exactly what was wanted, nothing is changed and the error says so. So
comments, order, quotes and line ends of a file that people keep stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Literal, TypeAlias

from toolfold.config.references import parse_document
from toolfold.errors import ConfigError
from toolfold.setup import json_text, toml_text, yaml_text
from toolfold.tool import Json, is_object

__all__ = ["EditError", "Format", "add", "read_text", "remove", "rendered", "servers_in"]

Format: TypeAlias = Literal["json", "toml", "yaml"]
"""How a file is written. JSON may have comments and trailing commas."""


class EditError(ConfigError):
    """A file is written in a way that cannot be changed without risk. It was not."""


_ENDINGS = {"json": "x.json", "toml": "x.toml", "yaml": "x.yaml"}
_TEXTS = {"json": json_text, "toml": toml_text, "yaml": yaml_text}


def read_text(path: Path) -> str:
    """Return a file's text with its line ends as they are; nothing where there is no file.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot read `{path}`: {reason}", hint="check the file") from None


def servers_in(text: str, form: Format, container: tuple[str, ...]) -> dict[str, Json]:
    """Return the entries under a key of a file.

    Raises:
        ValueError: The text cannot be read.
    """
    value = _parsed(text, form)
    for key in container:
        value = value.get(key) if is_object(value) else None
    return dict(value) if is_object(value) else {}


def add(
    text: str, form: Format, container: tuple[str, ...], entries: dict[str, Json], path: Path
) -> str:
    """Return a file's text with entries put in; one of the same name is replaced.

    Args:
        text: The file's text.
        form: How it is written.
        container: The keys under which entries stand.
        entries: The entries, by name.
        path: The file, for errors.

    Raises:
        ConfigError: The file cannot be read, or cannot be changed without risk.
    """
    before = _document(text, form, path)
    wanted = deepcopy(before)
    inner = wanted
    for key in container:
        value = inner.setdefault(key, {})
        inner[key] = inner = value if is_object(value) else {}
    inner.update(entries)
    present = [name for name in servers_in(text, form, container) if name in entries]
    bare = _TEXTS[form].without(text, container, present) if present else text
    made = _TEXTS[form].with_entries(bare, container, entries)
    return _checked(made, form, container, wanted, path)


def remove(
    text: str, form: Format, container: tuple[str, ...], names: Iterable[str], path: Path
) -> str:
    """Return a file's text with the entries of these names taken out.

    Raises:
        ConfigError: The file cannot be read, or cannot be changed without risk.
    """
    present = [name for name in names if name in servers_in(text, form, container)]
    if not present:
        return text
    wanted = deepcopy(_document(text, form, path))
    inner = wanted
    for key in container:
        inner = inner[key]
    for name in present:
        del inner[name]
    made = _TEXTS[form].without(text, container, present)
    return _checked(made, form, container, wanted, path)


def rendered(form: Format, container: tuple[str, ...], name: str, entry: Json) -> str:
    """Return what a person would paste: a whole file that holds one entry."""
    return _TEXTS[form].with_entries("", container, {name: entry})


def _parsed(text: str, form: Format) -> Json:
    return parse_document(text.removeprefix("\ufeff"), Path(_ENDINGS[form]))


def _document(text: str, form: Format, path: Path) -> dict[str, Json]:
    try:
        value = _parsed(text, form)
    except ValueError as error:
        number = getattr(error, "line", None)
        line = f", line {number}" if number else ""
        raise ConfigError(
            f"cannot read `{path}`{line}: it is not {form.upper()}", hint="mend the file first"
        ) from None
    if value is None:
        return {}
    if not is_object(value):
        raise ConfigError(f"`{path}` holds no keys", hint="mend the file first")
    return value


def _checked(
    text: str | None,
    form: Format,
    container: tuple[str, ...],
    wanted: dict[str, Json],
    path: Path,
) -> str:
    """Return the new text, if it holds what was wanted and nothing else."""
    try:
        is_right = text is not None and _digest(_parsed(text, form), container) == _digest(
            wanted, container
        )
    except ValueError:
        is_right = False
    if text is None or not is_right:
        raise EditError(
            f"`{path}` is written in a way that cannot be changed without risk",
            hint="make the change by hand; nothing was written",
        )
    return text


def _digest(value: Json, container: tuple[str, ...]) -> str:
    """Return what a file holds, as a text to compare; no servers are like no list of them."""
    whole: Json = deepcopy(value) if is_object(value) else {}
    inner = whole
    for key in container[:-1]:
        inner = inner.get(key) if is_object(inner) else None
    if is_object(inner) and not inner.get(container[-1]):
        inner.pop(container[-1], None)
    return json.dumps(whole, sort_keys=True, default=str)
