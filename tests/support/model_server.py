"""A model server for tests: real HTTP, the true wire of three APIs, a script for a model.

It runs in a thread of its own, so that it serves a test's event loop, a plain test and a
command in another process alike:

    with ModelServer(Says("Hello."), Fails(429), Says(calls=(Call("add", "{}"),))) as server:
        model = OpenAIChat("any", base_url=server.openai, api_key="key")
        ...
        assert server.requests[0].body["messages"] == [...]

A request to `/v1/chat/completions` or `/v1/responses` is answered as OpenAI does, one to
`/v1/messages` as Anthropic does, in events where `stream` is true. Replies are given in
order. `Raw` is any bytes at all, for what servers do beyond the documents.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any, Self

from toolfold.runtime.messages import Call

__all__ = [
    "Fails",
    "ModelServer",
    "Raw",
    "Received",
    "Says",
    "anthropic_events",
    "openai_chunks",
    "responses_events",
]

SECONDS = 5.0
"""How long a test waits for anything."""


@dataclass(frozen=True)
class Says:
    """A reply, whatever the API."""

    text: str = ""
    calls: Sequence[Call] = ()
    thinking: str = ""
    prompt: int = 0
    cached: int = 0
    completion: int = 0
    stop: str | None = None
    """The API's own word; by default what the content means."""
    piece: int = 7
    """How many characters come at once."""


@dataclass(frozen=True)
class Fails:
    """A refusal."""

    status: int
    message: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "some_error"


