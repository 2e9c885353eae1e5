"""Where the memories of tenants are: each has its own, beside that of nobody in particular."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from toolfold.store.store import DEFAULT_TENANT

if TYPE_CHECKING:
    from toolfold.memory._database import PostgresMemory

__all__ = ["tenants_place"]


def tenants_place(place: Path | PostgresMemory, tenant: str) -> Path | PostgresMemory:
    """Return where a tenant's memory is.

    Args:
        place: Where that of whoever is nobody's in particular is.
        tenant: The tenant.
    """
    if tenant == DEFAULT_TENANT:
        return place
    if not isinstance(place, Path):
        return place.of(tenant)
    mark = hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return place.with_name(f"{place.stem}-{mark}{place.suffix}")
