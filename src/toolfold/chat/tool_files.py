"""Which tools an agent in the terminal gets: those of Python files, of a catalog, or the demo's.

A Python file is the user's own program: it is run as it stands. A catalog has definitions
and nothing that runs; its tools say so to the model, unless a script has a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from toolfold import prompts
from toolfold.sources.calls import Output, PendingCall
from toolfold.sources.catalog_file import load_catalog
from toolfold.sources.function_modules import registry_of, run_file
from toolfold.sources.registry import Registry
from toolfold.tool import Json

__all__ = ["open_tools"]

_NAME = "--tools"
"""Among an agent's sources; `functions` could be a server's."""


def open_tools(files: Iterable[str] = (), catalog: str | None = None) -> Registry:
    """Return the tools of Python files and of a catalog, in one registry.

    Args:
        files: Python files. Of each the registries that it makes, else its public functions.
        catalog: A catalog file.

    Raises:
        ConfigError: A Python file cannot be run, or has no tools.
        CatalogError: A catalog cannot be read, or two tools have one name.
    """
    registry = Registry(_NAME)
    for file in files:
        path = Path(file)
        registry.include(registry_of(run_file(path), path, source=path.stem))
    if catalog is not None:
        registry.add_source(load_catalog(catalog), _not_connected)
    return registry


async def _not_connected(call: PendingCall) -> Json:
    return Output(prompts.not_connected(call.tool.shown_name), is_error=True)
