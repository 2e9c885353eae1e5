"""Resources and prompts of all servers, as one principal sees them.

A prompt is named like a tool and is in the scope as a tool of that name would be. A
server's resources are in the scope as a tool named `server__resources` would be. A
resource keeps its address; where two servers that the principal sees have the same one,
the server that sorts first keeps it, and the other's is written `toolfold:SERVER:ADDRESS`.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

from toolfold.invisible import shown
from toolfold.serve.catalog.pool import Pool
from toolfold.serve.principals import Principal
from toolfold.sources.mcp._exposed_names import exposed_name, own_names
from toolfold.sources.mcp._exposed_records import shown_record
from toolfold.sources.mcp.mcp_source import ListedKind
from toolfold.tool import Json, Tool, canonical, is_array, is_object

__all__ = ["ResourceCatalog", "ResourceRoute"]

_PREFIX = "toolfold:"
_LINKS_AT_MOST = 4096
_PATIENCE = 10.0
_VARIABLE = re.compile(r"\{[^{}]*\}")


class ResourceRoute(NamedTuple):
    """Where something really is."""

    server: str
    name: str
    """The server's own name or address for it."""


class ResourceCatalog:
    """The resources and prompts of a pool.

    Args:
        pool: The servers.
        limit: The longest description that is passed on.
    """

    def __init__(self, pool: Pool, limit: int) -> None:
        self._pool = pool
        self._limit = limit
        self._links: OrderedDict[tuple[str, str], None] = OrderedDict()

    # ---- prompts

    async def prompts(self, principal: Principal) -> list[Json]:
        """Return the prompts that a principal sees."""
        found = await self._prompts(principal)
        return [shown_record(record, self._limit, name=name) for name, (_, record) in found.items()]

    async def prompt(self, principal: Principal, name: str) -> ResourceRoute | None:
        """Return where a prompt is, where the principal sees one of that name."""
        found = (await self._prompts(principal)).get(name)
        return None if found is None else found[0]

    async def _prompts(
        self, principal: Principal
    ) -> dict[str, tuple[ResourceRoute, dict[str, Json]]]:
        out: dict[str, tuple[ResourceRoute, dict[str, Json]]] = {}
        for server, records in (await self._all("prompts")).items():
            by_name = {r["name"]: r for r in records if isinstance(r.get("name"), str)}
            names = own_names(server, self._pool.upstreams[server].server.prefix, by_name)
            for own, record in by_name.items():
                if self._pool.is_quarantined(server):
                    continue
                if _admits(principal, names[own], server, own):
                    # Where an earlier server has one of that name, this one's has its prefix.
                    name = exposed_name(server, own) if names[own] in out else names[own]
                    out.setdefault(name, (ResourceRoute(server, own), record))
        return out

    # ---- resources

    async def resources(self, principal: Principal) -> list[Json]:
        """Return the resources that a principal sees."""
        return await self._resources(principal, "resources", "uri")

    async def templates(self, principal: Principal) -> list[Json]:
        """Return the templates of resources that a principal sees."""
        return await self._resources(principal, "templates", "uriTemplate")

    async def _resources(self, principal: Principal, kind: ListedKind, key: str) -> list[Json]:
        lists = await self._seen(principal, kind)
        first = _first_owners(lists, key)
        return [
            shown_record(
                record,
                self._limit,
                name=_name(record, self._limit),
                **{key: _address(server, record[key], first)},
            )
            for server, records in lists.items()
            for record in records
            if isinstance(record.get(key), str)
        ]

    async def resource(self, principal: Principal, uri: str) -> ResourceRoute | None:
        """Return where a resource is, where the principal sees a server that has it."""
        if uri.startswith(_PREFIX):
            server, _, own = uri.removeprefix(_PREFIX).partition(":")
            server = unquote(server)
            return ResourceRoute(server, own) if self.sees(principal, server) else None
        listed = _first_owners(await self._seen(principal, "resources"), "uri")
        if uri in listed:
            return ResourceRoute(listed[uri], uri)
        templates = _first_owners(await self._seen(principal, "templates"), "uriTemplate")
        for template, server in templates.items():
            if template == uri or _fits(template, uri):
                return ResourceRoute(server, uri)
        for linked, server in reversed(self._links):
            # Of the servers that the principal sees: another's connection changes nothing for it.
            if linked == uri and self.sees(principal, server):
                return ResourceRoute(server, uri)
        able = [
            name
            for name, upstream in self._pool.upstreams.items()
            if upstream.can("resources") and self.sees(principal, name)
        ]
        return ResourceRoute(able[0], uri) if len(able) == 1 else None

    async def shown_uri(self, principal: Principal, server: str, uri: str) -> str | None:
        """Return the address under which a principal knows a server's resource, if it does."""
        if not self.sees(principal, server):
            return None
        first = _first_owners(await self._seen(principal, "resources"), "uri")
        return _address(server, uri, first)

    def sees(self, principal: Principal, server: str) -> bool:
        """Whether a server's resources exist for a principal."""
        if server not in self._pool.upstreams or self._pool.is_quarantined(server):
            return False
        return _admits(principal, f"{server}__resources", server, "resources")

    def as_tools(self) -> list[Tool]:
        """Return the prompts and resources that are known, as scopes judge them."""
        out: list[Tool] = []
        for server, upstream in self._pool.upstreams.items():
            records = upstream.lists.get("prompts", ())
            named = (r["name"] for r in records if is_object(r) and isinstance(r.get("name"), str))
            found = own_names(server, upstream.server.prefix, named)
            out.extend(_as_tool(name, server, own) for own, name in found.items())
            out.append(_as_tool(f"{server}__resources", server, "resources"))
        return out

    def note_links(self, server: str, result: Mapping[str, Json]) -> None:
        """Remember which server a result's links lead to."""
        content = result.get("content")
        for block in content if is_array(content) else ():
            if is_object(block) and block.get("type") == "resource_link":
                uri = block.get("uri")
                if isinstance(uri, str) and len(uri) < 2048:
                    self._links[uri, server] = None
                    self._links.move_to_end((uri, server))
        while len(self._links) > _LINKS_AT_MOST:
            self._links.popitem(last=False)

    # ---- lists

    async def digest(self, principal: Principal, kind: Literal["resources", "prompts"]) -> str:
        """Name the content of the lists that a principal sees."""
        if kind == "prompts":
            lists = [await self.prompts(principal)]
        else:
            lists = [await self.resources(principal), await self.templates(principal)]
        return hashlib.sha1(canonical(lists), usedforsecurity=False).hexdigest()

    async def _seen(
        self, principal: Principal, kind: ListedKind
    ) -> dict[str, list[dict[str, Json]]]:
        lists = await self._all(kind)
        return {name: items for name, items in lists.items() if self.sees(principal, name)}

    async def _all(self, kind: ListedKind) -> dict[str, list[dict[str, Json]]]:
        """Return a list of every server that has it, read where it is not known."""
        await self._pool.first_start.awaited()
        upstreams = self._pool.upstreams
        unknown = [
            u for u in upstreams.values() if kind not in u.lists and u.connection is not None
        ]
        if unknown:
            async with asyncio.TaskGroup() as group:
                for upstream in unknown:
                    group.create_task(_within(upstream.lifecycle.listing(kind)))
        return {
            name: [record for record in upstream.lists.get(kind, ()) if is_object(record)]
            for name, upstream in upstreams.items()
        }


