"""An HTTP API as a source: the operations of its OpenAPI document are its tools.

A document in a file is read when the source is made, and one that cannot be used is an error
then. One at an address is fetched when the source is opened; until it is there the source is
absent, and is tried again by itself. Later it is asked for again now and then, and the last
one that can be used stays. Calls go to one origin, within bounds of time and bytes.
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
from toolfold._json_values import Json
from toolfold.absent import AbsentSource
from toolfold.errors import ConfigError, MissingExtraError
from toolfold.prompts import http_calls, plural
from toolfold.redact import MARK
from toolfold.sources._listeners import Listeners
from toolfold.sources.calls import CallContext, Output
from toolfold.sources.openapi._credentials import Credential, Signer
from toolfold.sources.openapi._loaded_api import LoadedApi, load_api
from toolfold.sources.openapi.api_document import (
    ApiDocument,
    DocumentError,
    checked_document,
    read_document,
)
from toolfold.sources.openapi.http_api import HttpApi
from toolfold.sources.openapi.operation import Operation
from toolfold.sources.source import Bounds, Source, SourceError
from toolfold.tool import Tool

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

    from toolfold.sources.openapi._document_address import DocumentAddress
    from toolfold.sources.openapi._http_client import HttpAnswer, HttpClient
    from toolfold.sources.openapi._requests import HttpRequest

__all__ = ["ApiUnreachableError", "OpenAPISource"]

DESCRIPTION_LIMIT = 4_000
"""The longest description that is passed on where nothing else is said."""

RETRIES = (2.0, 5.0, 15.0, 60.0, 300.0)
"""The seconds between attempts to fetch a document; the last stays."""

_OPENING = 10.0

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
        self._loaded: LoadedApi | None = None
        self._stale: str | None = None
        self._secrets = sorted(api.credentials, key=len, reverse=True)
        self._client: HttpClient | None = None
        self._users = 0
        self._fetching: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self._cause: str | None = None
        self._told: str | None = None
        self._next_try = 0.0
        self._address: DocumentAddress | None = None
        if api.problem is not None:
            self._cause, self._told = "its configuration cannot be used", str(api.problem)
        elif document is not None:
            label = api.file or api.url or api.name
            self._take(self._load(_document(document, label)))
        elif api.path is not None:
            self._take(self._load(_read_file(api)))
        elif not api.url:
            raise ConfigError(f"`openapi.{api.name}` has no document", hint="give `file` or `url`")

    # ---- what is there

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools: none where the document is not there yet."""
        return () if self._loaded is None else self._loaded.tools

    def bounds(self, tool: Tool) -> Bounds:
        """Return what bounds the calls of a tool."""
        return Bounds(timeout=self._api.timeout)

    def absence(self) -> AbsentSource | None:
        """Return why there are no tools yet, and when the document is asked for again."""
        if self._loaded is not None:
            return None
        left = None
        if self._fetching is not None:
            left = max(self._next_try - time.monotonic(), 0.0)
        return AbsentSource(self.name, self._cause, left)

    @property
    def operations(self) -> Mapping[str, Operation]:
        """The operations behind the tools, by the tools' names."""
        return MappingProxyType({} if self._loaded is None else dict(self._loaded.operations))

    @property
    def problem(self) -> str | None:
        """Why it has no tools, for a person; None where it has, or is still waited for."""
        return None if self._loaded is not None else self._told

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person may want to know of a document that can be used all the same."""
        notes = () if self._loaded is None else self._loaded.notes
        return notes if self._stale is None else (*notes, self._stale)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a listener called when the tools have changed; return what ends that."""
        return self._listeners.add(listener)

    def _load_text(self, content: bytes) -> LoadedApi:
        return self._load(read_document(content, self._api.url))

    def _load(self, document: ApiDocument) -> LoadedApi:
        return load_api(
            self._api,
            document,
            description_limit=self._limit,
            before=self._loaded,
            transport=self._transport,
        )

    def _take(self, loaded: LoadedApi) -> None:
        """Serve what a document came to from now on."""
        before, self._loaded = self._loaded, loaded
        self._cause = self._stale = self._told = None
        if before is None or before.notes != loaded.notes:
            for note in loaded.notes:
                _log.warning("%s", note)
        if loaded.deprecated and before is None:
            _log.info("openapi %s: %s deprecated operations left out", self.name, loaded.deprecated)

    # ---- its life

    async def __aenter__(self) -> Self:
        """Open it: a document at an address is asked for, and waited for a while."""
        self._users += 1
        if self._fetching is None and self._may_fetch:
            self._tried = asyncio.Event()
            self._fetching = asyncio.create_task(self._fetch(), name=f"openapi {self.name}")
            if self._loaded is None:
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
        if self._loaded is not None:
            for tokens in self._loaded.credentials.tokens.values():
                await tokens.aclose()
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    @property
    def _may_fetch(self) -> bool:
        """Whether there is a document to ask for, now or later."""
        api = self._api
        if not api.url or api.problem is not None:
            return False
        return self._loaded is None or (self._address is not None and api.refresh > 0)

    async def _fetch(self) -> None:
        """Ask for the document until it is there, and then again now and then."""
        from toolfold.sources.openapi._document_address import DocumentAddress

        if self._address is None:
            self._address = DocumentAddress(self._api, self._transport)
        address, attempt = self._address, 0
        while True:
            is_had = await self._fetch_once(address)
            self._tried.set()
            refresh = self._api.refresh
            if is_had and not refresh:
                return
            wait = self._retries[min(attempt, len(self._retries) - 1)]
            if is_had:
                attempt, wait = 0, refresh
            else:
                attempt += 1
                wait = min(wait, refresh) if self._loaded is not None and refresh else wait
            self._next_try = time.monotonic() + wait
            await asyncio.sleep(wait)

    async def _fetch_once(self, address: DocumentAddress) -> bool:
        """Ask for the document; return whether there is one that can be used."""
        from toolfold.sources.openapi._document_address import FETCHING

        try:
            async with asyncio.timeout(FETCHING):
                content = await address.fetch()
            if content is not None:
                # Reading hundreds of operations takes a while, in which others have business.
                loaded = await asyncio.to_thread(self._load_text, content)
                before = self._loaded
                address.use()
                self._take(loaded)
                if before is None or not loaded.is_same(before):
                    _log.info("openapi %s: %s", self.name, plural(len(loaded.tools), "tool"))
                    self._listeners.tell()
            self._stale = self._told = None
            return True
        except ConfigError as error:
            self._miss("its document cannot be used", str(error))
        except (TimeoutError, SourceError) as error:
            cause = str(error) or "its document did not come in time"
            self._miss(cause, cause)
        return False

    def _miss(self, cause: str, told: str) -> None:
        """Take note that a document did not come, or cannot be used; say it once."""
        is_news, self._told = told != self._told, told
        if self._loaded is None:
            self._cause = cause
            if is_news:
                _log.warning("openapi %s: its document: %s", self.name, told)
            return
        self._stale = f"openapi {self.name}: the last document is used, since: {told}"
        if is_news:
            _log.warning("%s", self._stale)

    # ---- calls

    async def call(self, tool: Tool, arguments: Mapping[str, Json], context: CallContext) -> Any:
        """Send a call to the API and return what it answers."""
        import httpx2

        from toolfold.sources.openapi._answers import output_of_answer
        from toolfold.sources.openapi._document_address import why_no_answer
        from toolfold.sources.openapi._requests import CannotSendError, request_of

        shown = context.call.tool.shown_name
        loaded = self._loaded
        operation = None if loaded is None else loaded.operations.get(tool.name)
        if loaded is None or operation is None:
            return Output(prompts.not_available(shown, ()), is_error=True)
        try:
            request = request_of(operation, arguments)
        except CannotSendError as error:
            return Output(http_calls.cannot_send(shown, str(error)), is_error=True)
        client = self._client or self._connected(operation)
        if self._users:
            self._client = client  # who did not open it will not close it either
        try:
            answer = await _answered(client, request, loaded.credentials.of(operation))
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            is_before = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            may_have_run = operation.method != "GET" and not is_before
            raise ApiUnreachableError(why_no_answer(error), may_have_run=may_have_run) from None
        finally:
            if client is not self._client:
                await client.aclose()
        return output_of_answer(
            answer,
            operation,
            shown,
            source=self.name,
            missing=loaded.credentials.missing(operation),
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
        tokens = () if self._loaded is None else self._loaded.credentials.tokens.values()
        for secret in (*(s for each in tokens for s in each.secrets), *self._secrets):
            text = text.replace(secret, MARK)
        return text


async def _answered(
    client: HttpClient, request: HttpRequest, signers: Sequence[Signer]
) -> HttpAnswer:
    """Return what a request is answered with; an access token that is refused is renewed once."""
    credentials = [s if isinstance(s, Credential) else await s.credential() for s in signers]
    answer = await client.send(request, credentials)
    if answer.status != 401:
        return answer
    renewed = list(credentials)
    for place, signer in enumerate(signers):
        if not isinstance(signer, Credential):
            renewed[place] = await signer.refused(credentials[place]) or credentials[place]
    return answer if renewed == credentials else await client.send(request, renewed)


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


def _check_extra() -> None:
    from importlib.util import find_spec

    if find_spec("httpx2") is None:
        raise MissingExtraError("calling an HTTP API", "openapi")
