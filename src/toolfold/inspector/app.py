"""The inspector as an ASGI application: its own files, and the views as JSON.

It stands behind the same guard as the gateway and the proxy. The page's files hold nothing and
are open; every view wants the token, which stands behind the `#` of the link: a browser sends
that part to nobody, and the page sends it in a header that no other page can add.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from toolfold._json_values import compact, parse
from toolfold.config.serve_settings import ServeSettings
from toolfold.errors import ToolfoldError
from toolfold.inspector import views
from toolfold.inspector.conversations import Conversations
from toolfold.inspector.inspected import Inspected
from toolfold.inspector.live import Live
from toolfold.inspector.page_files import PATHS, page_file, policy
from toolfold.serve.http.customs import AsgiScope, Customs, Send
from toolfold.serve.http.guard import Guard, Hosts, Origins
from toolfold.serve.http.rate_limit import Receive
from toolfold.serve.http.request_headers import headers_of
from toolfold.serve.principals import LOCAL, Principal, TokenTable
from toolfold.tool import is_object

__all__ = ["InspectorApp", "guarded", "new_token"]

_log = logging.getLogger(__name__)

_SAFE = (
    (b"content-security-policy", policy()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_APART = (b"cross-origin-opener-policy", b"same-origin")
"""Whoever opened the page has no hold on it. A browser starts a process anew for that."""

_JSON = b"application/json"
_CHANGE = "/api/live/change"
_QUESTION_AT_MOST = 16_384


class _BadQuestionError(ToolfoldError):
    """A question of the page that has no answer."""


class _Question(NamedTuple):
    """What the page asks for."""

    values: dict[str, str]

    def text(self, name: str) -> str:
        """Return a text that must be there."""
        if name not in self.values:
            raise _BadQuestionError(f"`{name}` is missing")
        return self.values[name]

    def number(self, name: str) -> int:
        """Return a number that must be there."""
        text = self.text(name)
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            raise _BadQuestionError(f"`{name}` is {text!r}: write a number")
        return int(text)

    def options(self, **kinds: Callable[[str], Any]) -> dict[str, Any]:
        """Return those of some options that are given, each as its kind."""
        found: dict[str, Any] = {}
        for name, kind in kinds.items():
            if given := self.values.get(name, ""):
                try:
                    found[name] = kind(given)
                except ValueError:
                    raise _BadQuestionError(f"`{name}` is {given!r}: write a number") from None
        return found


class InspectorApp:
    """Answers the page.

    Args:
        inspected: What it looks at.
        states: The folders in which running gateways and proxies keep their state.
        recorded: The files of conversations.
        beside: More catalogs, to be compared with the first.
    """

    def __init__(
        self,
        inspected: Inspected,
        states: Sequence[Path] = (),
        recorded: Sequence[Path] = (),
        beside: Sequence[Inspected] = (),
    ) -> None:
        self._catalogs = (inspected, *beside)
        self._live = Live(states)
        self._conversations = Conversations(recorded)
        self._views: dict[str, Callable[[_Question], Any]] = {
            "/api/catalog": lambda _: self._catalog,
            "/api/findings": self._findings,
            "/api/conversations": lambda _: self._conversations.view(),
            "/api/conversation": lambda q: self._conversations.conversation(q.number("id")),
            "/api/live": lambda _: self._live.view(),
            "/api/live/trust": lambda q: self._live.waiting(q.number("pid")),
            "/api/live/log": lambda q: self._live.log(q.number("pid"), q.text("name")),
            "/api/tool": lambda q: views.tool_view(self._of(q), q.text("name")),
            "/api/search": self._search,
            "/api/why-not": self._why_not,
            "/api/fold": lambda q: views.fold_view(self._of(q), _fold_options(q)),
            "/api/strategies": lambda q: views.strategies_view(self._of(q), _fold_options(q)),
        }

    def warm(self) -> None:
        """Have ready what the first look would wait for."""
        for inspected in self._catalogs:
            inspected.warm()
        _ = self._catalog

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        path = scope["path"]
        if scope["method"] == "POST" and path == _CHANGE:
            await self._changed(scope, receive, send)
        elif scope["method"] not in ("GET", "HEAD"):
            await _respond(send, 405, _JSON, _error("only GET is answered here"))
        elif path in PATHS:
            await _respond(send, 200, *page_file(path), apart=not _by_a_person(scope))
        elif path in self._views:
            status, body = await asyncio.to_thread(self._answer, path, scope["query_string"])
            await _respond(send, status, _JSON, body)
        else:
            await _respond(send, 404, _JSON, _error("there is nothing here"))

    async def _changed(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Do what the page asks for. The guard has seen the key, the host and the origin.

        A form of another page sends no JSON and no key, and a browser says where a request comes
        from: what does not say so is no page.
        """
        kinds = headers_of(scope, b"content-type")
        if not headers_of(scope, b"origin"):
            await _respond(send, 403, _JSON, _error("only the inspector's page may change things"))
        elif [kind.partition(";")[0].strip() for kind in kinds] != ["application/json"]:
            await _respond(send, 415, _JSON, _error("write JSON"))
        else:
            body = await _body(receive)
            status, answer = await asyncio.to_thread(self._change, body)
            await _respond(send, status, _JSON, answer)

    def _change(self, body: bytes) -> tuple[int, bytes]:
        try:
            asked = parse(body)
        except (ValueError, RecursionError):
            asked = None
        values = asked if is_object(asked) else {}
        pid, verb, given = values.get("pid"), values.get("verb"), values.get("arguments")
        if not isinstance(pid, int) or not isinstance(verb, str) or not is_object(given):
            return 400, _error("a change has a `pid`, a `verb` and `arguments`")
        try:
            done = self._live.change(pid, verb, given)
        except ToolfoldError as error:
            return 409, _error(str(error))
        return 200, compact(done).encode("utf-8", "backslashreplace")

    def _answer(self, path: str, query: bytes) -> tuple[int, bytes]:
        if len(query) > _QUESTION_AT_MOST:
            return 414, _error("the question is too long")
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        try:
            found = self._views[path](_Question(dict(pairs)))
        except ToolfoldError as error:
            return 400, _error(str(error))
        except Exception:
            # A stranger's tool must not take the page down with it.
            _log.exception("the view %s failed", path)
            return 500, _error("this view failed; the terminal says why")
        if found is None:
            return 404, _error("there is none of this name")
        return 200, compact(found).encode("utf-8", "backslashreplace")

    def _of(self, question: _Question) -> Inspected:
        """Return the catalog that a question is about; the first where it names none."""
        number = question.number("catalog") if question.values.get("catalog") else 0
        if number >= len(self._catalogs):
            raise _BadQuestionError(f"there is no catalog {number}")
        return self._catalogs[number]

    @cached_property
    def _catalog(self) -> views.Values:
        titles = [each.title for each in self._catalogs]
        return {**views.catalog_view(self._catalogs[0]), "catalogs": titles}

    def _findings(self, question: _Question) -> views.Values:
        retrieval = question.values.get("retrieval") == "1"
        return self._of(question).checkup.view(retrieval=retrieval)

    def _search(self, question: _Question) -> views.Values:
        options = question.options(ranker=str, floor=float, limit=int, memory=str)
        return views.search_view(self._of(question), question.text("q"), options)

    def _why_not(self, question: _Question) -> views.Values | None:
        options = question.options(ranker=str, floor=float)
        asked = question.text("q"), question.text("name")
        return views.why_not_view(self._of(question), *asked, options)


