"""A fold over a shared catalog, beside the fold of the same tools in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest
from bench import data
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.postgres import APP, Postgres
from toolfold import Answer, Catalog, Invocation, Scope, Session, Settings, Tool, fold
from toolfold.demo import demo_catalog
from toolfold.errors import ConfigError
from toolfold.folded import Folded
from toolfold.shared import SharedCatalog
from toolfold.shared_fold import fold_shared
from toolfold.store.postgres.migrations import migrate
from toolfold.store.store import StoreAwayError

DEMO = [
    tool.with_annotations({"readOnlyHint": True})
    if tool.bare_name.startswith(("get", "list", "search"))
    else tool
    for tool in demo_catalog().tools
]
ALWAYS = Settings(enabled="on")


@pytest.fixture(scope="module")
def database(empty_database: Callable[[], tuple[str, str]]) -> str:
    owner, app = empty_database()
    with psycopg.connect(owner, autocommit=True) as connection:
        migrate(connection, APP)
    return app


@pytest.fixture(scope="module")
def demo(database: str) -> Iterator[SharedCatalog]:
    with SharedCatalog(database, tenant="demo") as catalog:
        catalog.push(DEMO)
        yield catalog


def asked(folded: Folded, query: str) -> Answer:
    answer = folded.resolve("tool_search", {"query": query})
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize("name", ["deploy-226", "seal-500"])
def test_answers_are_those_of_the_embedded_fold_to_the_letter(database: str, name: str) -> None:
    if data.corpora() is None:
        pytest.skip("the corpora are absent")
    tools = list(Catalog.read(list(data.catalog(name).tools)).tools)
    embedded = fold(tools, settings=ALWAYS)
    queries = [
        *data.queries("short", 30),
        *data.queries("long", 10),
        *(tool.name for tool in tools[:: len(tools) // 6]),
        *(tool.bare_name.replace("_", " ") for tool in tools[3 :: len(tools) // 6]),
        "send an email | book a flight | zzz qqq",
        "fax a document to the moon",
    ]
    with SharedCatalog(database, tenant=name) as catalog:
        catalog.push(tools)
        shared = fold_shared(catalog, shape="plain")

        assert shared.tools == embedded.tools
        for query in queries:
            assert plainly(asked(shared, query)) == plainly(asked(embedded, query)), query


WORDS = ["create", "issue", "Issue", "send", "mail", "forge", "flight", "today", "search", "zzz"]
TEXTS = st.lists(
    st.sampled_from([*WORDS, "|", "__", "_", ".", "-", '"', "`", "\0", "\ud800", "é"]), max_size=6
)
NAMES = st.one_of(
    st.sampled_from([tool.name for tool in DEMO]),
    st.sampled_from([tool.bare_name for tool in DEMO]),
    st.sampled_from([tool.name.replace("__", ".").upper() for tool in DEMO]),
    st.sampled_from([f'"{tool.bare_name.replace("_", " ")}"' for tool in DEMO]),
    TEXTS.map("".join),
    TEXTS.map(" ".join),
)


@given(text=NAMES, role=st.sampled_from(["tool_search", "tool_describe", "tool_call", ""]))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_a_model_writes_the_two_answer_alike(
    demo: SharedCatalog, text: str, role: str
) -> None:
    embedded, shared = fold(DEMO, settings=ALWAYS), fold_shared(demo)
    arguments = {"query": text} if role == "tool_search" else {"name": text}

    one = embedded.resolve(role or text, arguments)
    other = shared.resolve(role or text, arguments)

    if isinstance(one, Answer) and one.is_error and "Did you mean" in one.text:
        # How a name that nothing has is spelt is learnt from the names that a search finds.
        assert isinstance(other, Answer) and other.is_error
    else:
        assert plainly(other) == plainly(one)


def plainly(resolved: Answer | Invocation) -> tuple[object, ...]:
    """What a host and a model are told; scores are the same but for their last digits."""
    if isinstance(resolved, Invocation):
        return resolved.tool, resolved.arguments, resolved.via, resolved.session
    hits = [(hit.tool, hit.need, hit.shown) for hit in resolved.hits]
    return resolved.text, resolved.is_error, hits, resolved.tools, resolved.meant, resolved.session


@pytest.mark.parametrize(
    "scope",
    [
        Scope(allow=("@forge", "@mail")),
        Scope(allow=("*",), deny=("@forge",)),
        Scope(allow=("forge__*",), deny=("*delete*",)),
        Scope(allow=()),
    ],
    ids=["toolsets", "denied", "names", "nothing"],
)
def test_nothing_of_what_a_scope_leaves_out_is_told(demo: SharedCatalog, scope: Scope) -> None:
    shared = fold_shared(demo, scope=scope)
    within = [tool for tool in DEMO if tool in scope]
    outside = [tool.name for tool in DEMO if tool not in scope]

    assert shared.report.deferred == len(within)
    for query in ("open an issue", "delete a repository", "send an email", "qqq zzz"):
        answer = asked(shared, query)
        assert {hit.name for hit in answer.hits} <= {tool.name for tool in within}
        assert not [name for name in outside if name in answer.text]
    for name in outside[:5]:
        unknown = shared.resolve("tool_call", {"name": name})
        assert isinstance(unknown, Answer) and unknown.is_error
        assert unknown.meant is None
        described = shared.resolve("tool_describe", {"name": name})
        assert isinstance(described, Answer) and not described.tools


def test_for_a_reader_there_are_the_tools_that_change_nothing(demo: SharedCatalog) -> None:
    shared = fold_shared(demo, read_only=True)

    assert 0 < shared.report.deferred == sum(tool.is_read_only for tool in DEMO) < len(DEMO)
    assert all(hit.tool.is_read_only for hit in asked(shared, "delete a message").hits)


def test_of_sources_that_cannot_be_called_there_is_nothing(demo: SharedCatalog) -> None:
    shared = fold_shared(demo, sources=["mail"])

    assert {hit.source for hit in asked(shared, "open an issue in a repository").hits} <= {"mail"}
    assert shared.report.deferred == sum(tool.source == "mail" for tool in DEMO)


def test_a_call_comes_to_the_tool_with_its_arguments_checked(demo: SharedCatalog) -> None:
    shared = fold_shared(demo)
    tool = next(tool for tool in DEMO if tool.parameters.get("required"))

    wrong = shared.resolve("tool_call", {"name": tool.name, "arguments": {}})
    assert isinstance(wrong, Answer) and wrong.meant == tool

    free = next(tool for tool in DEMO if not tool.parameters.get("required"))
    called = shared.resolve("tool_call", {"name": free.name, "arguments": {}})
    assert isinstance(called, Invocation)
    assert (called.tool, called.via) == (free, "tool_call")


def test_a_core_tool_is_listed_called_directly_and_not_found(demo: SharedCatalog) -> None:
    core = next(tool for tool in DEMO if tool.source == "mail" and "send" in tool.name)
    embedded = fold(DEMO, settings=ALWAYS, core=[core.name])
    shared = fold_shared(demo, core=[core.name])

    assert next(tool["function"]["name"] for tool in shared.tools) == core.name
    assert len(shared.tools) == 4
    assert shared.report.deferred == embedded.report.deferred == len(DEMO) - 1
    assert core.name not in [hit.name for hit in asked(shared, "send an email").hits]
    refused = shared.resolve("tool_call", {"name": core.name, "arguments": {}})
    assert refused == embedded.resolve("tool_call", {"name": core.name, "arguments": {}})
    direct = shared.resolve(core.name, {})
    assert isinstance(direct, Invocation) and direct.tool == core


def test_what_the_host_says_of_a_tool_counts(demo: SharedCatalog) -> None:
    tool = next(tool for tool in DEMO if tool.is_read_only)
    hints = {tool.name: {"readOnlyHint": False}}
    shared = fold_shared(demo, settings=Settings(annotations=hints))

    called = shared.resolve("tool_describe", {"name": tool.name})

    assert isinstance(called, Answer) and not called.tools[0].is_read_only


def test_where_folding_is_off_a_shared_catalog_says_that_it_cannot_be_shown(
    demo: SharedCatalog,
) -> None:
    with pytest.raises(ConfigError, match="cannot be shown whole"):
        fold_shared(demo, settings=Settings(enabled="off"))


def test_an_empty_catalog_is_folded_and_finds_nothing(address: str) -> None:
    with SharedCatalog(address) as catalog:
        shared = fold_shared(catalog)
        before = asked(shared, "open an issue")
        catalog.push(DEMO)

        assert not before.hits and not before.is_error
        assert asked(shared, "open an issue").hits


def test_among_many_names_of_the_same_letters_the_one_that_is_meant_is_called(
    address: str,
) -> None:
    between = ["_", "-", ".", "/", ":", " ", "__", "--", "..", "_-", "-_", ""]
    tools = [Tool(f"do{sign}it", f"Number {i}.") for i, sign in enumerate(between)]
    tools.append(Tool("❄"))
    with SharedCatalog(address) as catalog:
        catalog.push(tools)
        shared = fold_shared(catalog)

        for tool in tools:
            called = shared.resolve("tool_call", {"name": tool.name, "arguments": {}})
            assert isinstance(called, Invocation) and called.tool == tool
        several = shared.resolve("tool_call", {"name": "DO+IT", "arguments": {}})
        assert isinstance(several, Answer) and several.is_error


def test_a_change_is_there_with_the_next_call(address: str) -> None:
    with SharedCatalog(address) as catalog:
        catalog.push(DEMO[:20])
        shared = fold_shared(catalog)
        lamp = Tool("lamp__switch", "Switch a lamp on or off.", source="lamp")
        catalog.push([lamp])

        assert asked(shared, "switch the lamp on").hits[0].tool == lamp
        catalog.remove([lamp.name])
        gone = shared.resolve("tool_call", {"name": lamp.name})
        assert isinstance(gone, Answer) and gone.is_error


def test_a_tool_that_waits_for_a_person_is_not_there_until_it_is_pushed_again(
    address: str,
) -> None:
    lamp = Tool("lamp__switch", "Switch a lamp on or off.", source="lamp")
    with SharedCatalog(address) as catalog:
        catalog.push([*DEMO[:20], lamp], waiting=[lamp.name])
        shared = fold_shared(catalog)

        assert catalog.find(lamp.name) is None
        assert "lamp__switch" not in asked(shared, "switch the lamp on").text
        assert shared.report.deferred == 20
        assert [source.name for source in catalog.sources()] == sorted(
            {tool.source or "" for tool in DEMO[:20]}
        )
        again = catalog.push([lamp])
        assert (again.added, again.changed) == (0, 1)
        assert asked(shared, "switch the lamp on").hits[0].tool == lamp
        held = catalog.push([lamp], waiting=[lamp.name])
        assert held.changed == 1
        assert catalog.find(lamp.name) is None
        assert catalog.remove([lamp.name]) == 1


def test_while_the_database_is_away_what_was_found_can_be_called(
    postgres_alone: tuple[Postgres, str],
) -> None:
    postgres, address = postgres_alone
    with SharedCatalog(address) as catalog:
        catalog.push(DEMO)
        shared = fold_shared(catalog)
        found = asked(shared, "list the open issues").hits[0].tool
        postgres.stop("immediate")
        away = asked(shared, "send an email")
        described = shared.resolve("tool_describe", {"name": found.name})
        known = shared.resolve("tool_call", {"name": found.name, "arguments": {}})
        unknown = shared.resolve("tool_call", {"name": "mail__nothing", "arguments": {}})
        again = fold_shared(catalog, lenient=True, before=shared)
        narrower = fold_shared(catalog, lenient=True, before=shared, sources=["mail"])
        with pytest.raises(StoreAwayError):
            fold_shared(catalog)
        postgres.start()

        assert away.is_error and "cannot be reached now" in away.text
        assert isinstance(described, Answer) and described.text == away.text
        assert isinstance(known, Invocation) or known.meant == found
        assert isinstance(unknown, Answer) and unknown.text == away.text
        assert again.tools == shared.tools
        assert narrower.report.deferred == 0
        end = time.monotonic() + 20
        while not asked(shared, "send an email").hits:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_a_conversation_goes_on_with_the_session_that_came_back(demo: SharedCatalog) -> None:
    shared = fold_shared(demo)
    session = Session()
    for _ in range(3):
        answer = shared.resolve("tool_search", {"query": "qqq zzz"}, session=session)
        session = answer.session

    assert session.fruitless == 3
    assert shared.for_session(session).tools == shared.tools
