"""What becomes of an API's document: its tools, the operations behind them, its credentials.

A value that never changes: another document makes another one, in which a tool that stayed
is the very object that it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolfold._json_values import Json, compact
from toolfold.invisible import shown_tool
from toolfold.prompts import plural
from toolfold.scope import name_is_denied, name_matches
from toolfold.sources.mcp._exposed_names import own_names
from toolfold.sources.openapi._credentials import Credentials
from toolfold.sources.openapi.api_document import ApiDocument
from toolfold.sources.openapi.http_api import HttpApi
from toolfold.sources.openapi.operation import Operation
from toolfold.sources.openapi.operations import Reading, ReadOperations, read_operations
from toolfold.tool import Tool

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

__all__ = ["LoadedApi", "load_api"]

_TOLD = 5


@dataclass(frozen=True, slots=True)
class LoadedApi:
    """A document that can be used."""

    tools: tuple[Tool, ...]
    operations: Mapping[str, Operation]
    """By the tools' names."""

    credentials: Credentials
    notes: tuple[str, ...] = ()
    """What a person may want to know of it all the same."""

    deprecated: int = 0
    """How many operations were left out because they are deprecated."""

    def is_same(self, other: LoadedApi) -> bool:
        """Whether the tools are the same, and call the same."""
        return self.tools == other.tools and self.operations == other.operations


def load_api(
    api: HttpApi,
    document: ApiDocument,
    *,
    description_limit: int,
    before: LoadedApi | None = None,
    transport: AsyncBaseTransport | None = None,
) -> LoadedApi:
    """Make tools of a document.

    Args:
        api: What the configuration says of the API.
        document: The document.
        description_limit: The longest description that is passed on.
        before: What an earlier document of the API came to.
        transport: What carries requests for access tokens, in place of the network.

    Raises:
        DocumentError: There is no operation to call in it.
        ConfigError: A credential is for none of its schemes.
    """
    credentials = Credentials(
        api.name,
        document,
        api.auth,
        home=api.base_url or api.url,
        tokens=None if before is None else before.credentials.tokens,
        transport=transport,
    )
    reading = Reading(
        api.base_url,
        api.variables,
        api.url,
        credentials.hidden | {("header", name.lower()) for name in api.headers},
        api.deprecated,
        api.output_schemas,
    )
    read = read_operations(document, reading)
    by_name = {o.name: o for o in read.operations if _is_wanted(api, o.name)}
    names = own_names(api.name, None, by_name)
    operations = {names[own]: operation for own, operation in by_name.items()}
    known = {} if before is None else {tool.name: tool for tool in before.tools}
    tools: list[Tool] = []
    for name, operation in operations.items():
        tool = shown_tool(_tool(api.name, name, operation), description_limit)
        old = known.get(name)
        tools.append(old if old is not None and old == tool else tool)
    notes = _notes(api, document, read)
    return LoadedApi(tuple(tools), operations, credentials, notes, read.deprecated)


def _is_wanted(api: HttpApi, name: str) -> bool:
    return name_matches(name, api.name, api.allow) and not name_is_denied(name, api.name, api.deny)


def _notes(api: HttpApi, document: ApiDocument, read: ReadOperations) -> tuple[str, ...]:
    """Return what is not as the document, or as the configuration, has it."""
    told = read.faults[:_TOLD]
    places = document.places([fault.node for fault in told])
    notes = [f"{place}: {fault}" for place, fault in zip(places, told, strict=True)]
    if len(read.faults) > _TOLD:
        notes.append(f"{len(read.faults) - _TOLD:,} faults more in `{document.label}`")
    if read.cut:
        notes.append(f"the schemas of {plural(read.cut, 'tool')} are cut: they are too large")
    names = [operation.name for operation in read.operations]
    notes += (
        f"the pattern {pattern!r} matches no operation"
        for pattern in (*api.allow, *api.deny)
        if not any(name_is_denied(name, api.name, (pattern,)) for name in names)
    )
    return tuple(f"openapi {api.name}: {note}" for note in notes)


def _tool(source: str, name: str, operation: Operation) -> Tool:
    record: dict[str, Json] = {
        "name": name,
        "description": operation.description,
        "inputSchema": operation.schema,
        "annotations": _annotations(operation.method),
    }
    if operation.title:
        record["title"] = operation.title
    if operation.output is not None:
        record["outputSchema"] = operation.output
    return Tool(
        name,
        operation.description,
        operation.schema,
        source=source,
        aliases=operation.tags,
        annotations=record["annotations"],
        title=operation.title or None,
        shape="mcp",
        raw=record,
        size=len(compact(record)),
        own_name=operation.name,
    )


def _annotations(method: str) -> dict[str, Json]:
    """Return what a method promises: what HTTP says of it, and no more."""
    if method == "GET":
        return {"readOnlyHint": True}
    if method == "DELETE":
        return {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}
    return {"readOnlyHint": False, **({"idempotentHint": True} if method == "PUT" else {})}