def _fold_options(question: _Question) -> views.Values:
    return question.options(
        strategy=str,
        enabled=str,
        listing=str,
        shape=str,
        api=str,
        model=str,
        context_length=int,
        gate=float,
    )


class _InspectorCustoms(Customs):
    """A door whose files are open and whose views want the token."""

    door = "inspector"

    def is_public(self, scope: AsgiScope) -> bool:
        """Whether a request is for one of the page's files."""
        return scope["path"] in PATHS


def new_token() -> str:
    """Return a token for one run."""
    return secrets.token_urlsafe(24)


def guarded(app: InspectorApp, host: str, token: str, settings: ServeSettings) -> Guard:
    """Return the application behind its door.

    Args:
        app: The application.
        host: The host that it is bound to.
        token: What the link carries.
        settings: How much a request may be.
    """
    viewer = Principal("viewer")
    return Guard(
        app,
        TokenTable([(hashlib.sha256(token.encode()).digest(), viewer)]),
        hosts=Hosts(host),
        origins=Origins(),
        local=LOCAL,
        body_limit=settings.body_limit,
        customs=_InspectorCustoms(),
    )


def _error(text: str) -> bytes:
    return compact({"error": text}).encode()


def _by_a_person(scope: AsgiScope) -> bool:
    """Whether a person opened this, by the link itself, and no other page."""
    return headers_of(scope, b"sec-fetch-site") == ["none"]


async def _respond(
    send: Send, status: int, kind: bytes, body: bytes, *, apart: bool = True
) -> None:
    length = (b"content-length", str(len(body)).encode())
    headers = [(b"content-type", kind), length, *_SAFE, *((_APART,) if apart else ())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
