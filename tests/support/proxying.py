"""The proxy's pure half between an SDK and a scripted model, without a socket.

    wire = Between(play)
    client = wire.openai()
    client.chat.completions.create(...)
    wire.asked  # what the model was asked, request by request
    wire.given  # what the client sent

The bytes are those of a real exchange: the SDK writes its requests and reads the answers, a
dialect of the scripted model reads what goes up and writes what comes down, cut in pieces.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai

from toolfold import Settings
from toolfold.proxy.exchange import Again, ExchangeReport, Finished, Refused, Untouched
from toolfold.proxy.opening import open_exchange
from toolfold.scope import EVERYTHING, Scope
from toolfold.store.entries import MemoryEntries
from toolfold.store.store import Entries

_INTEROP = str(Path(__file__).resolve().parents[2] / "interop")
if _INTEROP not in sys.path:
    sys.path.append(_INTEROP)

from scripted_model import (  # noqa: E402
    AnthropicMessages,
    Asked,
    Call,
    OpenAIChat,
    OpenAIResponses,
    Refuse,
    Say,
    Think,
)

__all__ = [
    "DIALECTS",
    "Asked",
    "Between",
    "Call",
    "Refuse",
    "Say",
    "Think",
    "items_of",
    "mcp_tools",
    "named",
    "texts_of",
]

DIALECTS: Mapping[str, Any] = {
    "openai-chat": OpenAIChat(),
    "openai-responses": OpenAIResponses(),
    "anthropic-messages": AnthropicMessages(),
}
FOLDING = Settings(enabled="on", prefetch="off")
"""Without notes behind the user's messages, which are `tests/proxy/test_prefetch.py`'s."""


class Between(httpx2.BaseTransport):
    """Stands where the network would be.

    Args:
        play: What the model says; bytes are what it says on the wire.
        settings: How to fold.
        store: What the proxy remembers.
        scope: Which tools exist.
        is_folding: Whether the proxy is there at all.
        piece: How many bytes of a stream come at once; 0: an event at once.
        more: What else an exchange is opened with.
    """

    def __init__(
        self,
        play: Callable[[Asked], Any],
        *,
        settings: Settings = FOLDING,
        store: Entries | None = None,
        scope: Scope = EVERYTHING,
        is_folding: bool = True,
        piece: int = 0,
        **more: Any,
    ) -> None:
        self.play = play
        self.settings = settings
        self.store = MemoryEntries() if store is None else store
        self.scope = scope
        self.is_folding = is_folding
        self.piece = piece
        self.more = more
        self.asked: list[Asked] = []
        self.given: list[bytes] = []
        self.answers: list[bytes] = []
        self.reports: list[ExchangeReport] = []

    def openai(self) -> openai.OpenAI:
        """Return OpenAI's client."""
        return openai.OpenAI(
            api_key="key",
            base_url="http://upstream/v1",
            http_client=httpx2.Client(transport=self),
            max_retries=0,
        )

    def anthropic(self) -> anthropic.Anthropic:
        """Return Anthropic's client."""
        return anthropic.Anthropic(
            api_key="key",
            base_url="http://upstream",
            http_client=httpx2.Client(transport=self),
            max_retries=0,
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request."""
        path = request.url.path
        status, kind, body = self.answer(path, request.read(), dict(request.headers))
        return httpx2.Response(status, headers={"content-type": kind}, content=body)

    def answer(
        self, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str, bytes]:
        """Return the status, the kind and the body of the answer to a request."""
        self.given.append(body)
        name: Any = next(name for name, dialect in DIALECTS.items() if dialect.takes(path))
        opened: Any = Untouched(body)
        if self.is_folding:
            opened = open_exchange(
                name,
                body,
                headers or {},
                settings=self.settings,
                store=self.store,
                scope=self.scope,
                **self.more,
            )
        if isinstance(opened, Refused):
            return opened.status, "application/json", opened.body
        status, kind, out = self._rounds(path, opened)
        self.answers.append(out)
        if not isinstance(opened, Untouched):
            self.reports.append(opened.report)
        return status, kind, out

    def _rounds(self, path: str, opened: Any) -> tuple[int, str, bytes]:
        up, out = opened.body, b""
        while True:
            status, kind, pieces = self._upstream(path, up)
            if isinstance(opened, Untouched):
                return status, kind, b"".join(pieces)
            if status != 200:
                other = opened.refused(status, b"".join(pieces))
                if other is None:
                    return status, kind, b"".join(pieces)
                up = other.body
                continue
            if opened.is_streamed:
                out += b"".join(opened.receive(piece) for piece in self._cut(pieces))
                step: Again | Finished = opened.end()
            else:
                step = opened.end(b"".join(pieces))
            if isinstance(step, Finished):
                return 200, kind, out + step.tail
            up, out = step.body, out + step.head

    def _upstream(self, path: str, body: bytes) -> tuple[int, str, list[bytes]]:
        dialect = next(dialect for dialect in DIALECTS.values() if dialect.takes(path))
        asked = dialect.read(path, {}, body)
        self.asked.append(asked)
        parts = self.play(asked)
        number = len(self.asked)
        if isinstance(parts, bytes):
            kind = "text/event-stream" if asked.is_streamed else "application/json"
            return 200, kind, [parts]
        if isinstance(parts, Refuse):
            return parts.status, "application/json", [json.dumps(parts.content).encode()]
        if asked.is_streamed:
            return 200, "text/event-stream", list(dialect.streamed(asked, parts, number))
        whole = json.dumps(dialect.whole(asked, parts, number)).encode()
        return 200, "application/json", [whole]

    def _cut(self, pieces: Sequence[bytes]) -> Iterator[bytes]:
        if not self.piece:
            yield from pieces
            return
        whole = b"".join(pieces)
        for at in range(0, len(whole), self.piece):
            yield whole[at : at + self.piece]


VERBS = ("read", "write", "rename", "delete", "copy", "upload", "resize", "archive")


def mcp_tools(shape: str, *, own: Sequence[str] = (), verbs: Sequence[str] = VERBS) -> list[Any]:
    """Return a client's tools: its own, and those of an MCP server."""
    names = [*own, *(f"mcp__files__{verb}_file" for verb in verbs)]
    return [named(shape, name, f"{name.rpartition('__')[2]}: does it to a file") for name in names]


def named(shape: str, name: str, description: str = "Does something.") -> Any:
    """Return a tool that takes a path, in the shape of a dialect."""
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["path"],
    }
    if shape == "anthropic-messages":
        return {"name": name, "description": description, "input_schema": schema}
    function = {"name": name, "description": description, "parameters": schema}
    if shape == "openai-chat":
        return {"type": "function", "function": function}
    return {"type": "function", **function, "strict": False}


def items_of(body: bytes) -> list[Any]:
    """Return the conversation in a request."""
    content = json.loads(body)
    return content.get("messages", content.get("input"))


def texts_of(body: bytes) -> list[str]:
    """Return the items of the conversation in a request, each as the text that stands there."""
    from toolfold.proxy.request import ProxiedRequest

    key = "messages" if "messages" in json.loads(body) else "input"
    request = ProxiedRequest.of(body, key)
    return [item.text(request.text) for item in request.items]
