"""Modules of Python functions: what a configuration says of one, and what is found in it.

To name a module is harmless; to load it runs it. Whoever loads one has been told to by the
person whose program it is.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from toolfold.errors import ConfigError, InvalidToolError, NameClashError
from toolfold.settings.declared import check_fields, setting
from toolfold.sources.functions import tool_from_function
from toolfold.sources.registry import Registry
from toolfold.sources.source import Source

__all__ = [
    "FunctionModule",
    "instances",
    "load_functions",
    "load_module",
    "no_tools",
    "public_functions",
    "registry_of",
    "run_file",
]

T = TypeVar("T")

_MODULE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*\Z")


@dataclass(frozen=True, slots=True)
class FunctionModule:
    """Python functions that are tools: where they are, and which of them exist."""

    name: str
    """Its name in the configuration; the source of its tools."""

    module: str = setting(
        "",
        "The module, as `package.module`, or the Python file, as `./tools.py`. A relative path "
        "starts at the configuration.",
    )
    allow: tuple[str, ...] = setting(
        ("*",), "Patterns over its functions' names; the others do not exist."
    )
    deny: tuple[str, ...] = setting(
        (), "Patterns of functions that do not exist; they win over `allow`."
    )
    folder: Path = Path()
    """Where a relative path starts."""

    def __post_init__(self) -> None:
        check_fields(self, f"functions.{self.name}.")
        if self.path is None and not _MODULE.match(self.module):
            raise ConfigError(
                f"`functions.{self.name}` names {self.module!r}, which is no module",
                hint="write a module, as `package.module`, or a file, as `./tools.py`",
            )

    @property
    def path(self) -> Path | None:
        """The file, where it is one and no module."""
        if self.module.endswith(".py") or "/" in self.module or "\\" in self.module:
            return self.folder / Path(self.module).expanduser()
        return None


def load_functions(entry: FunctionModule) -> Source:
    """Load a module, and return its functions as a source: tools named `NAME__function`.

    The docstrings are the host's own words: they are passed on whole.

    Raises:
        ConfigError: The module is not there, cannot be run, has no tools, or a function of
            it cannot be a tool.
    """
    try:
        found = registry_of(load_module(entry), entry.module, source=entry.name)
    except (InvalidToolError, NameClashError) as error:
        raise ConfigError(f"`{entry.module}`: {error}", hint=error.hint) from None
    return found.filtered(allow=entry.allow, deny=entry.deny).prefixed(entry.name)


def registry_of(module: ModuleType, where: object, *, source: str) -> Registry:
    """Return the registry that a module makes, else one of its public functions.

    Args:
        module: The module.
        where: What an error calls it.
        source: What its functions are said to come from.

    Raises:
        ConfigError: It has no tools.
        InvalidToolError: A function cannot be a tool.
        NameClashError: Two of its registries have a tool of one name.
    """
    found = instances(module, Registry)
    if len(found) == 1:
        return found[0]
    made = Registry()
    for own in found:
        made.include(own)
    functions = [] if found else public_functions(module)
    for function in functions:
        made.add(tool_from_function(function, source=source))
    if not made.entries:
        raise no_tools(where)
    return made


def load_module(entry: FunctionModule) -> ModuleType:
    """Import a module, or run a file.

    Raises:
        ConfigError: It is not there, or cannot be run.
    """
    if entry.path is not None:
        return run_file(entry.path)
    try:
        return importlib.import_module(entry.module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{entry.module}.".startswith(f"{error.name}."):
            raise _failed(entry.module, "", error) from error
        raise ConfigError(
            f"`functions.{entry.name}`: there is no module {entry.module!r}",
            hint="install it where toolfold is, or give its file, as `./tools.py`",
        ) from None
    except (Exception, SystemExit) as error:
        raise _failed(entry.module, "", error) from error


def run_file(path: Path) -> ModuleType:
    """Run a Python file as the program it is: what stands beside it can be imported.

    Raises:
        ConfigError: It is no Python file, or it fails.
    """
    name = f"toolfold_tools_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"`{path}` is no Python file", hint="give the path of a `.py` file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _failed(str(path), _line(error, path), error) from error
    return module


def instances(module: ModuleType, kind: type[T]) -> list[T]:
    """Return the objects of a kind that a module holds, each once, in order."""
    found = {id(value): value for value in vars(module).values() if isinstance(value, kind)}
    return list(found.values())


def public_functions(module: ModuleType) -> list[Callable[..., Any]]:
    """Return the functions that a module defines itself and does not keep to itself."""
    named = getattr(module, "__all__", None)
    return [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and (name in named if named is not None else not name.startswith("_"))
    ]


def no_tools(where: object) -> ConfigError:
    """Return the error of a module that has nothing to call."""
    return ConfigError(
        f"`{where}` has no tools",
        hint="write functions in it, or a `registry = Registry()` with `@registry.tool`",
    )


def _failed(where: str, line: str, error: BaseException) -> ConfigError:
    said = traceback.format_exception_only(error)[-1].strip()
    return ConfigError(f"`{where}`{line}: {said}", hint="mend the file")


def _line(error: BaseException, path: Path) -> str:
    """Return the line of a file that an error comes from, as the middle of a clause."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path.resolve()]
    return f", line {lines[-1]}" if lines else ""
