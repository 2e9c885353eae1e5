"""Which tools an agent in the terminal gets: those of Python files, of a catalog, or the demo's.

A Python file is the user's own program: it is run as it stands. A catalog has definitions
and nothing that runs; its tools say so to the model, unless a script has a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from toolfold.runtime.calls import Output, PendingCall
from toolfold.runtime.registry import Registry
from toolfold.sources.catalog_file import load_catalog
from toolfold.sources.function_modules import instances, no_tools, public_functions, run_file
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
    module = run_file(path)
    found = instances(module, Registry)
    for own in found:
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
    functions = public_functions(module)
    if not functions:
        raise no_tools(path)
    for function in functions:
        registry.add(tool_from_function(function, source=path.stem))
