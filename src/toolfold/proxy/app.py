"""The proxy as an ASGI application: requests for an answer are folded, all others pass.

It stands behind the gateway's guard and holds no state but the history store's. A request is
read whole only where it may be folded; everything else is passed on as it comes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from toolfold import prompts
from toolfold._json_values import parse
from toolfold.answer import Answer
from toolfold.config.proxy_config import ProxyConfig
from toolfold.dispatch.dispatch import Origin, answer_record
from toolfold.dispatch.learning import Learning
from toolfold.dispatch.records import (
    Observer,
    Observers,
    RequestOutcome,
    RequestRecord,
    SearchRecord,
)
from toolfold.dispatch.spans import Spans
from toolfold.memory import Memory
from toolfold.proxy.answering import Answering, Arriving, BrokenAnswerError, until_left
from toolfold.proxy.complaints import error_body, said_in
from toolfold.proxy.customs import ProxyCustoms, keys_in, without_keys
from toolfold.proxy.exchange import Exchange, ExchangeReport, Refused, Untouched
from toolfold.proxy.opening import open_exchange
from toolfold.proxy.paths import Asked, asked, is_sound, is_without_tools, shown_path
from toolfold.proxy.relay import Relay, UpstreamError
from toolfold.proxy.upstreams import Choice, UnservedModelError, UpstreamConnections, Upstreams
from toolfold.scope import Scope
from toolfold.serve.http.customs import AsgiScope, Send
from toolfold.serve.http.guard import Guard
from toolfold.serve.http.rate_limit import Receive
from toolfold.serve.http.request_headers import headers_of
from toolfold.serve.principals import Principal, TokenTable, principal_of
from toolfold.store.entries import MemoryEntries
from toolfold.store.store import Entries
from toolfold.tool import is_object

if TYPE_CHECKING:
    from toolfold.proxy.traffic import Traffic

__all__ = ["ProxyApp", "guarded"]

_log = logging.getLogger(__name__)

_JSON = (b"content-type", b"application/json")
_NOTHING = Scope(allow=())
_READING = frozenset({"GET", "HEAD", "DELETE"})
_SOON_READ = 64 * 1024
"""Up to so many bytes, a body is read on the event loop."""

_METRICS = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")


def guarded(
    app: ProxyApp,
    host: str,
    *,
    refused: Callable[[str], None] = lambda reason: None,
    is_closing: Callable[[], bool] = lambda: False,
) -> Guard:
    """Return the application behind its door.

    Args:
        app: The application.
        host: The host that it is bound to.
        refused: Told why a request was turned away, in one word.
        is_closing: Whether nobody is let in any more.

    Raises:
        ConfigError: A token cannot be used, or none guards an address others reach.
    """
    door = app.config.door
    table = TokenTable.of(door)
    customs = ProxyCustoms(
        holds_keys=app.upstreams.holds_keys, is_token=lambda text: table.admit(text) is not None
    )
    return Guard.of(app, door, host, refused=refused, is_closing=is_closing, customs=customs)


def tools_of(principal: Principal) -> Scope:
    """Return which of a client's tools exist for somebody."""
    # No client says of its tools that they change nothing.
    return _NOTHING if principal.read_only else principal.scope