@dataclass(frozen=True)
class Raw:
    """Bytes, as they are."""

    pieces: Iterable[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(
        default_factory=lambda: {"content-type": "text/event-stream; charset=utf-8"}
    )
    then: str = "end"
    """What follows: the proper `end`, a `break` of the connection, or to `hold` it open."""
    is_silent: bool = False
    """Whether not even the head is sent."""


@dataclass(frozen=True)
class Received:
    """A request that came in."""

    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes = b""


Step = Says | Fails | Raw | Callable[[Received], "Says | Fails | Raw"]


class ModelServer:
    """Serves a script on a free port of this machine.

    Args:
        script: The replies, in order; a function makes one of the request.
        repeat: Whether the last reply is given again and again.
        cut: How many bytes of a reply are sent at once; 0: an event at a time.
    """

    def __init__(self, *script: Step, repeat: bool = False, cut: int = 0) -> None:
        self.script: list[Step] = list(script)
        self.repeat = repeat
        self.cut = cut
        self.requests: list[Received] = []
        self.connections = 0
        self.gone = threading.Event()
        """Set when a client has left before its reply was at its end."""
        self._arrived = threading.Condition()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="model server", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The server's address; the base URL for Anthropic's API."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai(self) -> str:
        """The base URL for OpenAI's API."""
        return f"{self.url}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(SECONDS)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()

    def wait_for(self, requests: int, seconds: float = SECONDS) -> None:
        """Wait until so many requests have come in."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.requests) >= requests, seconds)

    async def heard(self, requests: int = 1) -> None:
        """Wait until so many requests have come in, in an event loop."""
        await asyncio.to_thread(self.wait_for, requests)

    async def left(self) -> None:
        """Wait until a client has left before its time, in an event loop."""
        assert await asyncio.to_thread(self.gone.wait, SECONDS)

    # ---- the server's own thread

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        def accept() -> None:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            task = asyncio.ensure_future(self._connection(connection))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            # One that is cancelled before it begins closes nothing itself.
            task.add_done_callback(lambda _: connection.close())

        # asyncio's own server drops what it has accepted and not yet handed over as it closes.
        with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
            listening.setblocking(False)
            self._port = listening.getsockname()[1]
            self._loop.add_reader(listening, accept)
            self._ready.set()
            await self._stop.wait()
            self._loop.remove_reader(listening)
        for task in list(tasks):
            task.cancel()
        while tasks:
            await asyncio.wait(tasks)

    async def _connection(self, connection: socket.socket) -> None:
        self.connections += 1
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            while (request := await _received(reader)) is not None:
                with self._arrived:
                    self.requests.append(request)
                    step = self._step()
                    self._arrived.notify_all()
                reply = step(request) if callable(step) else step
                if not await self._send(_raw(reply, request), reader, writer):
                    return
        except ConnectionError:
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            await _closed(writer)

    def _step(self) -> Step:
        if not self.script:
            return Fails(500, "the script is over", {"x-should-retry": "false"})
        return self.script[0] if self.repeat and len(self.script) == 1 else self.script.pop(0)

    async def _send(
        self, raw: Raw, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send a reply; return whether the connection can be used again."""
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            if not raw.is_silent:
                head = [f"HTTP/1.1 {raw.status} Some Reason"]
                head += [f"{name}: {value}" for name, value in raw.headers.items()]
                head += ["transfer-encoding: chunked", "", ""]
                writer.write("\r\n".join(head).encode())
            for piece in _cut(raw.pieces, self.cut):
                if leaving.done():
                    break
                writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                await writer.drain()
                await asyncio.sleep(0)
            if raw.then == "hold" and not leaving.done():
                await asyncio.wait([leaving])
            if leaving.done():
                self.gone.set()
                return False
            if raw.then == "break":
                await writer.drain()
                return False
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True
        except ConnectionError:
            self.gone.set()
            return False
        finally:
            leaving.cancel()
            await asyncio.wait([leaving])


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection, once what is written is sent."""
    writer.close()
    try:
        await writer.wait_closed()
    except ConnectionError:
        pass
    except asyncio.CancelledError:
        writer.transport.abort()


async def _received(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    headers = {name.lower(): value.strip() for name, value in pairs}
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(first.split()[1], headers, _value(raw), raw)


def _value(raw: bytes) -> Any:
    """Return the JSON value of a body; None where it is none that can be read."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _cut(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    if not size:
        yield from (piece for piece in pieces if piece)
        return
    whole = b"".join(pieces)
    yield from (whole[i : i + size] for i in range(0, len(whole), size))


# ---- replies


def _raw(reply: Says | Fails | Raw, request: Received) -> Raw:
    is_anthropic = request.path.partition("?")[0].endswith("/messages")
    body = request.body if isinstance(request.body, dict) else {}
    if isinstance(reply, Fails):
        error = {"message": reply.message, "type": reply.kind}
        value = {"type": "error", "error": error} if is_anthropic else {"error": error}
        headers = {"content-type": "application/json", **reply.headers}
        return Raw([json.dumps(value).encode()], reply.status, headers)
    if isinstance(reply, Raw):
        return reply
    if request.path.partition("?")[0].endswith("/responses"):
        if body.get("stream"):
            return Raw([event(e, e["type"]) for e in responses_events(reply)])
        whole = json.dumps(response(reply)).encode()
        return Raw([whole], 200, {"content-type": "application/json"})
    if body.get("stream"):
        if is_anthropic:
            return Raw([event(e, e["type"]) for e in anthropic_events(reply)])
        counts = bool((body.get("stream_options") or {}).get("include_usage"))
        chunks = [event(chunk) for chunk in openai_chunks(reply, counts=counts)]
        return Raw([*chunks, b"data: [DONE]\n\n"])
    value = anthropic_message(reply) if is_anthropic else openai_completion(reply)
    return Raw([json.dumps(value).encode()], 200, {"content-type": "application/json"})


def event(value: Any, name: str = "") -> bytes:
    """Return one server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode()


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[i : i + size] for i in range(0, len(text), size))


def openai_usage(reply: Says) -> dict[str, Any]:
    """Return the counts of a reply, as OpenAI gives them."""
    return {
        "prompt_tokens": reply.prompt,
        "completion_tokens": reply.completion,
        "total_tokens": reply.prompt + reply.completion,
        "prompt_tokens_details": {"cached_tokens": reply.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def openai_chunks(reply: Says, *, counts: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a streamed completion."""
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
        "model": "any-1",
        "service_tier": "default",
        "system_fingerprint": "fp_1",
    }

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**head, "choices": [choice], **({"usage": None} if counts else {})}

    content = None if reply.calls and not reply.text else ""
    yield chunk({"role": "assistant", "content": content, "refusal": None})
    for text in _pieces(reply.thinking, reply.piece):
        yield chunk({"reasoning_content": text})
    for text in _pieces(reply.text, reply.piece):
        yield chunk({"content": text})
    for index, call in enumerate(reply.calls):
        function = {"name": call.name, "arguments": ""}
        begun = {"index": index, "id": call.id, "type": "function", "function": function}
        yield chunk({"tool_calls": [begun]})
        for text in _pieces(call.arguments, reply.piece):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
    yield chunk({}, reply.stop or ("tool_calls" if reply.calls else "stop"))
    if counts:
        yield {**head, "choices": [], "usage": openai_usage(reply)}


