"""A tool as a row: its definition, what scopes ask for, and what search looks at."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from toolfold._json_values import compact_bytes, parse
from toolfold.scope import plain
from toolfold.search.partial import ToolEntry
from toolfold.shared._chosen_words import STRONG_FROM
from toolfold.tool import Json, Policy, Tool

if TYPE_CHECKING:
    from pgvector import SparseVector

__all__ = [
    "COLUMNS",
    "COPY_END",
    "COPY_START",
    "TERM_NUMBERS",
    "copied",
    "definition_of",
    "entry_of",
    "is_storable",
    "name_key",
    "sparse",
    "strong_number",
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
    "document", "vector", "words", "terms", "read_only", "trusted", "excerpt",
)  # fmt: skip
"""The columns of `toolfold.tools` that a push writes, in the order of `copied`."""

COPY_START = b"PGCOPY\n\xff\r\n\0" + bytes(8)
"""What rows in PostgreSQL's binary format begin with."""

COPY_END = b"\xff\xff"
"""What they end with."""

_TERMS_KEPT = 32_768
"""Terms whose numbers are kept while tools are written: they say the same words over and over."""

_FIELD_COUNT = struct.pack(">h", len(COLUMNS))
_NULL = struct.pack(">i", -1)
_INT4 = 23
"""The number by which PostgreSQL knows the type of an array's elements."""


def term_number(tenant: str, term: str) -> int:
    """Return the number of a term: another one for each tenant, so that none finds another's.

    Two terms share a number now and then; that only proposes a tool too many.
    """
    return zlib.crc32(f"{tenant}\0{term}".encode()) % (TERM_NUMBERS - 1) + 1


def strong_number(tenant: str, term: str) -> int:
    """Return the number of a term for tools of which it says much."""
    return term_number(tenant, f"\0{term}")


_kept_number = lru_cache(maxsize=_TERMS_KEPT)(term_number)
_kept_strong_number = lru_cache(maxsize=_TERMS_KEPT)(strong_number)


def sparse(tenant: str, worth: Mapping[str, float]) -> SparseVector:
    """Return terms with their worth as a sparse vector."""
    return _sparse((term_number(tenant, term), value) for term, value in worth.items())


def _sparse(worth: Iterable[tuple[int, float]]) -> SparseVector:
    from pgvector import SparseVector

    numbers = islice({number - 1: value for number, value in worth}.items(), _TERMS_AT_MOST)
    return SparseVector(dict(numbers), TERM_NUMBERS)


def name_key(name: str) -> str:
    """Return the letters and digits of a name, as `toolfold.name_key` in the schema does."""
    return "".join(c.lower() if c.isascii() else c for c in name if not c.isascii() or c.isalnum())


def is_storable(tool: Tool) -> bool:
    """Whether the database can hold a tool: its texts have no zero and no half a character."""
    texts = (tool.name, tool.source or "", tool.toolset or "", tool.bare_name)
    return not any("\0" in text or any("\ud800" <= c <= "\udfff" for c in text) for text in texts)


def copied(
    tenant: str,
    tool: Tool,
    entry: ToolEntry,
    worth: Mapping[str, float],
    made_by: str,
    *,
    waits: bool = False,
) -> bytes:
    """Return a tool's row in PostgreSQL's binary format.

    Args:
        tenant: Whose it is.
        tool: The tool.
        entry: What search knows of it.
        worth: What each of its terms is worth.
        made_by: The version by which that was made.
        waits: Whether it waits for a person.
    """
    from pgvector import HalfVector

    toolset, source = tool.toolset_name, tool.source or ""
    terms = [_kept_number(tenant, term) for term in worth]
    strong = [_kept_strong_number(tenant, t) for t, value in worth.items() if value >= STRONG_FROM]
    values = (
        tenant.encode(), tool.name.encode(), source.encode(), tool.digest.encode(),
        None if toolset is None else toolset.encode(), tool.bare_name.encode(),
        b"\1" if tool.own_name else b"\0", plain(tool.name).encode(), plain(source).encode(),
        None if toolset is None else plain(toolset).encode(), plain(tool.bare_name).encode(),
        definition_of(tool).encode(), made_by.encode(),
        struct.pack(">i", len(entry.document.terms)), entry.packed(),
        HalfVector(entry.vector).to_binary(),
        _sparse(zip(terms, worth.values(), strict=True)).to_binary(), _array(terms + strong),
        b"\1" if tool.is_read_only else b"\0", b"\0" if waits else b"\1",
        None if entry.excerpt is None else entry.excerpt.astype("<u2").tobytes(),
    )  # fmt: skip
    parts = [_FIELD_COUNT]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts += (struct.pack(">i", len(value)), value)
    return b"".join(parts)


def _array(numbers: list[int]) -> bytes:
    """Return an array of four-byte numbers in PostgreSQL's binary format."""
    if not numbers:
        return struct.pack(">iii", 0, 0, _INT4)
    pairs = [part for number in numbers for part in (4, number)]
    return struct.pack(f">iiiii{len(pairs)}i", 1, 0, _INT4, len(numbers), 1, *pairs)


def definition_of(tool: Tool) -> str:
    """Return a tool as a text from which `tool_of` makes it again."""
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
    name: str,
    source: str,
    digest: str,
    packed: bytes,
    count: int,
    vector: Any,
    excerpt: bytes | None = None,
) -> ToolEntry:
    """Return what search knows of a tool, from its row."""
    import numpy as np

    found = vector.to_numpy() if hasattr(vector, "to_numpy") else vector
    document = ToolEntry.unpacked(packed, count)
    read = None if excerpt is None else np.frombuffer(excerpt, dtype="<u2")
    return ToolEntry(name, source, digest, document, np.asarray(found, np.float16), read)
