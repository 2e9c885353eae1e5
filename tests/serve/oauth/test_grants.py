"""What the claims of a token are worth: never more than the grants that it has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Scope, Tool
from toolfold.config.oauth_settings import Grant, OAuthSettings
from toolfold.serve.oauth.grants import NoGrantError, granted

TOOLS = [
    Tool(f"{source}__{verb}_{what}", source=source, annotations={"readOnlyHint": verb == "get"})
    for source in ("github", "jira")
    for verb in ("get", "put")
    for what in ("issue", "secret")
]
PATTERNS = st.lists(
    st.sampled_from(["*", "@github", "@jira", "*secret*", "*get*", "github__get_*"]), max_size=2
).map(tuple)


@st.composite
def grants(draw: st.DrawFn) -> tuple[Grant, ...]:
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True))
    return tuple(Grant(name, draw(PATTERNS), draw(PATTERNS), draw(st.booleans())) for name in names)


def settings(grants: tuple[Grant, ...], **more: Any) -> OAuthSettings:
    usual: dict[str, Any] = {"issuer": "https://login.example", "resource": "https://x.example/mcp"}
    return OAuthSettings(**usual, grants=grants, **more)


def admitted(grant: Grant) -> set[str]:
    scope = Scope(grant.allow, grant.deny)
    return {t.name for t in TOOLS if t in scope and (t.is_read_only or not grant.read_only)}


@given(grants(), st.lists(st.sampled_from("abcdx"), max_size=4), st.sampled_from("abcd"))
def test_no_token_opens_more_than_its_grants(
    grants: tuple[Grant, ...], held: list[str], default: str
) -> None:
    names = [grant.name for grant in grants]
    oauth = settings(grants, default=default if default in names else "")
    own = [grant for grant in grants if grant.name in held]
    own = own or [grant for grant in grants if grant.name == oauth.default]
    claims: dict[str, Any] = {"sub": "a", "scope": " ".join(held)}

    if not own:
        with pytest.raises(NoGrantError):
            granted(claims, oauth)
        return
    principal = granted(claims, oauth)
    seen = {tool.name for tool in TOOLS if principal.admits(tool)}
    assert seen <= set[str]().union(*map(admitted, own))
    if len(own) == 1:
        assert seen == admitted(own[0])
    assert not principal.watches or admitted(Grant("all")) == seen


def test_a_reader_who_is_also_a_writer_may_write() -> None:
    oauth = settings((Grant("readers", ("@github",), read_only=True), Grant("writers")))

    both = granted({"sub": "a", "scope": "readers writers"}, oauth)

    assert all(both.admits(tool) for tool in TOOLS)
    assert both.watches


def test_several_grants_add_up_and_what_one_denies_is_denied() -> None:
    oauth = settings((Grant("a", ("@github",), ("*secret*",)), Grant("b", ("@jira",))))

    both = granted({"sub": "a", "scope": "a b"}, oauth)

    assert {t.name for t in TOOLS if both.admits(t)} == {
        "github__get_issue",
        "github__put_issue",
        "jira__get_issue",
        "jira__put_issue",
    }
