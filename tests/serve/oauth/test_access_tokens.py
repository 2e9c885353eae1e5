"""Access tokens of an issuer at the gateway's door: which are taken, and what refusals say."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from support.issuers import RESOURCE, Issuer, issuer, private_key, public_jwk
from support.running import wait
from toolfold import ConfigError
from toolfold.config.oauth_settings import ALGORITHMS, Grant, OAuthSettings
from toolfold.config.serve_settings import ServeSettings, Token
from toolfold.serve.http.guard import Guard, check_bind
from toolfold.serve.principals import TokenTable, principal_of

METADATA = "http://127.0.0.1:8765/.well-known/oauth-protected-resource/mcp"
OWN = "a-token-of-our-own-configuration"


@pytest.fixture
def made() -> Iterator[Issuer]:
    with issuer() as found:
        yield found


async def behind(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    """Says who came through the door."""
    who = principal_of(scope)
    body = json.dumps([who.name, who.scope.allow, who.read_only, who.tenant]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def door(made: Issuer, serve: dict[str, Any] | None = None, **oauth: Any) -> Guard:
    values: dict[str, Any] = {
        "issuer": made.url,
        "resource": RESOURCE,
        "grants": (Grant("tools"),),
        "leeway": 0,
        "refetch": 0,
        **oauth,
    }
    settings = ServeSettings(oauth=OAuthSettings(**values), **(serve or {}))
    return Guard.of(behind, settings, "127.0.0.1")


async def asked(guard: Guard, token: str | None, path: str = "/mcp") -> httpx2.Response:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    transport = httpx2.ASGITransport(app=guard)  # pyright: ignore[reportArgumentType]
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as http:
        return await http.get(path, headers=headers)


def ask(guard: Guard, token: str | None, path: str = "/mcp") -> httpx2.Response:
    return wait(asked(guard, token, path))


def test_a_token_of_the_issuer_lets_its_bearer_in_by_their_subject(made: Issuer) -> None:
    answer = ask(door(made), made.token())

    assert answer.json() == ["oauth:alice", ["*"], False, "default"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_asymmetric_way_of_signing_is_taken(made: Issuer, algorithm: str) -> None:
    made.publish("one", algorithm=algorithm)

    assert ask(door(made), made.token(algorithm=algorithm)).status_code == 200


def test_the_gateways_own_tokens_are_taken_beside_them(made: Issuer) -> None:
    own = Token("laptop", sha256=hashlib.sha256(OWN.encode()).hexdigest(), allow=("@one",))
    guard = door(made, {"tokens": (own,)})

    assert ask(guard, OWN).json()[:2] == ["laptop", ["@one"]]
    assert ask(guard, made.token()).json()[0] == "oauth:alice"
    assert ask(guard, f"{OWN}x").status_code == 401


def test_a_request_without_a_token_is_told_where_to_get_one(made: Issuer) -> None:
    guard = door(made, scopes=("tools",))

    refused = ask(guard, None)
    assert (refused.status_code, refused.text) == (401, "a token is needed\n")
    said = f'Bearer scope="tools", resource_metadata="{METADATA}"'
    assert refused.headers["www-authenticate"] == said
    for path in ("", "/mcp"):
        page = ask(guard, None, f"/.well-known/oauth-protected-resource{path}")
        assert page.headers["content-type"] == "application/json"
        assert page.json() == {
            "resource": RESOURCE,
            "authorization_servers": [made.url],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["tools"],
        }
    assert ask(guard, None, "/.well-known/oauth-protected-resource/other").status_code == 404
    assert ask(guard, None, "/.well-known/oauth-authorization-server").status_code == 404


def unsigned(made: Issuer, **header: Any) -> str:
    return ".".join((_part({"alg": "none", **header}), _part(made.claims()), ""))


def _part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def with_the_public_key(made: Issuer) -> str:
    """A token signed with what everybody may know, as if it were a secret."""
    public = private_key("ES256", ord("o") + ord("n") + ord("e")).public_key()
    known = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    signed = f"{_part({'alg': 'HS256', 'kid': 'one', 'typ': 'JWT'})}.{_part(made.claims())}"
    mac = hmac.new(known, signed.encode(), "sha256").digest()
    return f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def with_a_key_of_its_own(made: Issuer) -> str:
    """A token that brings the key that it is signed with."""
    own = private_key("ES256", 99)
    header = {"jwk": public_jwk(own), "jku": f"{made.url}/mine", "x5u": f"{made.url}/mine"}
    return made.token(key=own, header=header)


def tampered(made: Issuer) -> str:
    header, _, signature = made.token().split(".")
    return ".".join((header, _part(made.claims(sub="root")), signature))


now = time.time
BAD: dict[str, tuple[Callable[[Issuer], str], str]] = {
    "expired": (lambda made: made.token(exp=int(now()) - 1), "the token has expired"),
    "not yet": (lambda made: made.token(nbf=int(now()) + 60), "the token is not valid yet"),
    "from the future": (lambda made: made.token(iat=int(now()) + 60), "the token is not valid yet"),
    "audience": (
        lambda made: made.token(aud=f"{RESOURCE}/"),
        "the token is for another audience",
    ),
    "audiences": (
        lambda made: made.token(aud=["https://other.example", RESOURCE.upper()]),
        "the token is for another audience",
    ),
    "issuer": (lambda made: made.token(iss=f"{made.url}/"), "the token is another issuer's"),
    "no end": (
        lambda made: made.token(exp=None),
        "the token lacks one of exp, iss, aud and sub",
    ),
    "no audience": (
        lambda made: made.token(aud=None),
        "the token lacks one of exp, iss, aud and sub",
    ),
    "nobody": (lambda made: made.token(sub=None), "the token lacks one of exp, iss, aud and sub"),
    "an odd name": (lambda made: made.token(sub="a\nb"), "the token's sub is not taken"),
    "an empty name": (lambda made: made.token(sub=""), "the token's sub is not taken"),
    "another key": (
        lambda made: made.token(key=private_key("ES256", 99)),
        "the token's signature or form is wrong",
    ),
    "an unknown key": (
        lambda made: made.token("two"),
        "the token is signed with an unknown key",
    ),
    "none": (unsigned, "the token is signed in a way that is not taken"),
    "None": (
        lambda made: unsigned(made, alg="None", kid="one"),
        "the token is signed in a way that is not taken",
    ),
    "the public key": (with_the_public_key, "the token is signed in a way that is not taken"),
    "another algorithm": (
        lambda made: made.token(algorithm="RS256"),
        "the token is signed with an unknown key",
    ),
    "a key of its own": (with_a_key_of_its_own, "the token's signature or form is wrong"),
    "tampered": (tampered, "the token's signature or form is wrong"),
    "of another kind": (
        lambda made: made.token(header={"typ": "logout+jwt"}),
        "the token is of another kind",
    ),
    "critical": (
        lambda made: made.token(header={"crit": ["x"], "x": 1}),
        "the token is no JWT",
    ),
    "bound to a key": (
        lambda made: made.token(cnf={"jkt": "x"}),
        "the token is bound to a key, and came without its proof",
    ),
    "an endless end": (
        lambda made: made.token(exp=float("inf")),
        "the token's signature or form is wrong",
    ),
    "no token": (lambda made: "not-a-token-at-all", "the token is not known"),
    "dots": (lambda made: "a.b.c", "the token is no JWT"),
    "deep": (
        lambda made: ".".join(
            (base64.urlsafe_b64encode(b"[" * 9_000).decode().rstrip("="), "", "")
        ),
        "the token is no JWT",
    ),
    "too long": (lambda made: made.token(more="x" * 20_000), "the token is too long"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_token_that_is_not_good_is_refused_with_the_reason(made: Issuer, kind: str) -> None:
    bad, reason = BAD[kind]
    guard = door(made)

    refused = ask(guard, bad(made))

    assert refused.status_code == 401
    assert refused.text.replace("`", "") == f"{reason}\n"
    header = refused.headers["www-authenticate"]
    assert header.startswith(f'Bearer error="invalid_token", error_description="{reason}", ')
    assert f'resource_metadata="{METADATA}"' in header
    assert f"{made.url}/mine" not in made.asked and "/mine" not in made.asked
    assert ask(guard, made.token()).status_code == 200


def test_clocks_may_differ_by_the_leeway_and_no_more(made: Issuer) -> None:
    guard = door(made, leeway=30)

    assert ask(guard, made.token(exp=int(now()) - 10)).status_code == 200
    assert ask(guard, made.token(nbf=int(now()) + 10)).status_code == 200
    assert ask(guard, made.token(exp=int(now()) - 60)).status_code == 401


def test_an_algorithm_that_is_not_configured_is_not_taken(made: Issuer) -> None:
    assert ask(door(made, algorithms=("RS256",)), made.token()).status_code == 401


def test_another_audience_can_be_named_and_then_the_address_is_none(made: Issuer) -> None:
    guard = door(made, audience=("api://tools",))

    assert ask(guard, made.token(aud=["x", "api://tools"])).status_code == 200
    assert ask(guard, made.token()).status_code == 401


# ---- what a token is worth

READERS = Grant("readers", allow=("@github",), read_only=True)
WRITERS = Grant("writers", allow=("@github", "@jira"), deny=("*secret*",))


def test_scopes_and_groups_are_worth_what_the_configuration_says(made: Issuer) -> None:
    guard = door(made, grants=(READERS, WRITERS), claims=("scope", "scp", "groups", "a.roles"))

    def worth(**claims: Any) -> Any:
        return ask(guard, made.token(scope=claims.pop("scope", None), **claims)).json()[1:3]

    assert worth(scope="openid readers") == [["@github"], True]
    assert worth(scp=["writers"]) == [["@github", "@jira"], False]
    assert worth(groups=["x", "readers"]) == [["@github"], True]
    assert worth(a={"roles": ["readers", 7, None]}) == [["@github"], True]
    assert worth(groups="readers") == [["@github"], True]


@pytest.mark.parametrize(
    "claims",
    [
        {"scope": None},
        {"scope": "*"},
        {"scope": "Readers"},
        {"scope": "readers,writers"},
        {"scope": {"readers": True}},
        {"scope": ["readers "]},
        {"groups": ["readers"]},
        {"allow": ["*"], "scope": ""},
    ],
)
def test_a_token_without_a_known_scope_is_let_in_no_further(
    made: Issuer, claims: dict[str, Any]
) -> None:
    refused = ask(door(made, grants=(READERS,), scopes=("readers",)), made.token(**claims))

    assert refused.status_code == 403
    header = refused.headers["www-authenticate"]
    assert header.startswith('Bearer error="insufficient_scope", ')
    assert 'scope="readers"' in header and f'resource_metadata="{METADATA}"' in header


def test_who_has_no_known_scope_may_get_a_default_and_never_more(made: Issuer) -> None:
    guard = door(made, grants=(READERS, WRITERS), default="readers")

    assert ask(guard, made.token(scope="what")).json()[1:3] == [["@github"], True]
    assert ask(guard, made.token(scope="writers")).json()[1] == ["@github", "@jira"]


def test_read_only_for_everybody_holds_for_bearers_too(made: Issuer) -> None:
    assert ask(door(made, {"read_only": True}), made.token()).json()[2] is True


def test_the_tenant_is_kept(made: Issuer) -> None:
    guard = door(made, tenant="org.id")

    assert ask(guard, made.token(org={"id": "acme"})).json()[3] == "acme"
    assert ask(guard, made.token()).json()[3] == "default"
    assert ask(guard, made.token(org={"id": 7})).status_code == 401


def test_metrics_are_for_those_who_may_know_of_everything(made: Issuer) -> None:
    guard = door(made, grants=(Grant("tools"), READERS))

    assert ask(guard, made.token(), "/metrics").status_code == 200
    assert ask(guard, made.token(scope="readers"), "/metrics").status_code == 404


# ---- what is written down


def test_no_log_shows_a_token(made: Issuer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    guard = door(made)
    tokens = [bad(made) for bad, _ in BAD.values()] + [made.token(scope="")]

    for token in tokens:
        ask(guard, token)

    assert "refused a request: the token has expired" in caplog.text
    for token in tokens:
        assert not any(part in caplog.text for part in token.split(".") if len(part) > 20)


# ---- the configuration


def test_with_an_issuer_an_address_that_others_reach_can_be_served(made: Issuer) -> None:
    oauth = OAuthSettings(issuer=made.url, resource=RESOURCE, grants=(Grant("tools"),))

    check_bind("0.0.0.0", ServeSettings(oauth=oauth))
    assert not TokenTable.of(ServeSettings(oauth=oauth)).is_open


def test_no_token_of_the_configuration_has_the_name_of_a_bearer(made: Issuer) -> None:
    own = Token("oauth:alice", sha256=hashlib.sha256(OWN.encode()).hexdigest())

    with pytest.raises(ConfigError, match="named like somebody whom the issuer knows"):
        door(made, {"tokens": (own,)})


def test_a_weak_key_and_one_for_something_else_verify_nothing(made: Issuer) -> None:
    weak = rsa.generate_private_key(65537, 1024)
    good = private_key("ES256", 5)
    made.keys = [
        public_jwk(weak, kid="weak"),
        public_jwk(good, kid="sealing", use="enc"),
        public_jwk(good, kid="signing", key_ops=["sign"]),
        {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "shared"},
        {"kty": "EC", "crv": "P-256", "x": "!", "y": "?", "kid": "broken"},
        *({"kty": kind} for kind in (7, None, "EC", "RSA", "OKP")),
        public_jwk(good, kid="fine"),
    ]
    guard = door(made)

    with pytest.warns(jwt.InsecureKeyLengthWarning):
        weakly = made.token("weak", "RS256", key=weak)
    assert ask(guard, weakly).status_code == 401
    for kid in ("sealing", "signing", "broken"):
        assert ask(guard, made.token(kid, key=good)).status_code == 401
    assert ask(guard, made.token("fine", key=good)).status_code == 200


def test_a_token_that_names_no_key_is_taken_where_there_is_but_one(made: Issuer) -> None:
    guard = door(made)
    assert ask(guard, made.token(None)).status_code == 200

    made.publish("one", "two")
    assert ask(door(made), made.token(None)).status_code == 401


def test_a_name_that_two_keys_have_is_neithers(made: Issuer) -> None:
    other = private_key("ES256", 77)
    made.keys.append(public_jwk(other, kid="one"))

    assert ask(door(made), made.token(key=other)).status_code == 401
    assert ask(door(made), made.token()).status_code == 401
