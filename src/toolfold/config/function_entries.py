"""Python functions beside the servers, read from the block `functions`. Nothing is imported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from toolfold.errors import ConfigError
from toolfold.settings.block import read_block
from toolfold.settings.file import Place
from toolfold.sources.function_modules import FunctionModule

__all__ = ["read_functions"]


def read_functions(block: Place, folder: Path) -> tuple[FunctionModule, ...]:
    """Return the modules of a block `functions`.

    Args:
        block: The block: by name, a module, a file, or a block of keys.
        folder: Where relative paths start.

    Raises:
        ConfigError: A key is unknown or a value cannot be used.
    """
    return tuple(_modules(block, folder))


def _modules(block: Place, folder: Path) -> Iterator[FunctionModule]:
    for name, place in block.pairs("`functions`").items():
        if not name.strip():
            raise ConfigError(f"an entry of `functions` has no name{place.where}", hint="give one")
        if place.is_mapping:
            yield read_block(FunctionModule, place, f"functions.{name}.", name=name, folder=folder)
            continue
        module = place.value
        if not isinstance(module, str):
            raise ConfigError(
                f"`functions.{name}` is {module!r}{place.where}",
                hint="write a module, as `package.module`, or a file, as `./tools.py`",
            )
        try:
            yield FunctionModule(name, module, folder=folder)
        except ConfigError as error:
            raise ConfigError(f"{error.message}{place.where}", hint=error.hint) from None