async def _within(listing: object) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            await listing  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    except TimeoutError:
        pass


def _admits(principal: Principal, name: str, server: str, own: str) -> bool:
    return principal.admits(_as_tool(name, server, own))


def _as_tool(name: str, server: str, own: str) -> Tool:
    # Reading and prompting change nothing, so a read-only principal may do both.
    reads = {"readOnlyHint": True}
    return Tool(name[:200], source=server, annotations=reads, own_name=own)


def _first_owners(lists: Mapping[str, list[dict[str, Json]]], key: str) -> dict[str, str]:
    owners: dict[str, str] = {}
    for server in sorted(lists):
        for record in lists[server]:
            if isinstance(record.get(key), str):
                owners.setdefault(record[key], server)
    return owners


def _address(server: str, uri: str, first: Mapping[str, str]) -> str:
    if first.get(uri, server) == server:
        return uri
    return f"{_PREFIX}{quote(server, safe='')}:{uri}"


def _name(record: Mapping[str, Json], limit: int) -> Json:
    # Nothing is called by a resource's name: it is there to be read.
    name = record.get("name")
    return shown(name, limit) if isinstance(name, str) else name


def _fits(template: str, uri: str) -> bool:
    """Whether an address can be of a template: its fixed parts are there, in order."""
    first, *rest = _VARIABLE.split(template)
    if not rest:
        return uri == first
    *middle, last = rest
    at = len(first)
    if not uri.startswith(first) or not uri[at:].endswith(last):
        return False
    end = len(uri) - len(last)
    for part in middle:
        found = uri.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end
