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
    costs: list[int] = []
    for entry in entries:
        for i, tool in enumerate(entry.tools):
            own = entry.shape or shape
            if count is not estimate:
                costs.append(count(_text(tool, own)))
            elif entry.characters:
                costs.append(-(-entry.characters[i] // 4))
            else:
                costs.append(-(-_characters(tool, own) // 4))
    return costs


def _text(tool: Tool, shape: Shape) -> str:
    """Return the compact JSON of a tool, its name as it came where its shape did."""
    as_it_came = tool.raw is not None and tool.shape == shape
    return compact(tool.raw if as_it_came else write(tool, shape))


def list_tokens(entries: Sequence[Entry], shape: Shape, count: TokenCounter) -> int:
    """Return what the whole list costs before it is folded."""
    readable = [entry for entry in entries if entry.tools or entry.size]
    sizes = [_size(entry, shape) for entry in readable] if count is estimate else [None]
    if None in sizes:
        return count(compact(assemble(readable, shape, {}, ())))
    return -(-max(sum(size + 1 for size in sizes if size) + 1, 2) // 4)


def _size(entry: Entry, shape: Shape) -> int | None:
    """Return the characters that an entry takes in the list; None where that is not known."""
    if entry.size:
        return entry.size
    if shape == "gemini":  # its functions stand in one group
        return None
    return sum(_characters(tool, shape) for tool in entry.tools)


def _characters(tool: Tool, shape: Shape) -> int:
    return _SIZES.get_or((tool.digest, shape), lambda: len(_text(tool, shape)))
