"""What a provider wants back with a model's message, and what nobody else may get.

Signatures and encrypted reasoning mean something to the model that wrote them, at the
provider that sealed them, and are an error anywhere else. A message says who wrote its
blocks; whoever is somebody else gets text, calls and results, and nothing of these.
"""

from __future__ import annotations

from toolfold.runtime.messages import ModelMessage
from toolfold.tool import Json, Shape, is_object

__all__ = ["native_blocks"]

_ONE_BLOCK: frozenset[Shape] = frozenset({"openai-chat", "openai-responses"})
"""The APIs whose blocks stand in one of ours, of this type; Anthropic's stand alone."""


def native_blocks(message: ModelMessage, shape: Shape, origin: str) -> list[dict[str, Json]]:
    """Return the blocks of a message that may go back to a provider.

    Args:
        message: What a model said, whichever it was.
        shape: The API that is spoken now.
        origin: Who is spoken to now.
    """
    if message.origin not in ("", origin):
        return []
    blocks = [block for block in message.native if is_object(block)]
    if shape in _ONE_BLOCK:
        return [block for block in blocks if block.get("type") == shape][:1]
    return [block for block in blocks if block.get("type") not in _ONE_BLOCK]
