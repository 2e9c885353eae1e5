"""What servers answer, within the length that the gateway passes on; what is cut says so.

A result stays one: texts are cut at a character, whatever else does not fit is left out whole
with a text in its place, and structured content is there as it came or not at all. So no JSON
is ever broken, and no number is lost from the middle of a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold._json_values import compact, is_array, is_object
from toolfold.dispatch.outputs import json_size
from toolfold.sources.calls import PendingCall
from toolfold.sources.mcp.mcp_source import McpSource
from toolfold.sources.source import Source
from toolfold.tool import Json

if TYPE_CHECKING:
    from toolfold.config.serve_settings import ServeSettings

__all__ = ["bounded_contents", "bounded_messages", "bounded_result", "limit_of"]

_PLAIN = "text/plain"
_NOTES_AT_MOST = 8
_WORD_LIMIT = 200
_OWN_KEYS = ("content", "structuredContent", "isError", "resultType")


def limit_of(source: Source, serve: ServeSettings) -> int:
    """Return how many characters of a source's results are passed on; 0 is no limit."""
    own = source.server.result_limit if isinstance(source, McpSource) else None
    return serve.result_limit if own is None else own


def bounded_result(
    result: dict[str, Json], limit: int, call: PendingCall | None = None
) -> dict[str, Json]:
    """Return the result of a call, within a length.

    Args:
        result: The result.
        limit: How many characters its content may have, and its structured content as JSON;
            0 is no limit.
        call: The call. Where its caller was told that there is structured content, a result
            without it is refused by their client, unless it is an error.
    """
    if not limit or "inputRequests" in result or _size(result) <= limit:
        return result
    content = result.get("content")
    blocks: list[Json] = list(content) if is_array(content) else []
    bounded = _Budget(limit).blocks(blocks)
    made = dict(result) if bounded == blocks else {**result, "content": bounded}
    size = _size(result["structuredContent"]) if "structuredContent" in result else 0
    if size > limit:
        del made["structuredContent"]
        note = prompts.structured_left_out(size, limit)
        made["content"] = [*bounded, {"type": "text", "text": note}]
        if call is not None and _promises(call):
            made["isError"] = True
    rest = {key: value for key, value in result.items() if key not in _OWN_KEYS}
    if rest and _size(rest) > limit:
        made = {key: value for key, value in made.items() if key in _OWN_KEYS}
    return made


def _promises(call: PendingCall) -> bool:
    raw = call.tool.raw
    return call.via != "tool_call" and bool(raw and raw.get("outputSchema"))


def bounded_contents(result: dict[str, Json], limit: int) -> dict[str, Json]:
    """Return what was read of a resource, within a length.

    Args:
        result: The result.
        limit: How many characters it may have; 0 is no limit.
    """
    contents = result.get("contents")
    if not limit or not is_array(contents) or _size(result) <= limit:
        return result
    budget = _Budget(limit)
    return {**result, "contents": [budget.resource(each) for each in contents]}


def bounded_messages(result: dict[str, Json], limit: int) -> dict[str, Json]:
    """Return the messages of a prompt, within a length.

    Args:
        result: The result.
        limit: How many characters they may have; 0 is no limit.
    """
    messages = result.get("messages")
    if not limit or not is_array(messages) or _size(result) <= limit:
        return result
    budget = _Budget(limit)
    return {**result, "messages": [_message(each, budget) for each in messages]}


def _message(message: Json, budget: _Budget) -> Json:
    if not is_object(message):
        return message
    content = message.get("content")
    bounded = budget.blocks(content) if is_array(content) else budget.block(content)
    return message if bounded == content else {**message, "content": bounded}


class _Budget:
    """Spends characters on what comes, until there are none.

    Args:
        limit: How many there are.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def blocks(self, blocks: Sequence[Json]) -> list[Json]:
        """Return blocks of content; where many are left out, the last of them are counted."""
        made: list[Json] = []
        notes = dropped = 0
        for block in blocks:
            bounded = self.block(block)
            if bounded is block:
                made.append(block)
            elif notes < _NOTES_AT_MOST:
                notes += 1
                made.append(bounded)
            else:
                dropped += 1
        if dropped:
            made.append({"type": "text", "text": prompts.more_left_out(dropped)})
        return made

    def block(self, block: Json) -> Json:
        """Return a block of content: as it came, cut, or a text that stands for it."""
        if not is_object(block):
            return block if self._pays(_size(block)) else self._note(block)
        text, resource = block.get("text"), block.get("resource")
        if block.get("type") == "text" and isinstance(text, str):
            beside = {key: value for key, value in block.items() if key not in ("type", "text")}
            if self._pays(max(len(text), 1) + (_size(beside) if beside else 0)):
                return block
            if beside and self._pays(max(len(text), 1)):
                return {"type": "text", "text": text}  # all that a model reads of it
            return {"type": "text", "text": self._cut(text)}
        if self._pays(_size(block)):
            return block
        if is_object(resource) and isinstance(resource.get("text"), str):
            return {"type": "text", "text": self._cut(resource["text"])}
        return self._note(resource if is_object(resource) else block)

    def resource(self, content: Json) -> Json:
        """Return a part of a resource; one that is cut is plain text, whatever it was."""
        if not is_object(content) or self._pays(_size(content)):
            return content
        text, uri = content.get("text"), content.get("uri", "")
        made = self._cut(text) if isinstance(text, str) else self._note(content)["text"]
        return {"uri": uri, "mimeType": _PLAIN, "text": made}

    def _pays(self, cost: int) -> bool:
        if cost > self._left:
            return False
        self._left -= cost
        return True

    def _cut(self, text: str) -> str:
        shown, self._left = min(self._left, len(text)), 0
        note = prompts.result_cut(shown, len(text))
        return f"{text[:shown]}\n{note}" if shown else note

    def _note(self, block: Json) -> dict[str, Json]:
        about: Mapping[str, Json] = block if is_object(block) else {}
        kind = about.get("mimeType") or about.get("type")
        data = about.get("data", about.get("blob"))
        size = len(data) * 3 // 4 if isinstance(data, str) else _size(block)  # in base64
        text = prompts.content_too_long(_word(kind) or "content", _word(about.get("uri")), size)
        return {"type": "text", "text": text}


def _word(value: Json) -> str:
    return one_line(value, _WORD_LIMIT) if isinstance(value, str) else ""


def _size(value: Json) -> int:
    # Numbers that are too large for the quick way make no result short.
    return json_size(value) or len(compact(value))
