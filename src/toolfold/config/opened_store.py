"""The store that a configuration names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolfold.store.opening import Store, open_store

if TYPE_CHECKING:
    from toolfold.config.serve_settings import ServeSettings

__all__ = ["store_of"]


def store_of(settings: ServeSettings) -> Store:
    """Return the store that `serve.store` and `serve.state_dir` name.

    Raises:
        ConfigError: It cannot be used.
        StoreAwayError: It is shared, and cannot be reached.
    """
    return open_store(settings.store_address, settings.state_folder)
