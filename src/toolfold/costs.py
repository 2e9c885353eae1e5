"""What tools cost a model, in tokens, as they stand on the wire."""

from __future__ import annotations

from collections.abc import Sequence

from toolfold.memo import Memo
from toolfold.tokens import TokenCounter, compact, estimate
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
                size = _SIZES.get_or((tool.digest, own), lambda t=tool, s=own: len(_text(t, s)))
                costs.append(-(-size // 4))
    return costs


def _text(tool: Tool, shape: Shape) -> str:
    """Return the compact JSON of a tool, its name as it came where its shape did."""
    as_it_came = tool.raw is not None and tool.shape == shape
    return compact(tool.raw if as_it_came else write(tool, shape))


def list_tokens(entries: Sequence[Entry], shape: Shape, count: TokenCounter) -> int:
    """Return what the whole list costs before it is folded."""
    readable = [entry for entry in entries if entry.tools or entry.size]
    if count is not estimate or not all(entry.size for entry in readable):
        return count(compact(assemble(readable, shape, {}, ())))
    return -(-max(sum(entry.size + 1 for entry in readable) + 1, 2) // 4)
