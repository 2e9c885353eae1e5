"""What one exchange teaches a memory: searches that were answered, and calls for the client.

The client runs the tools. A call that it gets counts as used; whether it worked stands in its
next request, where the dialect says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from toolfold import prompts
from toolfold.answer import Answer, Hit
from toolfold.dispatch.learning import Learning
from toolfold.proxy.request import ProxiedRequest
from toolfold.search import SearchMemory
from toolfold.tool import Json, Tool, is_array, is_object

__all__ = ["Lessons"]


class Lessons:
    """What one conversation of a client teaches.

    Args:
        learning: What learns.
        principal: Whose conversation it is.
        tells_errors: Whether the client says which of its calls went wrong.
    """

    def __init__(self, learning: Learning, principal: str, *, tells_errors: bool) -> None:
        self._learning = learning
        self._principal = principal
        self._tells_errors = tells_errors
        self.conversation: str | None = None
        """Names the conversation, once that is known."""

    @property
    def memory(self) -> SearchMemory:
        """What earlier searches led to, as this client may know it."""
        return self._learning.memory.of(self._principal)

    def began(self, conversation: str, request: ProxiedRequest) -> None:
        """Take a request, with the results of earlier calls in it.

        Args:
            conversation: Names its conversation.
            request: The request.
        """
        self.conversation = conversation
        if self._tells_errors:
            results = dict(_results(item.value for item in request.items))
            self._learning.returned(self._principal, conversation, results)

    def answered(self, role: str | None, query: str, answer: Answer) -> None:
        """Take a call that was answered without the client."""
        if role != prompts.TOOL_SEARCH or answer.is_error:
            return
        named = [(hit.need, hit.name) for hit in answer.hits if hit.shown != "companion"]
        self._learning.asked(self._principal, self.conversation, query, named)

    def noted(self, hits: Sequence[Hit]) -> None:
        """Take what was named behind the user's message."""
        self._learning.noted(self._principal, self.conversation, hits)

    def handed(self, tool: Tool, call_id: str) -> None:
        """Take a call that the client gets."""
        key = (tool.name, tool.digest)
        if self._tells_errors:
            self._learning.handed(self._principal, self.conversation, key, call_id)
        else:
            self._learning.used(self._principal, self.conversation, key, worked=True)


def _results(items: Iterable[Json]) -> Iterator[tuple[str, bool]]:
    """Yield the ids of calls whose results stand in messages, and whether each worked."""
    for item in items:
        content = item.get("content") if is_object(item) else None
        for block in content if is_array(content) else ():
            if is_object(block) and block.get("type") == "tool_result":
                yield str(block.get("tool_use_id")), block.get("is_error") is not True
