"""A tool as a row: its definition, what scopes ask for, and what search looks at."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from toolfold._json_values import compact_bytes, parse
from toolfold.scope import plain
from toolfold.search.partial import ToolEntry
from toolfold.tool import Json, Policy, Tool

if TYPE_CHECKING:
    from pgvector import SparseVector

__all__ = [
    "COLUMNS",
    "TERM_NUMBERS",
    "entry_of",
    "is_storable",
    "name_key",
    "row_of",
    "sparse",
    "term_number",
    "tool_of",
]

TERM_NUMBERS = 1_000_000_000
"""How many numbers there are for terms: the most that a `sparsevec` has."""

_TERMS_AT_MOST = 16_000
"""The most numbers that a `sparsevec` holds."""

COLUMNS = (
    "tenant", "name", "source", "digest", "toolset", "bare_name", "has_own_name", "plain_name",
    "plain_source", "plain_toolset", "plain_bare_name", "definition", "made_by", "term_count",
    "document", "vector", "words", "terms", "read_only",
)  # fmt: skip
"""The columns of `toolfold.tools` that a push writes, in the order of `row_of`."""


def term_number(tenant: str, term: str) -> int:
    """Return the number of a term: another one for each tenant, so that none finds another's.

    Two terms share a number now and then; that only proposes a tool too many.
    """
    return zlib.crc32(f"{tenant}\0{term}".encode()) % (TERM_NUMBERS - 1) + 1


def sparse(tenant: str, worth: Mapping[str, float]) -> SparseVector:
    """Return terms with their worth as a sparse vector."""
    from pgvector import SparseVector

    numbers = {term_number(tenant, term) - 1: value for term, value in worth.items()}
    return SparseVector(dict(list(numbers.items())[:_TERMS_AT_MOST]), TERM_NUMBERS)


def name_key(name: str) -> str:
    """Return the letters and digits of a name, as `toolfold.name_key` in the schema does."""
    return "".join(c.lower() if c.isascii() else c for c in name if not c.isascii() or c.isalnum())


def is_storable(tool: Tool) -> bool:
    """Whether the database can hold a tool: its texts have no zero and no half a character."""
    texts = (tool.name, tool.source or "", tool.toolset or "", tool.bare_name)
    return not any("\0" in text or any("\ud800" <= c <= "\udfff" for c in text) for text in texts)


def row_of(
    tenant: str, tool: Tool, entry: ToolEntry, worth: Mapping[str, float], made_by: str
) -> Sequence[Any]:
    """Return a tool's row."""
    from pgvector import HalfVector

    toolset, source = tool.toolset_name, tool.source or ""
    return (
        tenant, tool.name, source, tool.digest, toolset, tool.bare_name, bool(tool.own_name),
        plain(tool.name), plain(source), None if toolset is None else plain(toolset),
        plain(tool.bare_name), _definition(tool), made_by, len(entry.document.terms),
        entry.packed(), HalfVector(entry.vector), sparse(tenant, worth),
        [term_number(tenant, term) for term in worth], tool.is_read_only,
    )  # fmt: skip


def _definition(tool: Tool) -> str:
    record: dict[str, Json] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "source": tool.source,
        "toolset": tool.toolset,
        "policy": tool.policy,
        "aliases": list(tool.aliases),
        "annotations": dict(tool.annotations),
        "title": tool.title,
        "own_name": tool.own_name,
    }
    # PostgreSQL's text holds no zero; in JSON text there is none but as an escape.
    return compact_bytes(record).decode()


def tool_of(definition: str) -> Tool:
    """Return the tool that a row defines."""
    own: Any = parse(definition.encode())
    return Tool(
        name=own["name"],
        description=own["description"],
        parameters=own["parameters"],
        source=own["source"],
        toolset=own["toolset"],
        policy=cast("Policy", own["policy"]),
        aliases=tuple(cast("Iterable[str]", own["aliases"])),
        annotations=own["annotations"],
        title=own["title"],
        own_name=own["own_name"],
    )


def entry_of(
    name: str, source: str, digest: str, packed: bytes, count: int, vector: Any
) -> ToolEntry:
    """Return what search knows of a tool, from its row."""
    import numpy as np

    found = vector.to_numpy() if hasattr(vector, "to_numpy") else vector
    document = ToolEntry.unpacked(packed, count)
    return ToolEntry(name, source, digest, document, np.asarray(found, dtype=np.float16))
