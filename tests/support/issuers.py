"""An issuer of access tokens on loopback: its metadata, its keys, and tokens of any kind."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

RESOURCE = "http://127.0.0.1:8765/mcp"


@cache
def _rsa_key(number: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@cache
def private_key(algorithm: str, number: int = 0) -> Any:
    """A key for an algorithm; the same one for the same number."""
    if algorithm.startswith("ES"):
        curve = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}[algorithm]
        return ec.generate_private_key(curve())
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return _rsa_key(number)


def public_jwk(key: Any, **more: Any) -> dict[str, Any]:
    """A key's public half, as an issuer publishes it."""
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        made = RSAAlgorithm.to_jwk(public, as_dict=True)
    elif isinstance(public, ec.EllipticCurvePublicKey):
        made = ECAlgorithm.to_jwk(public, as_dict=True)
    else:
        made = OKPAlgorithm.to_jwk(public, as_dict=True)
    return {**made, "use": "sig", **more}


@dataclass
class Issuer:
    """Publishes keys and signs tokens."""

    url: str = ""
    path: str = ""
    """What stands behind its host, as a realm."""

    is_away: bool = False
    keys: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What it publishes."""

    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """What its metadata say beside what they must, or in its place."""

    asked: list[str] = field(default_factory=list[str])
    given: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """What clients asked it for, at its token endpoint."""

    def publish(self, *names: str, algorithm: str = "ES256") -> None:
        """Publish these keys and no others; a key is another one by another name."""
        self.keys = [
            public_jwk(private_key(algorithm, _number(name)), kid=name, alg=algorithm)
            for name in names
        ]

    def claims(self, **more: Any) -> dict[str, Any]:
        """What a good token says; None takes a claim out."""
        now = int(time.time())
        usual = {
            "iss": self.url,
            "aud": RESOURCE,
            "sub": "alice",
            "iat": now,
            "exp": now + 600,
            "scope": "tools",
        }
        return {key: value for key, value in {**usual, **more}.items() if value is not None}

    def token(
        self,
        kid: str | None = "one",
        algorithm: str = "ES256",
        *,
        key: Any = None,
        header: Mapping[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """A token; a good one, as far as nothing else is said."""
        signing = key if key is not None else private_key(algorithm, _number(kid or "one"))
        names = {"typ": "at+jwt", **({} if kid is None else {"kid": kid}), **(header or {})}
        return jwt.encode(self.claims(**claims), signing, algorithm, headers=names)

    def answer(self, path: str) -> tuple[int, Any]:
        """What it says at a path."""
        self.asked.append(path)
        if self.is_away:
            return 503, {}
        if path == f"/.well-known/oauth-authorization-server{self.path}":
            usual = {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/keys",
                "token_endpoint": f"{self.url}/token",
                "authorization_endpoint": f"{self.url}/authorize",
                "response_types_supported": ["code"],
            }
            return 200, {**usual, **self.metadata}
        if path == f"{self.path}/keys":
            return 200, {"keys": self.keys}
        return 404, {}

    clients: dict[str, str] = field(default_factory=dict[str, str])
    """The secrets of the clients that it knows, by id; where it knows none, it takes anybody."""

    scopes: frozenset[str] = frozenset()
    """The scopes that it knows; where it knows none, it takes any."""

    life: int = 600
    """For how many seconds the tokens are good that it gives."""

    refused: list[str] = field(default_factory=list[str])

    def refusal(
        self, authorization: str | None, form: Mapping[str, list[str]]
    ) -> tuple[int, Any] | None:
        """Say no to a client that it does not know, or to what it asks for."""
        if not self.clients:
            return None
        client, secret = form.get("client_id", [""])[0], form.get("client_secret", [""])[0]
        if authorization is not None:
            given = base64.b64decode(authorization.removeprefix("Basic ")).decode()
            client, _, secret = map(unquote, given.partition(":"))
        wanted = set(form.get("scope", [""])[0].split())
        said = None
        if not secret or self.clients.get(client) != secret:
            # Some repeat what they were sent.
            said = 401, {"error": "invalid_client", "error_description": f"no {client} {secret}"}
        elif self.scopes and not wanted <= self.scopes:
            said = 400, {"error": "invalid_scope"}
        if said is not None:
            self.refused.append(said[1]["error"])
        return said

    def grant(self, form: Mapping[str, list[str]]) -> Any:
        """Give a client the token that it asks for, for the resource that it names."""
        asked = {name: values[0] for name, values in form.items()}
        self.given.append(asked)
        token = self.token(
            aud=asked.get("resource"),
            scope=asked.get("scope", ""),
            sub="robot",
            exp=int(time.time()) + self.life,
            jti=str(len(self.given)),
        )
        return {"access_token": token, "token_type": "Bearer", "expires_in": self.life}


def _number(name: str) -> int:
    return sum(map(ord, name))


@contextmanager
def issuer(path: str = "") -> Iterator[Issuer]:
    """An issuer that listens, with one key."""
    made = Issuer(path=path)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(*made.answer(self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            refusal = made.refusal(self.headers.get("authorization"), parse_qs(body.decode()))
            if refusal is not None:
                self._say(*refusal)
            else:
                self._say(200, made.grant(parse_qs(body.decode())))

        def _say(self, status: int, value: Any) -> None:
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_port}{path}"
    made.publish("one")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
