"""A server that knows an API by its document alone, and checks every request by it.

openapi-core reads the request on the server's side: it finds the operation, takes each
parameter apart by its style, and validates parameters and body by their schemas.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from openapi_core import Config, OpenAPI
from openapi_core.datatypes import RequestParameters
from openapi_core.validation.request.exceptions import ParameterValidationError
from werkzeug.datastructures import Headers, ImmutableMultiDict

from openapi_documents.brackets import FORM, as_json, nested


class JudgedRequest:
    """A request as openapi-core wants it.

    Args:
        host: The server's address.
        method: The method.
        target: Path and query, as they came.
        headers: The headers, by name in small letters.
        body: The body.
        whole: The parameter whose properties are pairs of their own; openapi-core wants them
            under its name.
        segment: What openapi-core calls the last segment of the path, where it has to be told.
        is_nested: Whether names in brackets are read here.
    """

    def __init__(
        self,
        host: str,
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes,
        *,
        whole: str = "",
        segment: str = "",
        is_nested: bool = False,
    ) -> None:
        parts = urlsplit(target)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        self.content_type = headers.get("content-type", "").strip()
        cookies = [(n, m.value) for n, m in SimpleCookie(headers.get("cookie", "")).items()]
        if whole:
            pairs = [(whole, unquote(parts.query))]
            cookies = [(whole, "&".join(f"{n}={v}" for n, v in cookies))]
        if is_nested:
            plain = [pair for pair in pairs if "[" not in pair[0]]
            deep = nested(pair for pair in pairs if "[" in pair[0])
            pairs = [*plain, *((name, json.dumps(value)) for name, value in deep.items())]
            if self.content_type == FORM:
                form = parse_qsl(body.decode(), keep_blank_values=True)
                body, self.content_type = json.dumps(nested(form)).encode(), "application/json"
        self.host_url = host
        self.path = parts.path
        self.full_url_pattern = f"{host}{parts.path}"
        self.method = method.lower()
        self.body = body or None
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(pairs),
            header=Headers(list(headers.items())),
            cookie=ImmutableMultiDict(cookies),
            # Of `label` and `matrix`, openapi-core looks for `.color*` and `;color`.
            path={segment: unquote(parts.path.rpartition("/")[2])} if segment else {},
        )


def _without_servers(item: dict[str, Any]) -> dict[str, Any]:
    return {
        key: {k: v for k, v in value.items() if k != "servers"}
        if isinstance(value, dict)
        else value
        for key, value in item.items()
        if key != "servers"
    }


class Judge:
    """What is known of an API, and what it was asked."""

    def __init__(self, document: dict[str, Any]) -> None:
        # Whatever may be sent says what it is, and what is sent here is JSON.
        text = json.dumps(document)
        self._document = json.loads(text.replace('"*/*": {', '"application/json": {'))
        self._apis: dict[str, OpenAPI] = {}
        self.host = ""
        self.path = ""
        self.whole = self.segment = ""
        self.unjudged = 0
        """How many requests openapi-core itself failed over, as it does over lists of types."""
        self.is_nested = '"deepObject"' in text and FORM in text
        self.verdicts: list[str | None] = []

    def _item(self, path: str) -> dict[str, Any]:
        item = _without_servers(self._document["paths"][path])
        return as_json(item) if self.is_nested else item

    def of(self, path: str, request: JudgedRequest) -> str | None:
        """Return what is wrong with a request of a path, or None."""
        api = self._apis.get(path)
        if api is None:
            # With one path, finding it takes no time; which one it is, is known.
            alone = {
                **self._document,
                "servers": [{"url": self.host}],
                "paths": {path: self._item(path)},
            }
            config = Config(
                spec_validator_cls=None,
                extra_media_type_deserializers={"application/merge-patch+json": json.loads},
            )
            api = self._apis[path] = OpenAPI.from_dict(alone, config=config)
        try:
            api.validate_request(request)
        except TypeError:
            self.unjudged += 1
        except Exception as error:
            if isinstance(error, ParameterValidationError) and "read-only" in str(error.__cause__):
                # A parameter that says it is only read contradicts itself: so does GitHub's.
                self.unjudged += 1
                return None
            return f"{type(error).__name__}: …{str(error.__cause__ or error)[-300:]}"
        return None


@contextmanager
def judging(document: dict[str, Any]) -> Iterator[tuple[str, Judge]]:
    """Run a server that judges requests; `judge.path` is the path that the next is of."""
    judge = Judge(document)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {key.lower(): value for key, value in self.headers.items()}
            request = JudgedRequest(
                judge.host,
                self.command,
                self.path,
                headers,
                body,
                whole=judge.whole,
                segment=judge.segment,
                is_nested=judge.is_nested,
            )
            judge.verdicts.append(judge.of(judge.path, request))
            content = json.dumps({"ok": judge.verdicts[-1] is None}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = _answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        judge.host = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield judge.host, judge
        finally:
            server.shutdown()
