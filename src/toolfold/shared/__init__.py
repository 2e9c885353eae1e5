"""A catalog that many share: kept in PostgreSQL, searched without being held."""

from toolfold.shared.shared_catalog import Pushed, SharedCatalog, SharedHit

__all__ = ["Pushed", "SharedCatalog", "SharedHit"]