class ProxyApp:
    """Answers every request that the guard lets through.

    Args:
        config: The upstreams, and how to fold.
        store: What remembers conversations; in memory by default.
        observers: Who is told of every request.
        metrics: Returns the metrics in Prometheus' text form.
        traffic: Where requests and answers are written down, if anywhere.
        spans: Makes a span for each request.
        memory: What searches led to: it learns from all that is called.

    Raises:
        MissingExtraError: The extra `proxy` is not installed.
    """

    def __init__(
        self,
        config: ProxyConfig,
        *,
        store: Entries | None = None,
        observers: Iterable[Observer] = (),
        metrics: Callable[[], str] | None = None,
        traffic: Traffic | None = None,
        spans: Spans | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._learning = None if memory is None else Learning(memory)
        self.config = config
        self.upstreams = Upstreams(config.proxy.upstreams, config.keys)
        self.connections = UpstreamConnections(config.proxy)
        self.in_flight = 0
        """How many requests are under way."""

        self._store: Entries = MemoryEntries() if store is None else store
        self._observers = Observers(observers)
        self._metrics = metrics
        self._traffic = traffic
        self.spans = spans or Spans()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        answering = Answering(send, time.perf_counter())
        if scope["path"] == ProxyCustoms.health_path:
            await answering.whole(200, (_JSON,), b'{"status":"ok"}')
        elif scope["path"] == ProxyCustoms.metrics_path:
            text = self._metrics() if self._metrics is not None else ""
            await answering.whole(200, (_METRICS,), text.encode())
        else:
            self.in_flight += 1
            try:
                await _Request(self, scope, Arriving(receive), answering).answer()
            finally:
                self.in_flight -= 1

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.connections.close()
        await send({"type": "lifespan.shutdown.complete"})

    def opened(
        self, what: Asked, body: bytes, scope: AsgiScope, choice: Choice, principal: Principal
    ) -> Exchange | Untouched | Refused:
        """Return what becomes of a request for an answer. It may take long."""
        upstream = choice.upstream
        return open_exchange(
            what.dialect,
            body,
            {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]},
            settings=self.config.settings,
            store=self._store.of(principal.tenant),
            scope=tools_of(principal),
            host=choice.address,
            owner=principal.name,
            recover=upstream.recover,
            searches=upstream.searches,
            context_length=upstream.context_length,
            rounds_at_most=self.config.proxy.rounds - 1,
            learning=self._learning and self._learning.for_tenant(principal.tenant),
        )

    def told(self, record: RequestRecord, answers: Iterable[SearchRecord]) -> None:
        """Tell the observers of a request, and of what was answered in it."""
        for answer in answers:
            self._observers.answered(answer)
            if answer.role == prompts.TOOL_SEARCH and answer.error is None:
                self._observers.searched(answer)
        self._observers.requested(record)

    @property
    def traffic(self) -> Traffic | None:
        """Where requests and answers are written down, if anywhere."""
        return self._traffic


