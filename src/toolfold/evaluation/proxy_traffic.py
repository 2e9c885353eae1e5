"""What `toolfold proxy --save` wrote: a client's conversation, whatever dialect it is in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from toolfold._json_values import parse
from toolfold.catalog import Catalog
from toolfold.errors import CatalogError
from toolfold.runtime.messages import Call, Message, ModelMessage, ResultMessage, UserMessage
from toolfold.tool import Json, is_array, is_object
from toolfold.wire import read

__all__ = ["SavedRequest", "saved_request"]

_MARK = '"toolfold_proxy"'


class SavedRequest:
    """One request that passed the proxy.

    Args:
        value: What its file holds.
        where: The file, as an error names it.

    Raises:
        CatalogError: The file holds no conversation.
    """

    def __init__(self, value: Mapping[str, Json], where: str) -> None:
        request = value.get("request")
        if not is_object(request):
            raise CatalogError(
                f"{where} holds a request that is no JSON", hint="give another file of the folder"
            )
        self._request = request
        self._dialect = str(value.get("dialect"))
        self._answer = value.get("answer")
        self._where = where
        self.model = str(value.get("model") or "")
        """The model, as the request names it."""

        counted = value.get("counted")
        self.counted: Mapping[str, Json] = counted if is_object(counted) else {}
        """What the proxy counted: rounds, searches, tokens, seconds."""

    @property
    def catalog(self) -> Catalog:
        """The tools that the client sent."""
        tools = self._request.get("tools")
        given = [each for each in _flat(tools) if is_object(each)] if is_array(tools) else []
        known = [one for one in given if "name" in one or "function" in one]
        return Catalog(tool for entry in read(known) for tool in entry.tools)

    @property
    def messages(self) -> list[Message]:
        """What was said, the answer included; system messages are left out."""
        items = self._request.get("messages", self._request.get("input"))
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        if not is_array(items):
            raise CatalogError(
                f"{self._where} holds no messages", hint="give another file of the folder"
            )
        found = _joined(message for item in items if is_object(item) for message in _read(item))
        text = _answer_text(self._answer)
        return [*found, ModelMessage(text)] if text else found


def saved_request(text: str, where: str) -> SavedRequest | None:
    """Return the request that a file holds; None where it is of another kind."""
    if _MARK not in text[:200]:
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return None
    return SavedRequest(value, where) if is_object(value) else None


def _flat(tools: list[Json]) -> Iterator[Json]:
    """Yield tools, those of a namespace among them."""
    for each in tools:
        inner = each.get("tools") if is_object(each) else None
        if is_object(each) and each.get("type") == "namespace" and is_array(inner):
            yield from inner
        else:
            yield each


def _joined(messages: Iterator[Message]) -> list[Message]:
    """Return messages in which the calls of one reply stand together, and results follow them."""
    found: list[Message] = []
    for message in messages:
        last = found[-1] if found else None
        if isinstance(message, ModelMessage) and isinstance(last, ModelMessage):
            text = "\n".join(filter(None, (last.text, message.text)))
            found[-1] = ModelMessage(text, (*last.calls, *message.calls))
        else:
            found.append(message)
    return found


def _read(item: Mapping[str, Json]) -> Iterator[Message]:
    """Yield what an item of any of the dialects says."""
    match item.get("type"):
        case "function_call":
            call = Call(str(item.get("name")), str(item.get("arguments")), str(item.get("call_id")))
            yield ModelMessage(calls=(call,))
            return
        case "function_call_output":
            yield ResultMessage(_text(item.get("output")), str(item.get("call_id")))
            return
        case _:
            pass
    content = item.get("content")
    match item.get("role"):
        case "user":
            yield from _results(content)
            if text := _text(content):
                yield UserMessage(text)
        case "tool":
            yield ResultMessage(_text(content), str(item.get("tool_call_id")))
        case "assistant":
            yield ModelMessage(_text(content), (*_calls(item), *_uses(content)))
        case _:
            pass


def _calls(item: Mapping[str, Json]) -> Iterator[Call]:
    calls = item.get("tool_calls")
    for call in calls if is_array(calls) else ():
        function = call.get("function") if is_object(call) else None
        if is_object(call) and is_object(function):
            arguments = str(function.get("arguments") or "{}")
            yield Call(str(function.get("name")), arguments, str(call.get("id")))


def _uses(content: Json) -> Iterator[Call]:
    for block in content if is_array(content) else ():
        if is_object(block) and block.get("type") == "tool_use":
            given = json.dumps(block.get("input") or {})
            yield Call(str(block.get("name")), given, str(block.get("id")))


def _results(content: Json) -> Iterator[ResultMessage]:
    for block in content if is_array(content) else ():
        if is_object(block) and block.get("type") == "tool_result":
            yield ResultMessage(
                _text(block.get("content")),
                str(block.get("tool_use_id")),
                is_error=block.get("is_error") is True,
            )


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = content if is_array(content) else ()
    texts = (p.get("text") for p in parts if is_object(p) and "tool" not in str(p.get("type")))
    return "\n".join(text for text in texts if isinstance(text, str))


def _answer_text(answer: Json) -> str:
    """Return the text of an answer, whole or streamed; empty where it calls tools."""
    if is_object(answer):
        choices, output = answer.get("choices"), answer.get("output")
        first = choices[0] if is_array(choices) and choices else None
        said = first.get("message") if is_object(first) else None
        items = output if is_array(output) else [said if is_object(said) else answer]
        read_items = _joined(m for i in items if is_object(i) for m in _read(_as_model(i)))
        last = read_items[-1] if read_items else None
        return last.text if isinstance(last, ModelMessage) and not last.calls else ""
    if not isinstance(answer, str) or '"tool_use"' in answer or '"function_call"' in answer:
        return ""
    return "".join(_deltas(answer))


def _as_model(item: Mapping[str, Json]) -> Mapping[str, Json]:
    return item if item.get("type") == "function_call" else {**item, "role": "assistant"}


def _deltas(stream: str) -> Iterator[str]:
    for line in stream.splitlines():
        if not line.startswith("data:"):
            continue
        try:
            event = parse(line[5:])
        except (ValueError, RecursionError):
            continue
        if not is_object(event):
            continue
        choices, delta = event.get("choices"), event.get("delta")
        first = choices[0] if is_array(choices) and choices else None
        delta = first.get("delta") if is_object(first) else delta
        if is_object(delta):
            if is_array(delta.get("tool_calls")):
                return
            delta = delta.get("content", delta.get("text"))
        if isinstance(delta, str) and "reasoning" not in str(event.get("type")):
            yield delta
