"""OpenTelemetry spans of calls and searches.

The protocol library makes a span for each message that comes and goes, and carries the
trace from the client to the server in `_meta`. What it cannot know stands between these
two: which tool a call through the bridge is of, and what a search found. The names are
those of OpenTelemetry's conventions for generative AI
(https://opentelemetry.io/docs/specs/semconv/gen-ai/): `execute_tool NAME` and `retrieval`.
No argument, no query and no result is in a span.

Without the `otel` extra, or where nobody collects spans, all of this does nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

from toolfold.dispatch.records import CallRecord, RequestRecord, SearchRecord, session_digest

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

__all__ = ["Ended", "Spans", "start_spans"]

_log = logging.getLogger(__name__)

_WANTED = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_TRACES_EXPORTER",
)


class Ended(Protocol):
    """Takes the record of what the span was of, before it ends."""

    def __call__(self, record: CallRecord | SearchRecord, raised: str = "", /) -> None:
        """Write what came of it, and the kind of what was raised, into the span."""
        ...


def _nothing(record: CallRecord | SearchRecord, raised: str = "", /) -> None:
    pass


class EndedRequest(Protocol):
    """Takes the record of the request that the span was of, before it ends."""

    def __call__(self, record: RequestRecord, /) -> None:
        """Write what came of it into the span."""
        ...


def _no_request(record: RequestRecord, /) -> None:
    pass


_NO_SPAN: AbstractContextManager[Ended] = nullcontext(_nothing)


class Spans:
    """Makes spans, or nothing.

    Args:
        tracer: Where they come from; None makes none.
        close: Sends what is left of them.

    Example:
        with spans.call("github__create_issue", "github") as ended:
            ...
            ended(record)
    """

    def __init__(
        self, tracer: Tracer | None = None, close: Callable[[], None] = lambda: None
    ) -> None:
        self._tracer = tracer
        self.close = close

    def call(self, tool: str, server: str) -> AbstractContextManager[Ended]:
        """Stand around a call; what is sent to the server within it is the span's child."""
        if self._tracer is None:
            return _NO_SPAN
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "extension",
            "toolfold.server": server,
        }
        return _open(self._tracer, f"execute_tool {tool}", attributes)

    def search(self) -> AbstractContextManager[Ended]:
        """Stand around a search."""
        if self._tracer is None:
            return _NO_SPAN
        attributes = {"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": "toolfold"}
        return _open(self._tracer, "retrieval toolfold", attributes)

    def request(self, dialect: str) -> AbstractContextManager[EndedRequest]:
        """Stand around a request to a model."""
        if self._tracer is None:
            return nullcontext(_no_request)
        return _open_request(self._tracer, dialect)


@contextmanager
def _open(tracer: Tracer, name: str, attributes: dict[str, str]) -> Generator[Ended]:
    # What an exception says may hold arguments: only its kind is written down.
    with tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield lambda record, raised="": _end(span, record, raised)
        except BaseException as error:
            _fail(span, type(error).__name__)
            raise


@contextmanager
def _open_request(tracer: Tracer, dialect: str) -> Generator[EndedRequest]:
    with tracer.start_as_current_span(
        "chat" if dialect else "pass",
        attributes={"toolfold.dialect": dialect},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield lambda record: _end_request(span, record)


def _end_request(span: Span, record: RequestRecord) -> None:
    if record.dialect:
        span.update_name(f"chat {record.model}".strip())
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.request.model", record.model)
        span.set_attribute("gen_ai.usage.input_tokens", record.prompt_tokens)
        span.set_attribute("gen_ai.usage.output_tokens", record.completion_tokens)
        span.set_attribute("toolfold.cached_tokens", record.cached_tokens)
        span.set_attribute("toolfold.tokens_saved", record.tokens_saved)
        span.set_attribute("toolfold.rounds", record.rounds)
        span.set_attribute("toolfold.searches", record.searches)
    span.set_attribute("toolfold.principal", record.principal)
    span.set_attribute("toolfold.upstream", record.upstream)
    span.set_attribute("toolfold.outcome", record.outcome)
    span.set_attribute("http.response.status_code", record.status)
    if record.outcome in ("failed", "refused"):
        _fail(span, record.outcome)


def _fail(span: Span, kind: str) -> None:
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)


def _end(span: Span, record: CallRecord | SearchRecord, raised: str) -> None:
    span.set_attribute("toolfold.principal", record.principal)
    if (session := session_digest(record.session)) is not None:
        span.set_attribute("mcp.session.id", session)
    if isinstance(record, SearchRecord):
        span.set_attribute("toolfold.hits", record.hits)
        return
    span.set_attribute("toolfold.via", record.via)
    if record.outcome is None:
        return
    span.set_attribute("toolfold.outcome", record.outcome)
    if record.outcome != "ok":
        _fail(span, raised or record.outcome)


def start_spans(environment: Mapping[str, str] | None = None) -> Spans:
    """Return what makes spans, where the environment says that somebody collects them.

    The variables are OpenTelemetry's own: `OTEL_EXPORTER_OTLP_ENDPOINT` and the like. A
    collector that is set up already, as `opentelemetry-instrument` does, is left as it is.
    """
    variables = os.environ if environment is None else environment
    if variables.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return Spans()
    wanted = any(variables.get(name) for name in _WANTED)
    if variables.get("OTEL_TRACES_EXPORTER") == "none":
        wanted = False
    try:
        from opentelemetry import trace
    except ImportError:
        if wanted:
            _missing()
        return Spans()
    if type(trace.get_tracer_provider()) is not trace.ProxyTracerProvider:
        return Spans(trace.get_tracer("toolfold"))
    close = _provide(variables) if wanted else None
    return Spans() if close is None else Spans(trace.get_tracer("toolfold"), close)


def _provide(variables: Mapping[str, str]) -> Callable[[], None] | None:
    """Send spans over OTLP; return what ends it, or None where the extra is not there."""
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        _missing()
        return None
    name = variables.get("OTEL_SERVICE_NAME") or "toolfold"
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def _missing() -> None:
    _log.warning(
        "spans are asked for by the environment and need the `otel` extra: "
        "install it with `pip install 'toolfold[otel]'`"
    )
