"""`serve: oauth:` in a file: read, and refused where it would let in more than was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolfold import ConfigError
from toolfold.config.gateway_config import load_gateway
from toolfold.config.oauth_settings import ALGORITHMS, Grant, OAuthSettings

GOOD = """
serve:
  oauth:
    issuer: https://login.example/realms/one
    resource: https://tools.example/mcp
    claims: [scope, realm_access.roles]
    leeway: 5
    default: readers
    grants:
      - name: readers
        allow: ["@github"]
        read_only: true
      - name: writers
"""


def read(tmp_path: Path, text: str) -> OAuthSettings | None:
    file = tmp_path / "toolfold.yaml"
    file.write_text(text, "utf-8")
    return load_gateway(file, {}).serve.oauth


def test_the_block_is_read_from_the_file(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD) == OAuthSettings(
        issuer="https://login.example/realms/one",
        resource="https://tools.example/mcp",
        claims=("scope", "realm_access.roles"),
        leeway=5,
        default="readers",
        grants=(Grant("readers", ("@github",), read_only=True), Grant("writers")),
    )


def test_by_default_a_token_is_for_the_gateways_own_address(tmp_path: Path) -> None:
    oauth = read(tmp_path, GOOD)

    assert oauth is not None
    assert oauth.audiences == ("https://tools.example/mcp",)
    assert oauth.algorithms == ALGORITHMS


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("issuer: https:", "isuer: https:", "unknown key `serve.oauth.isuer`"),
        ("    issuer: https://login.example/realms/one\n", "", "`serve.oauth` has no `issuer`"),
        ("    resource: https://tools.example/mcp\n", "", "`serve.oauth` has no `resource`"),
        ("issuer: https:", "issuer: http:", "which is not encrypted"),
        ("https://tools.example/mcp", "http://tools.example/mcp", "which is not encrypted"),
        ("https://tools.example/mcp", "tools.example/mcp", "is no address"),
        ("https://tools.example/mcp", "https://a@tools.example/mcp", "is no address"),
        ("https://tools.example/mcp", "https://[::1/mcp", "is no address"),
        ("leeway: 5", "leeway: 3000", "`serve.oauth.leeway` is 3000"),
        ("leeway: 5", "algorithms: [HS256]", "`serve.oauth.algorithms` has 'HS256'"),
        ("leeway: 5", "algorithms: [none]", "`serve.oauth.algorithms` has 'none'"),
        ("leeway: 5", "algorithms: []", "`serve.oauth.algorithms` is empty"),
        ("leeway: 5", "scopes: ['a\"b']", "`serve.oauth.scopes` has"),
        ("leeway: 5", "jwks_uri: http://keys.example/", "which is not encrypted"),
        ("default: readers", "default: reader", "`serve.oauth.default` is 'reader'"),
        ("name: writers", "name: readers", "two grants are named 'readers'"),
        ("name: writers", "allow: [a]", "a grant has no `name`"),
        ("name: writers", "named: a", "unknown key `serve.oauth.grants.named`"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, GOOD.replace(old, new))

    assert message in caught.value.message
    assert "toolfold.yaml" in caught.value.message


@pytest.mark.parametrize("empty", ["oauth:", "oauth: {}", "oauth: true", "oauth: []"])
def test_an_empty_block_does_not_leave_the_door_open(tmp_path: Path, empty: str) -> None:
    with pytest.raises(ConfigError, match="oauth"):
        read(tmp_path, f"serve:\n  {empty}\n")


def test_an_issuer_without_grants_is_refused() -> None:
    with pytest.raises(ConfigError, match="nobody would be let in"):
        OAuthSettings(issuer="https://login.example", resource="https://tools.example/mcp")
