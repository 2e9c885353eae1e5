"""An HTTP API as a source: the operations of its OpenAPI document are its tools.

A document in a file is read when the source is made, and one that cannot be used is an error
then. One at an address is fetched when the source is opened; until it is there the source is
absent, and is tried again by itself. Calls go to one origin, within bounds of time and bytes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from toolfold import prompts
from toolfold._bounds import one_line
from toolfold._json_values import Json, compact
from toolfold.absent import AbsentSource
from toolfold.errors import ConfigError, MissingExtraError
from toolfold.invisible import shown_tool
from toolfold.prompts import http_calls
from toolfold.redact import MARK
from toolfold.scope import name_is_denied, name_matches
from toolfold.sources._listeners import Listeners
from toolfold.sources.calls import CallContext, Output
from toolfold.sources.mcp._exposed_names import own_names
from toolfold.sources.openapi._credentials import Credentials
from toolfold.sources.openapi._servers import origin_of
from toolfold.sources.openapi.api_document import (
    ApiDocument,
    DocumentError,
    checked_document,
    read_document,
)
from toolfold.sources.openapi.http_api import HttpApi
from toolfold.sources.openapi.operation import Operation
from toolfold.sources.openapi.operations import Reading, ReadOperations, read_operations
from toolfold.sources.source import Bounds, Source, SourceError
from toolfold.tool import Tool

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

    from toolfold.sources.openapi._http_client import HttpClient

__all__ = ["ApiUnreachableError", "OpenAPISource"]

DESCRIPTION_LIMIT = 4_000
"""The longest description that is passed on where nothing else is said."""

RETRIES = (2.0, 5.0, 15.0, 60.0, 300.0)
"""The seconds between attempts to fetch a document; the last stays."""

_OPENING = 10.0
_FETCHING = 30.0
_TOLD = 5

_log = logging.getLogger(__name__)


class ApiUnreachableError(SourceError):
    """An API gave no answer.

    Args:
        message: Why, without an address.
        may_have_run: Whether the request may have had effects all the same.
    """

    def __init__(self, message: str, *, may_have_run: bool) -> None:
        super().__init__(message, hint="see whether the API is there, and `base_url` right")
        self._may_have_run = may_have_run

    def for_model(self, tool: Tool) -> str:
        """Return what the model reads as the result of its call."""
        return http_calls.api_unreachable(tool.shown_name, str(self), self._may_have_run)


class OpenAPISource(Source):
    """The operations of an API as tools, named `NAME__operation`.

    Example:
        pets = OpenAPISource(HttpApi("pets", file="petstore.yaml", base_url="http://localhost:8000"))
        agent = Agent(model, sources=[pets])

    Args:
        api: Where the API and its document are, and what is sent along.
        document: The document itself, as a mapping or a text, in place of a file or address.
        transport: What carries the requests, in place of the network: an
            `httpx2.ASGITransport` asks an application in this process.
        description_limit: The longest description that is passed on.
        retries: Seconds between attempts to fetch the document; the last stays.

    Raises:
        DocumentError: The document cannot be used. The error names the place in it.
        ConfigError: There is no document, or a credential is for none of its schemes.
        MissingExtraError: The extra `openapi` is not installed.
    """

    def __init__(
        self,
        api: HttpApi,
        *,
        document: Mapping[str, Json] | str | bytes | None = None,
        transport: AsyncBaseTransport | None = None,
        description_limit: int = DESCRIPTION_LIMIT,
        retries: Sequence[float] = RETRIES,
    ) -> None:
        _check_extra()
        self.name = api.name
        self._api = api
        self._transport = transport
        self._limit = description_limit
        self._retries = tuple(retries)
        self._listeners = Listeners()
        self._tools: tuple[Tool, ...] = ()
        self._operations: dict[str, Operation] = {}
        self._credentials: Credentials | None = None
        self._secrets = sorted(api.credentials, key=len, reverse=True)
        self._client: HttpClient | None = None
        self._users = 0
        self._fetching: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._cause: str | None = None
        self._told: str | None = None
        self._notes: list[str] = []
        self._next_try = 0.0
        self._is_there = False
        if api.problem is not None:
            self._cause, self._told = "its configuration cannot be used", str(api.problem)
        elif document is not None:
            label = api.file or api.url or api.name
            self._take(_document(document, label))
        elif api.path is not None:
            self._take(_read_file(api))
        elif not api.url:
            raise ConfigError(f"`openapi.{api.name}` has no document", hint="give `file` or `url`")

    # ---- what is there

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools: none where the document is not there yet."""
        return self._tools

    def bounds(self, tool: Tool) -> Bounds:
        """Return what bounds the calls of a tool."""
        return Bounds(timeout=self._api.timeout)

    def absence(self) -> AbsentSource | None:
        """Return why there are no tools yet, and when the document is asked for again."""
        if self._is_there:
            return None
        left = None
        if self._fetching is not None:
            left = max(self._next_try - time.monotonic(), 0.0)
        return AbsentSource(self.name, self._cause, left)

    @property
    def operations(self) -> Mapping[str, Operation]:
        """The operations behind the tools, by the tools' names."""
        return MappingProxyType(self._operations)

    @property
    def problem(self) -> str | None:
        """Why it has no tools, for a person; None where it has, or is still waited for."""
        return None if self._is_there else self._told

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person may want to know of a document that can be used all the same."""
        return tuple(self._notes)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a listener called when the document has come; return what ends that."""
        return self._listeners.add(listener)

    def _take_text(self, content: bytes) -> None:
        self._take(read_document(content, self._api.url))

    def _take(self, document: ApiDocument) -> None:
        """Make tools of a document."""
        api = self._api
        credentials = Credentials(api.name, document, api.auth)
        reading = Reading(
            api.base_url,
            api.variables,
            api.url,
            credentials.hidden | {("header", name.lower()) for name in api.headers},
            api.deprecated,
            api.output_schemas,
        )
        read = read_operations(document, reading)
        self._tell(document, read)
        by_name = {o.name: o for o in read.operations if self._is_wanted(o.name)}
        names = own_names(api.name, None, by_name)
        self._operations = {names[own]: operation for own, operation in by_name.items()}
        self._tools = tuple(
            shown_tool(_tool(api.name, name, operation), self._limit)
            for name, operation in self._operations.items()
        )
        self._credentials = credentials
        self._is_there, self._cause = True, None

    def _is_wanted(self, name: str) -> bool:
        api = self._api
        return name_matches(name, api.name, api.allow) and not name_is_denied(
            name, api.name, api.deny
        )

    def _tell(self, document: ApiDocument, read: ReadOperations) -> None:
        """Say what is not as the document, or as the configuration, has it."""
        api = self._api
        told = read.faults[:_TOLD]
        places = document.places([fault.node for fault in told])
        notes = [f"{place}: {fault}" for place, fault in zip(places, told, strict=True)]
        if len(read.faults) > _TOLD:
            notes.append(f"{len(read.faults) - _TOLD:,} faults more in `{document.label}`")
        if read.cut:
            notes.append(f"{read.cut:,} tools have a schema that is cut: it is too large")
        names = [operation.name for operation in read.operations]
        notes += (
            f"the pattern {pattern!r} matches no operation"
            for pattern in (*api.allow, *api.deny)
            if not any(name_is_denied(name, api.name, (pattern,)) for name in names)
        )
        self._notes = [f"openapi {api.name}: {note}" for note in notes]
        for note in self._notes:
            _log.warning("%s", note)
        if read.deprecated:
            _log.info("openapi %s: %s deprecated operations left out", api.name, read.deprecated)

    # ---- its life

    async def __aenter__(self) -> Self:
        """Open it: a document at an address is asked for, and waited for a while."""
        self._users += 1
        if self._fetching is None and not self._is_there and self._api.problem is None:
            self._tried = asyncio.Event()
            self._fetching = asyncio.create_task(self._fetch(), name=f"openapi {self.name}")
            with suppress(TimeoutError):
                async with asyncio.timeout(_OPENING):
                    await self._tried.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it: no connection stays behind."""
        self._users -= 1
        if self._users:
            return
        if self._fetching is not None:
            self._fetching.cancel()
            with suppress(asyncio.CancelledError):
                await self._fetching
            self._fetching = None
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _fetch(self) -> None:
        """Ask for the document until it is there."""
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(_FETCHING):
                    content = await self._fetched()
                # Reading hundreds of operations takes a while, in which others have business.
                await asyncio.to_thread(self._take_text, content)
                self._listeners.tell()
                self._tried.set()
                return
            except ConfigError as error:
                self._cause = "its document cannot be used"
                self._told = str(error)
                _log.warning("openapi %s: %s", self.name, error)
            except (TimeoutError, SourceError) as error:
                self._cause = str(error) or "its document did not come in time"
                self._told = self._cause
                _log.warning("openapi %s: its document: %s", self.name, self._cause)
            self._tried.set()
            wait = self._retries[min(attempt, len(self._retries) - 1)]
            attempt += 1
            self._next_try = time.monotonic() + wait
            await asyncio.sleep(wait)

    async def _fetched(self) -> bytes:
        """Return the document at its address."""
        import httpx2

        from toolfold.sources.openapi._http_client import HttpClient
        from toolfold.sources.openapi._requests import HttpRequest
        from toolfold.sources.openapi.api_document import SIZE_LIMIT

        api = self._api
        is_own = not api.base_url or origin_of(api.base_url) == origin_of(api.url)
        client = HttpClient(
            api.url,
            headers=api.headers if is_own else {},
            timeout=_FETCHING,
            limit=SIZE_LIMIT + 1,
            transport=self._transport,
        )
        try:
            answer = await client.send(HttpRequest("GET", api.url, {"accept": "*/*"}))
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            raise SourceError(_why(error)) from None
        finally:
            await client.aclose()
        if answer.leads_to:
            raise SourceError(f"its address leads to the host {answer.leads_to}: give that one")
        if answer.status != 200:
            raise SourceError(f"its address answers {answer.status}")
        return answer.content

    # ---- calls

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        """Send a call to the API and return what it answers."""
        import httpx2

        from toolfold.sources.openapi._answers import output_of_answer
        from toolfold.sources.openapi._requests import CannotSendError, request_of

        shown = context.call.tool.shown_name
        operation = self._operations.get(tool.name)
        if operation is None or self._credentials is None:
            return Output(prompts.not_available(shown, ()), is_error=True)
        try:
            request = request_of(operation, arguments)
        except CannotSendError as error:
            return Output(http_calls.cannot_send(shown, str(error)), is_error=True)
        credentials = self._credentials.of(operation)
        client = self._client or self._connected(operation)
        if self._users:
            self._client = client  # who did not open it will not close it either
        try:
            answer = await client.send(request, credentials)
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            is_before = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            may_have_run = operation.method != "GET" and not is_before
            raise ApiUnreachableError(_why(error), may_have_run=may_have_run) from None
        finally:
            if client is not self._client:
                await client.aclose()
        return output_of_answer(
            answer,
            operation,
            shown,
            source=self.name,
            missing=self._credentials.missing(operation),
            redact=self._redacted,
            fits=None if operation.output is None else _fits(operation.output),
        )

    def _connected(self, operation: Operation) -> HttpClient:
        from toolfold.sources.openapi._http_client import HttpClient

        api = self._api
        return HttpClient(
            operation.server,
            headers=api.headers,
            timeout=api.timeout,
            limit=api.response_limit,
            public_only=not api.base_url and not api.url,
            transport=self._transport,
        )

    def _redacted(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MARK)
        return text


def _tool(source: str, name: str, operation: Operation) -> Tool:
    record: dict[str, Json] = {
        "name": name,
        "description": operation.description,
        "inputSchema": operation.schema,
        "annotations": _annotations(operation.method),
    }
    if operation.title:
        record["title"] = operation.title
    if operation.output is not None:
        record["outputSchema"] = operation.output
    return Tool(
        name,
        operation.description,
        operation.schema,
        source=source,
        aliases=operation.tags,
        annotations=record["annotations"],
        title=operation.title or None,
        shape="mcp",
        raw=record,
        size=len(compact(record)),
        own_name=operation.name,
    )


def _annotations(method: str) -> dict[str, Json]:
    """Return what a method promises: what HTTP says of it, and no more."""
    if method == "GET":
        return {"readOnlyHint": True}
    if method == "DELETE":
        return {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}
    return {"readOnlyHint": False, **({"idempotentHint": True} if method == "PUT" else {})}


def _document(given: Mapping[str, Json] | str | bytes, label: str) -> ApiDocument:
    if isinstance(given, str | bytes):
        return read_document(given, label)
    return checked_document(given, label)


def _read_file(api: HttpApi) -> ApiDocument:
    path = api.path
    assert path is not None
    try:
        with path.open("rb") as file:
            content = file.read(64 * 1024 * 1024)
    except OSError as error:
        raise DocumentError(
            f"cannot read `{path}`: {error.strerror}", hint=f"check `openapi.{api.name}.file`"
        ) from None
    return read_document(content, str(path))


def _fits(schema: Mapping[str, Json]) -> Callable[[Json], bool]:
    """Return what says whether a value is as a schema has it; a useless schema says nothing."""

    def fits(value: Json) -> bool:
        import jsonschema_rs

        try:
            return jsonschema_rs.is_valid(dict(schema), value, offline=True)
        except (ValueError, TypeError, RecursionError):
            return True

    return fits


def _why(error: Exception) -> str:
    """Return why no answer came, in words that hold no address."""
    import httpx2

    from toolfold.sources.openapi._http_client import NotPublicError

    if isinstance(error, NotPublicError | httpx2.StreamError):
        return one_line(str(error), 200)
    if isinstance(error, httpx2.TimeoutException):
        return "it did not answer in time"
    if isinstance(error, httpx2.ConnectError):
        return "the API cannot be reached"
    if isinstance(error, httpx2.InvalidURL):
        return "the address that the arguments come to cannot be used"
    return "the connection broke"


def _check_extra() -> None:
    from importlib.util import find_spec

    if find_spec("httpx2") is None:
        raise MissingExtraError("calling an HTTP API", "openapi")
