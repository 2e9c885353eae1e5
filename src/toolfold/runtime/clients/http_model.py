"""What the clients of model servers share: key, address, headers, connections, the stream.

A client says which API it speaks (`ModelApi`) and makes the body of a request; everything else
stands here.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import ClassVar, Self

from toolfold.redact import Redactor
from toolfold.runtime.clients._endpoint import Endpoint, address, header_value, secrets_in
from toolfold.runtime.clients._exchange import ModelExchange, ReplyReader, Sleep
from toolfold.runtime.clients._failure import Failure
from toolfold.runtime.model import Reply, Request, TextDelta
from toolfold.tool import Json, ProviderApi, Shape

__all__ = ["TIMEOUT_SECONDS", "HttpModel", "ModelApi"]

TIMEOUT_SECONDS = 600.0
"""How long a server may be silent: a local one reads a long prompt for minutes."""


@dataclass(frozen=True, slots=True)
class ModelApi:
    """What tells one API of models from another."""

    title: str
    """Whose it is, for errors."""

    path: str
    """Where requests go, below the base URL."""

    shape: Shape
    """The wire shape in which it takes tools."""

    reader: Callable[[], ReplyReader]
    """Makes what puts a reply together."""

    key_variable: str
    """The environment variable with the key."""

    key_header: str
    key_prefix: str = ""
    """What stands before the key in its header."""

    provider_api: ProviderApi | None = None
    """What it is called where providers defer tools; None where none does."""

    limits: tuple[str, ...] = ("max_tokens",)
    """The fields that may limit a reply."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is always sent along."""


class HttpModel(ABC):
    """A model behind an API.

    Args:
        model: The model's name.
        base_url: The API's address.
        api_key: The key; by default that of the API's variable, if it is set.
        headers: Headers to send along.
        timeout: How many seconds the server may be silent.
        retries: How often a request is tried again where that may help.
        context_length: The model's context window, in tokens.
        parameters: Further fields of the request.
        sleep: What waits between attempts.

    Raises:
        ConfigError: The base URL, the key or a header cannot be used.
        MissingExtraError: The `agent` extra is not installed.
    """

    api: ClassVar[ModelApi]

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = 4,
        context_length: int | None = None,
        parameters: Mapping[str, Json] | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        api = self.api
        self.context_length = context_length
        self._model = model
        self._parameters = dict(parameters or {})
        key = api_key if api_key is not None else os.environ.get(api.key_variable, "")
        key = header_value(key, "the API key")
        own = {api.key_header: f"{api.key_prefix}{key}"} if key else {}
        given = {
            name: header_value(v, f"the header {name!r}") for name, v in (headers or {}).items()
        }
        sent = {**api.headers, **own, **given}
        self._endpoint = Endpoint(
            address(base_url, api.path),
            sent,
            timeout=timeout,
            needs=f"the {api.title} client",
            key_hint=f"set {api.key_variable}, or give another key",
        )
        redactor = Redactor([key, *secrets_in(sent)])
        self._exchange = ModelExchange(
            self._endpoint, model, redactor, retries, sleep, self.origin, self._adapted
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r}, at {self._endpoint.place!r})"

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    @property
    def shape(self) -> Shape:
        """The wire shape in which it takes tools."""
        return self.api.shape

    @property
    def provider_api(self) -> ProviderApi | None:
        """The API that it speaks, where one of its kind may defer tools."""
        return self.api.provider_api

    @property
    def host(self) -> str:
        """The host that serves it."""
        return self._endpoint.host

    @property
    def address(self) -> str:
        """The address that it is asked at."""
        return self._endpoint.place

    @property
    def origin(self) -> str:
        """Who writes its replies: the API, the host and the model."""
        return f"{self.api.shape} {self.host} {self._model}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. A later request opens new ones."""
        await self._endpoint.aclose()

    def stream(self, request: Request) -> AsyncGenerator[TextDelta | Reply, None]:
        """Yield the reply's text as it comes, then the `Reply`.

        Close the iterator where it is not read to its end; the server is told.

        Raises:
            ModelError: The model cannot be reached, or refuses the request.
        """
        body = self._body(request)
        limits = (body.get(name) for name in self.api.limits)
        limit = next((value for value in limits if isinstance(value, int)), 0)
        headers: Mapping[str, str] = {} if request.folded is None else request.folded.headers
        return self._exchange.stream(
            body, self._reader(request), limit or request.max_tokens, headers
        )

    @abstractmethod
    def _body(self, request: Request) -> dict[str, Json]:
        """Return the body of a request."""

    def _reader(self, request: Request) -> Callable[[], ReplyReader]:
        """Return what makes the readers of a reply to a request."""
        return self.api.reader

    def _adapted(self, body: Json, failure: Failure) -> Json | None:
        """Return the body that a server which refused this one may take, or None."""
        return None
