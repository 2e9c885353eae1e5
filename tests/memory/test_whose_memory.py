"""Whose searches count: nothing of one caller's reaches another who shares nothing."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from support.memories import UNSEEN, found_first, opaque_tools, teach
from toolfold import Tool
from toolfold.catalog import Catalog
from toolfold.dispatch.learning import Learning
from toolfold.memory import Memory, Use
from toolfold.search import index_of
from toolfold.search.hybrid import Hybrid

TOOLS = [
    Tool(f"{source}__{verb}_{thing}", f"{verb} a {thing} of {source}.", source=source)
    for source in ("mail", "forge")
    for verb in ("send", "open", "list")
    for thing in ("letter", "issue", "report")
]
WHOLE = Catalog(TOOLS)
PART = Catalog([tool for tool in TOOLS if tool.source == "mail"])
QUERIES = ("drop somebody a line", "what is broken", "the weekly numbers", "send a letter")

uses = st.lists(
    st.tuples(st.sampled_from(QUERIES), st.integers(0, 99), st.sampled_from(TOOLS)),
    min_size=8,
    max_size=30,
)


def found(memory: Memory, principal: str, query: str, catalog: Catalog) -> list[tuple[int, float]]:
    matches = index_of(catalog.tools, catalog.fingerprint, Hybrid()).search(query, 10)
    told = memory.of(principal).weighed(query, matches, catalog).matches
    return [(match.position, match.score) for match in told]


def taught(memory: Memory, principal: str, told: list[tuple[str, int, Tool]]) -> None:
    for query, number, tool in told:
        memory.learn(Use(f"{query} {number}", tool.name, tool.digest, principal=principal))
    memory.flush()


@given(told=uses)
@settings(max_examples=10)
def test_anothers_searches_change_nothing_where_nothing_is_shared(
    told: list[tuple[str, int, Tool]],
) -> None:
    memory, empty = Memory(None, share="principal"), Memory(None)
    taught(memory, "ann", told)

    for query in QUERIES:
        assert found(memory, "bob", query, WHOLE) == found(empty, "bob", query, WHOLE)
    memory.close()


@given(told=uses)
@settings(max_examples=10)
def test_shared_searches_show_nothing_that_is_not_in_the_catalog(
    told: list[tuple[str, int, Tool]],
) -> None:
    memory = Memory(None, share="all")
    taught(memory, "ann", told)

    for query in QUERIES:
        places = [place for place, _ in found(memory, "bob", query, PART)]
        assert len(set(places)) == len(places)
        assert all(0 <= place < len(PART) for place in places)
    memory.close()


def test_a_tool_that_says_something_else_now_has_no_record() -> None:
    memory, empty = Memory(None), Memory(None)
    changed = [Tool(tool.name, "Something else.", source=tool.source) for tool in TOOLS]
    taught(memory, "ann", [(QUERIES[0], i, TOOLS[5]) for i in range(20)])

    for query in QUERIES:
        told = found(memory, "ann", query, Catalog(changed))
        assert told == found(empty, "ann", query, Catalog(changed))
    memory.close()


def test_what_one_caller_learns_names_no_tool_that_only_another_was_shown() -> None:
    memory = Memory(None, share="principal")
    query, tool = "what is broken", PART["mail__list_report"]
    found(memory, "bob", query, PART)
    found(memory, "ann", query, WHOLE)  # the same words, a moment later
    memory.learn(Use(query, tool.name, tool.digest, principal="bob"))
    memory.flush()

    (record,) = memory.records()

    assert record.principal == "bob"
    assert {name for (name, _), _ in record.ranked} <= set(PART.names)
    memory.close()


def test_each_tenant_learns_for_itself_in_a_file_of_its_own(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory.sqlite", share="all", tell=lambda _: None)
    teach(memory.for_tenant("acme"))
    memory.close()

    again = Memory(tmp_path / "memory.sqlite", share="all")
    assert found_first(again.of("bob", "acme")) == len(UNSEEN)
    assert found_first(again.of("bob", "rival")) <= 1
    assert found_first(again.of("bob")) <= 1
    assert [file.suffix for file in tmp_path.glob("memory*.sqlite")] == [".sqlite"]
    again.close()


def test_what_one_tenants_session_searched_for_teaches_no_other_tenant() -> None:
    memory, tool = Memory(), opaque_tools()[0]
    learning = Learning(memory)
    for tenant in ("acme", "rival"):  # the same names in both
        own = learning.for_tenant(tenant)
        if tenant == "acme":
            own.asked("ann", "s", "book a flight", [("book a flight", tool.name)])
        own.used("ann", "s", (tool.name, tool.digest), worked=True)
    for tenant, size in (("acme", 1), ("rival", 0), ("default", 0)):
        memory.for_tenant(tenant).flush()
        assert memory.for_tenant(tenant).size == size
