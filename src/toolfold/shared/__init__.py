"""A catalog that many share: kept in PostgreSQL, searched without being held."""

from toolfold.shared.reading import Reach, SharedHit
from toolfold.shared.shared_catalog import Pushed, SharedCatalog

__all__ = ["Pushed", "Reach", "SharedCatalog", "SharedHit"]
