"""What a principal sees of a shared catalog: the bridge, over tools that nobody here holds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from toolfold._memo import Memo
from toolfold.serve.catalog.pool import Pool, Stock
from toolfold.serve.catalog.views import View, ViewFolding, Views, digest_of, in_mcp
from toolfold.serve.principals import Principal
from toolfold.shared_fold import fold_shared

if TYPE_CHECKING:
    from toolfold.shared import SharedCatalog

__all__ = ["SharedViews"]

TENANTS_AT_MOST = 32
"""Of so many tenants' catalogs it is kept what searches have to know of the whole."""


class SharedViews(Views):
    """Makes views of tenants' shared catalogs.

    Args:
        pool: The servers: a tool of any other cannot be called, and is not there.
        by_profile: How to fold under each profile. What is shared is folded, whatever the window.
        catalog: The shared catalog, of whichever tenant.
    """

    def __init__(
        self, pool: Pool, by_profile: Mapping[str, ViewFolding], catalog: SharedCatalog
    ) -> None:
        super().__init__(pool, by_profile)
        self._catalog = catalog
        self._catalogs: Memo[str, SharedCatalog] = Memo(TENANTS_AT_MOST)
        self._changes: dict[str, int] = {}
        self._every_change = 0

    def changed(self, tenant: str | None) -> None:
        """A tenant's catalog is another by now; without a name, any may be."""
        if tenant is None:
            self._every_change += 1
        else:
            self._changes[tenant] = self._changes.get(tenant, 0) + 1

    def ready(self, principal: Principal, *, remembers: bool = True) -> View | None:
        """Return a principal's view, where it is made already."""
        return super().ready(principal)

    def _key(self, principal: Principal, remembers: bool) -> Hashable:
        settings = self.folding(principal).settings
        return principal.tenant, principal.scope, principal.read_only, settings

    def _is_right(self, view: View, principal: Principal) -> bool:
        return view.state == self._state(principal)

    def _state(self, principal: Principal) -> Hashable:
        changes = self._changes.get(principal.tenant, 0)
        return self._pool.names, self._every_change, changes

    def _made(self, principal: Principal, stock: Stock, folding: ViewFolding) -> View:
        # Read first: what changes meanwhile makes the view an old one.
        state, names = self._state(principal), self._pool.names
        tenant = principal.tenant
        before = self._views.get(self._key(principal, True))
        folded = fold_shared(
            self._catalogs.get_or(tenant, lambda: self._catalog.of(tenant)),
            scope=principal.scope,
            sources=names,
            read_only=principal.read_only,
            settings=folding.settings,
            configured=names,
            shape="mcp",
            lenient=True,
            before=None if before is None else before.folded,
        )
        listed = in_mcp(folded, destroys=not principal.read_only)
        servers = frozenset(folded.bridge.folded.sources)
        return View(stock, folded, listed, digest_of(listed), servers, state)
