"""What a scope is to the database: the same as to everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.postgres import APP
from toolfold import Scope, Tool
from toolfold.scope import plain
from toolfold.shared._scopes import scope_filter
from toolfold.store.postgres.migrations import migrate

LETTERS = st.sampled_from(list("abAB_-.*?[]!@\\^$(){}|+éÉß \u212a"))
PATTERNS = st.lists(
    st.one_of(
        st.just("*"),
        st.text(LETTERS, max_size=6),
        st.text(LETTERS, max_size=4).map(lambda t: f"@{t}"),
        st.tuples(st.text(LETTERS, max_size=3), st.text(LETTERS, max_size=3)).map("__".join),
        st.text(LETTERS, max_size=3).map(lambda t: f"mcp__{t}__*"),
    ),
    max_size=3,
).map(tuple)
NAMES = st.text(LETTERS, min_size=1, max_size=5).filter(str.strip)


@st.composite
def tools(draw: st.DrawFn) -> Tool:
    source = draw(st.none() | NAMES)
    name = draw(NAMES)
    if source is not None:
        name = draw(st.sampled_from([f"{source}__{name}", f"mcp__{source}__{name}", name]))
    return Tool(
        name,
        source=source,
        toolset=draw(st.none() | NAMES),
        own_name=draw(st.just("") | NAMES),
    )


@st.composite
def scopes(draw: st.DrawFn) -> Scope:
    scope = Scope(draw(PATTERNS), draw(PATTERNS))
    return scope.narrow(allow=draw(PATTERNS), deny=draw(PATTERNS)) if draw(st.booleans()) else scope


@pytest.fixture(scope="module")
def connection(empty_database: Callable[[], tuple[str, str]]) -> Iterator[psycopg.Connection]:
    owner, _ = empty_database()
    with psycopg.connect(owner, autocommit=True) as opened:
        migrate(opened, APP)
        yield opened


@given(tool=tools(), scope=scopes())
@settings(
    max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_database_holds_a_tool_in_a_scope_where_the_scope_does(
    connection: psycopg.Connection, tool: Tool, scope: Scope
) -> None:
    from psycopg.types.json import Jsonb

    toolset, source = tool.toolset_name, tool.source or ""
    left = scope_filter(scope, {source: [] if toolset is None else [toolset]})
    found = left.sources is None or source in left.sources
    if found and left.levels is not None:
        row = connection.execute(
            "select toolfold.in_scope(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                tool.name, source, tool.bare_name, toolset, bool(tool.own_name),
                plain(tool.name), plain(source), plain(tool.bare_name),
                None if toolset is None else plain(toolset), Jsonb(left.levels),
            ),
        ).fetchone()  # fmt: skip
        assert row is not None
        found = row[0]

    assert found == (tool in scope)