def openai_completion(reply: Says) -> dict[str, Any]:
    """Return a completion that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in reply.calls
        ]
    finish = reply.stop or ("tool_calls" if reply.calls else "stop")
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "any-1",
        "choices": [choice],
        "usage": openai_usage(reply),
    }


def _anthropic_usage(reply: Says) -> dict[str, Any]:
    written = 0
    return {
        "input_tokens": reply.prompt - reply.cached - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": reply.cached,
        "output_tokens": 1,
        "service_tier": "standard",
    }


def _anthropic_head(reply: Says) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "any-1",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _anthropic_usage(reply),
    }


def anthropic_events(reply: Says) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed message."""
    index = itertools.count()

    def block(begun: dict[str, Any], *deltas: dict[str, Any]) -> Iterator[dict[str, Any]]:
        at = next(index)
        yield {"type": "content_block_start", "index": at, "content_block": begun}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}

    yield {"type": "message_start", "message": _anthropic_head(reply)}
    yield {"type": "ping"}
    if reply.thinking:
        thoughts = (
            {"type": "thinking_delta", "thinking": text}
            for text in _pieces(reply.thinking, reply.piece)
        )
        signature = {"type": "signature_delta", "signature": "c2lnbmVk"}
        begun = {"type": "thinking", "thinking": "", "signature": ""}
        yield from block(begun, *thoughts, signature)
    if reply.text:
        texts = ({"type": "text_delta", "text": text} for text in _pieces(reply.text, reply.piece))
        yield from block({"type": "text", "text": ""}, *texts)
    for call in reply.calls:
        parts = ["", *_pieces(call.arguments, reply.piece)]
        deltas = ({"type": "input_json_delta", "partial_json": text} for text in parts)
        begun = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield from block(begun, *deltas)
    stop = {"stop_reason": reply.stop or ("tool_use" if reply.calls else "end_turn")}
    yield {
        "type": "message_delta",
        "delta": {**stop, "stop_sequence": None},
        "usage": {"output_tokens": reply.completion},
    }
    yield {"type": "message_stop"}


def anthropic_message(reply: Says) -> dict[str, Any]:
    """Return a message that is not streamed."""
    content: list[dict[str, Any]] = []
    if reply.thinking:
        content.append({"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmVk"})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    content += [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)}
        for c in reply.calls
    ]
    return {
        **_anthropic_head(reply),
        "content": content,
        "stop_reason": reply.stop or ("tool_use" if reply.calls else "end_turn"),
        "usage": {**_anthropic_usage(reply), "output_tokens": reply.completion},
    }


# ---- OpenAI's Responses


def response(reply: Says) -> dict[str, Any]:
    """Return a response that is not streamed."""
    incomplete = reply.stop not in (None, "completed")
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "incomplete" if incomplete else "completed",
        "error": None,
        "incomplete_details": {"reason": reply.stop} if incomplete else None,
        "instructions": None,
        "model": "any-1",
        "output": list(response_items(reply)),
        "parallel_tool_calls": True,
        "store": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": reply.prompt,
            "input_tokens_details": {"cached_tokens": reply.cached, "cache_write_tokens": 0},
            "output_tokens": reply.completion,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.prompt + reply.completion,
        },
    }


def response_items(reply: Says) -> Iterator[dict[str, Any]]:
    """Yield the items of a response: reasoning, which comes sealed, a message, calls."""
    if reply.thinking:
        yield {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": reply.thinking}],
            "encrypted_content": "gAAAAsealed",
        }
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        yield {
            "id": "msg_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }
    for place, call in enumerate(reply.calls, 1):
        # Numbered as its call is: no two items of a conversation have the same id.
        number = call.id.lstrip(f"{ascii_lowercase}_") or place
        yield {
            "id": f"fc_{number}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }


def responses_events(reply: Says) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed response."""
    numbers = itertools.count()

    def told(kind: str, **more: Any) -> dict[str, Any]:
        return {"type": f"response.{kind}", "sequence_number": next(numbers), **more}

    whole = response(reply)
    begun = {**whole, "status": "in_progress", "incomplete_details": None, "output": []}
    begun["usage"] = None
    yield told("created", response=begun)
    yield told("in_progress", response=begun)
    for place, item in enumerate(whole["output"]):
        where = {"output_index": place}
        yield told("output_item.added", item=_begun(item), **where)
        where["item_id"] = item["id"]
        if item["type"] == "reasoning":
            where["summary_index"] = 0
            part = {"type": "summary_text", "text": ""}
            yield told("reasoning_summary_part.added", part=part, **where)
            for text in _pieces(reply.thinking, reply.piece):
                yield told("reasoning_summary_text.delta", delta=text, **where)
            yield told("reasoning_summary_text.done", text=reply.thinking, **where)
            yield told("reasoning_summary_part.done", part=item["summary"][0], **where)
        elif item["type"] == "message":
            where["content_index"] = 0
            part = item["content"][0]
            yield told("content_part.added", part={**part, "text": ""}, **where)
            for text in _pieces(reply.text, reply.piece):
                yield told("output_text.delta", delta=text, logprobs=[], **where)
            yield told("output_text.done", text=reply.text, logprobs=[], **where)
            yield told("content_part.done", part=part, **where)
        else:
            for text in _pieces(item["arguments"], reply.piece):
                yield told("function_call_arguments.delta", delta=text, **where)
            yield told("function_call_arguments.done", arguments=item["arguments"], **where)
        yield told("output_item.done", output_index=place, item=item)
    yield told(str(whole["status"]), response=whole)


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as it is first told of."""
    empty = {"summary": [], "content": [], "arguments": "", "encrypted_content": "gAAAAbegun"}
    if item["type"] != "reasoning":
        empty["status"] = "in_progress"
    return {key: empty.get(key, value) for key, value in item.items()}
