"""Which tools an agent in the terminal gets: those of Python files, of a catalog, or the demo's.

A Python file is the user's own program: it is run as it stands. A catalog has definitions
and nothing that runs; its tools say so to the model, unless a script has a result.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from toolfold.errors import ConfigError
from toolfold.runtime.calls import Output, PendingCall
from toolfold.runtime.registry import Registry
from toolfold.sources.catalog_file import load_catalog
from toolfold.sources.functions import tool_from_function
from toolfold.tool import Json

__all__ = ["open_tools"]


def open_tools(files: Iterable[str] = (), catalog: str | None = None) -> Registry:
    """Return the tools of Python files and of a catalog, in one registry.

    Args:
        files: Python files. Of each the registries that it makes, else its public functions.
        catalog: A catalog file.

    Raises:
        ConfigError: A Python file cannot be run, or has no tools.
        CatalogError: A catalog cannot be read, or two tools have one name.
    """
    registry = Registry()
    for file in files:
        _add_module(registry, Path(file))
    if catalog is not None:
        registry.add_source(load_catalog(catalog), _not_connected)
    return registry


async def _not_connected(call: PendingCall) -> Json:
    text = f"{call.tool.shown_name} is not connected here: only its definition is known. Say so."
    return Output(text, is_error=True)


def _add_module(registry: Registry, path: Path) -> None:
    module = _run(path)
    found = [value for value in vars(module).values() if isinstance(value, Registry)]
    for own in dict.fromkeys(found):
        for entry in own.entries:
            registry.add(
                entry.tool,
                entry.run,
                timeout=entry.timeout,
                result_limit=entry.result_limit,
                parallel=entry.parallel,
                core=entry.core,
            )
    if found:
        return
    functions = _public_functions(module)
    if not functions:
        raise ConfigError(
            f"`{path}` has no tools",
            hint="write functions in it, or a `registry = Registry()` with `@registry.tool`",
        )
    for function in functions:
        registry.add(tool_from_function(function, source=path.stem))


def _public_functions(module: ModuleType) -> list[Callable[..., Any]]:
    """Return the functions that a module defines itself and does not keep to itself."""
    named = getattr(module, "__all__", None)
    return [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and (name in named if named is not None else not name.startswith("_"))
    ]


def _run(path: Path) -> ModuleType:
    """Run a Python file as the program it is: what stands beside it can be imported."""
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
        line = _line(error, path)
        said = traceback.format_exception_only(error)[-1].strip()
        raise ConfigError(f"`{path}`{line}: {said}", hint="mend the file") from error
    return module


def _line(error: BaseException, path: Path) -> str:
    """Return the line of a file that an error comes from, as the middle of a clause."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path.resolve()]
    return f", line {lines[-1]}" if lines else ""