class _Request:
    """One request, from its arrival to the end of its answer."""

    def __init__(
        self, app: ProxyApp, scope: AsgiScope, arriving: Arriving, answering: Answering
    ) -> None:
        self._app = app
        self._scope = scope
        self._arriving = arriving
        self._answering = answering
        self._asked = asked(scope["method"], scope["path"])
        self._principal = principal_of(scope)
        self._began = time.perf_counter()
        self._at = time.time()
        self._body: bytes | None = None
        self._model = ""
        self._choice: Choice | None = None
        self._relay: Relay | None = None
        self._exchange: Exchange | None = None
        self._outcome: RequestOutcome = "untouched"
        self._opening = 0.0
        self._error: str | None = None

    async def answer(self) -> None:
        """Answer it, and tell of it, however it ends."""
        dialect = self._asked.dialect if self._asked else ""
        with self._app.spans.request(dialect) as ended:
            try:
                if await self._left():
                    self._outcome = "cancelled"
            except asyncio.CancelledError:
                self._outcome = "cancelled"
                raise
            finally:
                ended(self._tell())

    async def _left(self) -> bool:
        """Answer it; return whether the client left before its answer was whole."""
        if self._asked is not None:
            self._body = await self._arriving.whole()
            if self._body is None:
                return True
        return await until_left(self._answer(), self._arriving, self._answering)

    async def _answer(self) -> None:
        try:
            await self._pass_on()
        except UpstreamError as error:
            await self._fail(error.status, error.message)
        except UnservedModelError as error:
            await self._refuse(404, str(error))
        except BrokenAnswerError as error:
            # The server's library closes the connection of an answer that does not end.
            self._outcome, self._error = "failed", str(error)
        except Exception as error:
            _log.exception("a request failed: %s", shown_path(self._scope["path"]))
            self._outcome, self._error = "failed", type(error).__name__
            if not self._answering.is_begun:
                await self._complain(500, "it failed; its log says more")

    async def _pass_on(self) -> None:
        app, scope = self._app, self._scope
        path = _raw_path(scope)
        if not is_sound(path):
            await self._refuse(400, "this path cannot be passed on")
            return
        if self._asked is None and not self._may_pass():
            await self._refuse(403, "this token is for some tools only, which cannot be told here")
            return
        self._model = await self._named_model()
        choice = self._choice = app.upstreams.choose(
            path, self._model if self._body is not None else None
        )
        settings = app.config.proxy
        relay = self._relay = Relay(
            app.connections,
            choice,
            scope["method"],
            choice.query(scope.get("query_string", b"")),
            list(scope["headers"]),
            None if self._asked is None else self._asked.dialect,
            self._answering,
            settings.timeout,
            settings.keep_alive,
            settings.reply_limit,
            kept=[] if app.traffic is not None and self._asked is not None else None,
        )
        if self._asked is None or self._body is None:
            await relay.untouched(self._arriving.pieces() if _has_body(scope) else None)
            return
        opened = await self._opened(self._asked, self._body, choice)
        if isinstance(opened, Refused):
            self._outcome, self._error = "refused", said_in(opened.body)
            await self._answering.whole(opened.status, (_JSON,), opened.body)
        elif isinstance(opened, Untouched):
            await relay.untouched(opened.body)
        elif self._asked.counts:
            self._outcome = "folded"
            await relay.counted(opened)
        else:
            self._outcome, self._exchange = "folded", opened
            await relay.folded(opened)

    def _may_pass(self) -> bool:
        """Whether nothing is sent that the caller's scope had to be asked about."""
        scope = self._scope
        if scope["method"] in _READING or tools_of(self._principal).holds_everything:
            return True
        return is_without_tools(scope["path"])

    async def _refuse(self, status: int, message: str) -> None:
        self._outcome = "refused"
        await self._complain(status, message)

    async def _opened(
        self, what: Asked, body: bytes, choice: Choice
    ) -> Exchange | Untouched | Refused:
        began = time.perf_counter()
        opened = self._app.opened
        try:
            return await asyncio.to_thread(opened, what, body, self._scope, choice, self._principal)
        finally:
            self._opening = time.perf_counter() - began

    async def _named_model(self) -> str:
        """Return the model that the request names; empty where it names none."""
        body = self._body
        if body is None:
            return ""
        return _model(body) if len(body) < _SOON_READ else await asyncio.to_thread(_model, body)

    def _search(self, name: str, role: str | None, arguments: str, answer: Answer) -> SearchRecord:
        # A round's answers are made together; what one of them took is not known.
        origin = Origin(self._principal.name, tenant=self._principal.tenant)
        found = answer_record(answer, name, role, arguments, origin, 0.0)
        return replace(found, at=self._at)

    async def _fail(self, status: int, message: str) -> None:
        self._outcome, self._error = "failed", message
        if not self._answering.is_begun:
            await self._complain(status, message)

    async def _complain(self, status: int, message: str) -> None:
        self._error = message
        is_anthropic = bool(headers_of(self._scope, b"anthropic-version"))
        dialect = self._asked.dialect if self._asked else None
        dialect = dialect or ("anthropic-messages" if is_anthropic else None)
        text = message if message.startswith("toolfold") else f"toolfold proxy: {message}"
        await self._answering.whole(status, (_JSON,), error_body(dialect, status, text))

    def _tell(self) -> RequestRecord:
        relay = self._relay
        report = self._exchange.report if self._exchange else ExchangeReport()
        error = self._error or (relay.error if relay else None)
        # An upstream that refuses a key may say which.
        keys = keys_in(self._scope)
        error = without_keys(error.encode("utf-8", "replace"), keys).decode() if error else None
        if self._outcome in ("folded", "untouched") and relay and relay.error:
            self._outcome = "failed"
        record = RequestRecord(
            at=self._at,
            principal=self._principal.name,
            upstream=self._choice.upstream.name if self._choice else "",
            dialect=self._asked.dialect if self._asked else "",
            model=self._model,
            outcome=self._outcome,
            status=self._answering.status,
            seconds=time.perf_counter() - self._began,
            added=self._opening + (relay.own_seconds if relay else 0.0),
            first=self._answering.first,
            rounds=report.rounds or (1 if self._answering.is_begun else 0),
            searches=report.searches,
            calls=report.handed,
            tools=report.tools_before,
            tokens_before=report.tokens_before,
            tokens_after=report.tokens_after,
            prompt_tokens=report.usage.prompt,
            cached_tokens=report.usage.cached,
            completion_tokens=report.usage.completion,
            error=error,
            tenant=self._principal.tenant,
        )
        self._app.told(record, [self._search(*answered) for answered in report.answers])
        traffic = self._app.traffic
        if traffic is not None and self._body is not None and relay and relay.kept is not None:
            kept = without_keys(b"".join(relay.kept), keys)
            traffic.add(record, without_keys(self._body, keys), kept)
        return record


def _model(body: bytes) -> str:
    """Return the model that a request names; empty where it names none."""
    try:
        value = parse(body)
    except (ValueError, RecursionError):
        return ""
    found = value.get("model") if is_object(value) else None
    return found if isinstance(found, str) else ""


def _raw_path(scope: AsgiScope) -> str:
    """Return a request's path as it came, without its query."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1")


def _has_body(scope: AsgiScope) -> bool:
    """Whether a request comes with a body."""
    lengths = headers_of(scope, b"content-length")
    return bool(headers_of(scope, b"transfer-encoding")) or any(
        length.strip() not in ("", "0") for length in lengths
    )
