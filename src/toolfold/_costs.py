"""What tools cost a model, in tokens, as they stand on the wire."""

from __future__ import annotations

from collections.abc import Sequence

from toolfold._json_values import compact
from toolfold._memo import Memo
from toolfold.tokens import TokenCounter, estimate
from toolfold.tool import Shape, Tool
from toolfold.wire import Entry, write
from toolfold.wire.assemble import assemble

__all__ = ["list_tokens", "tool_costs"]

_SIZES: Memo[tuple[str, Shape], int] = Memo(16_384)


def tool_costs(entries: Sequence[Entry], shape: Shape, count: TokenCounter) -> list[int]:
    """Return what each tool of the entries costs."""
    if count is not estimate:
        return [count(_text(tool, e.shape or shape)) for e in entries for tool in e.tools]
    characters: list[int] = []
    for entry in entries:
        own = entry.shape or shape
        characters += entry.characters or [_characters(tool, own) for tool in entry.tools]
    return [-(-own // 4) for own in characters]


def _text(tool: Tool, shape: Shape) -> str:
    """Return the compact JSON of a tool, its name as it came where its shape did."""
    as_it_came = tool.raw is not None and tool.shape == shape
    return compact(tool.raw if as_it_came else write(tool, shape))


def list_tokens(entries: Sequence[Entry], shape: Shape, count: TokenCounter) -> int:
    """Return what the whole list costs before it is folded."""
    sizes = [entry.size or _size(entry, shape) for entry in entries]
    if count is not estimate or None in sizes:
        readable = [entry for entry in entries if entry.tools or entry.size]
        return count(compact(assemble(readable, shape, {}, ())))
    # A comma behind each, and brackets around them.
    held = [size for size in sizes if size]
    return -(-max(sum(held) + len(held) + 1, 2) // 4)


def _size(entry: Entry, shape: Shape) -> int | None:
    """Return the characters that an entry without a record takes; None where it is not known."""
    if shape == "gemini" and entry.tools:  # its functions stand in one group
        return None
    return sum(_characters(tool, shape) for tool in entry.tools)


def _characters(tool: Tool, shape: Shape) -> int:
    return _SIZES.get_or((tool.digest, shape), lambda: len(_text(tool, shape)))
