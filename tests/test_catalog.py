"""The catalog: an ordered snapshot with unique names, known by its content."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from support.outcomes import answered, invoked
from support.strategies import lists_of
from toolfold import Catalog, NameClashError, Settings, Tool, UnknownToolError, fold

ON = Settings(enabled="on", ranker="bm25")


def test_two_tools_of_one_name_are_refused_with_both_owners() -> None:
    with pytest.raises(NameClashError) as caught:
        Catalog([Tool("read", source="files"), Tool("read", source="mail")])

    assert str(caught.value) == (
        "two tools are named 'read': one from source 'files', one from source 'mail'"
    )
    assert caught.value.hint == "rename one of them, or leave one out with a scope"
    assert caught.value.owners == ("source 'files'", "source 'mail'")


def test_the_same_tool_twice_is_a_clash_too() -> None:
    tool = Tool("read")

    with pytest.raises(NameClashError) as caught:
        fold([tool, tool])

    assert caught.value.owners == ("the Python list", "the Python list")


def test_two_names_that_are_one_on_the_wire_are_refused() -> None:
    dotted = Tool("files.read", source="files")

    with pytest.raises(NameClashError) as caught:
        Catalog([dotted, Tool(dotted.wire_name, source="other")])

    assert caught.value.name == "files_read_a3da5b20"
    assert caught.value.owners == ("source 'files'", "source 'other'")


@pytest.mark.parametrize("name", ["tool_search", "tool_describe", "tool_call"])
def test_a_hosts_own_tool_with_the_name_of_a_bridge_tool_is_refused_where_there_is_a_bridge(
    name: str,
) -> None:
    tools = [{"name": name, "description": "Mine."}]

    assert fold(tools).tools == tools
    with pytest.raises(NameClashError) as caught:
        fold(tools, settings=ON)

    assert str(caught.value) == (
        f"two tools are named '{name}': one from the plain list, one from toolfold's bridge"
    )
    assert caught.value.hint == ("rename the tool, or the bridge with the setting `bridge_prefix`")


def test_a_clash_outside_the_scope_is_none() -> None:
    from toolfold import Scope

    tools = [Tool("read", source="a"), Tool("read", source="b")]

    folded = fold(tools, scope=Scope(allow=("@b",)))

    assert [tool.source for tool in folded.catalog] == ["b"]


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    catalog = Catalog([Tool("create_issue"), Tool("close_issue"), Tool("send_mail")])

    with pytest.raises(UnknownToolError) as caught:
        catalog["create_isue"]

    assert str(caught.value) == "no tool named 'create_isue'"
    assert caught.value.hint == "did you mean 'create_issue'?"
    assert caught.value.near == ("create_issue",)


def test_near_names_are_found_in_a_catalog_of_any_size() -> None:
    catalog = Catalog([Tool(f"tool_{i}") for i in range(2000)] + [Tool("create_issue")])

    assert catalog.near("create_isue") == ("create_issue",)
    assert catalog.near("") == ()
    assert catalog.near("x" * 10_000) == ()


def test_a_bare_name_means_its_tool_where_it_is_unique_and_runs_it_nowhere_else() -> None:
    catalog = Catalog(
        [
            Tool("mcp__github__create_issue", source="github"),
            Tool("gitlab.fork", source="gitlab"),
            Tool("mail/send", source="mail"),
        ]
    )

    assert catalog.find("github.create_issue") is catalog["mcp__github__create_issue"]
    for name, means in {
        "create_issue": "mcp__github__create_issue",
        "fork": "gitlab.fork",
        "send": "mail/send",
        "Create Issue": "mcp__github__create_issue",
    }.items():
        assert catalog.find(name) is None
        assert catalog.meant(name) is catalog[means]


def test_a_bare_name_that_two_tools_share_finds_none() -> None:
    catalog = Catalog([Tool("a.read", source="a"), Tool("b.read", source="b")])

    assert catalog.find("read") is None
    assert catalog.find("a.read") is catalog["a.read"]


def test_a_full_name_wins_over_a_bare_one() -> None:
    catalog = Catalog([Tool("a.read", source="a"), Tool("read", source="b")])

    assert catalog.find("read") is catalog["read"]


def test_a_name_of_punctuation_is_found_by_itself_alone() -> None:
    catalog = Catalog([Tool("...")])

    assert catalog.find("...") is catalog["..."]
    assert catalog.find("!!!") is None
    assert catalog.find("") is None


def test_a_bare_name_does_not_run_at_the_one_source_that_a_scope_leaves() -> None:
    from toolfold import Scope

    tools = [Tool("a.read", source="a"), Tool("b.read", source="b")]

    folded = fold(tools, settings=ON, scope=Scope(allow=("@b",)))
    answer = answered(folded.resolve("tool_call", {"name": "read"}))

    assert answer.text == '"read" is not available in this session. Did you mean b.read?'
    alone = fold(tools[1:], settings=ON)
    assert invoked(alone.resolve("tool_call", {"name": "read"})).tool.name == "b.read"


@given(lists_of("plain"))
def test_the_fingerprint_is_one_of_content(items: list[Any]) -> None:
    one = Catalog.read(items)
    same = Catalog.read(copy.deepcopy(items))
    changed = copy.deepcopy(items)
    changed[0]["description"] += "!"
    turned = Catalog.read(items[::-1])

    assert one == same and hash(one) == hash(same)
    assert one != Catalog.read(changed)
    assert (one == turned) == (len(items) == 1)


def test_a_dict_changed_in_place_is_noticed() -> None:
    tools: list[Any] = [
        {"name": "a", "description": "Send a letter.", "parameters": {"type": "object"}},
        {"name": "b", "description": "Read a book.", "parameters": {"type": "object"}},
    ]
    before = fold(tools, settings=ON)
    assert answered(before.resolve("tool_search", {"query": "letter"})).hits[0].name == "a"

    tools[1]["description"] = "Post a parcel."
    tools[0]["parameters"]["properties"] = {"to": {"type": "string"}}
    tools[0]["parameters"]["required"] = ["to"]
    after = fold(tools, settings=ON)

    found = answered(after.resolve("tool_search", {"query": "parcel"}))
    assert [hit.name for hit in found.hits] == ["b"]
    assert answered(after.resolve("tool_search", {"query": "book"})).hits == ()
    found = answered(after.resolve("tool_search", {"query": "letter"}))
    assert found.hits[0].signature == "a(to: string)"
    assert answered(after.resolve("tool_call", {"name": "a", "arguments": {}})).is_error
    # What was folded before is a value: it answers as it did.
    found = answered(before.resolve("tool_search", {"query": "book"}))
    assert [hit.name for hit in found.hits] == ["b"]
    assert not hasattr(before.resolve("tool_call", {"name": "a", "arguments": {}}), "is_error")


@given(lists_of("openai-chat"))
def test_equal_content_in_other_objects_gives_equal_results(items: list[Any]) -> None:
    one, other = fold(items, settings=ON), fold(copy.deepcopy(items), settings=ON)
    ask = {"query": " | ".join(one.catalog.names)}

    assert one.tools == other.tools
    assert one.report == other.report
    assert one.resolve("tool_search", ask) == other.resolve("tool_search", ask)


def test_a_tool_is_a_value() -> None:
    parameters = {"type": "object", "properties": {"b": {}, "a": {}}}
    turned = {"properties": {"a": {}, "b": {}}, "type": "object"}

    assert Tool("a", "x", parameters) == Tool("a", "x", turned)
    assert hash(Tool("a", "x", parameters)) == hash(Tool("a", "x", turned))
    assert Tool("a") != Tool("a", source="s")
    assert Tool("a", source="s").toolset_name == "s"
    assert Tool("a", source="s", toolset="t").toolset_name == "t"


def test_a_dict_given_to_a_tool_and_changed_later_does_not_reach_it() -> None:
    parameters: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    tool = Tool("x", "", parameters)

    parameters["properties"]["a"]["type"] = "integer"

    assert tool.parameters == {"type": "object", "properties": {"a": {"type": "string"}}}


def test_a_catalog_reads_like_a_sequence_of_tools() -> None:
    catalog = Catalog([Tool("b", source="y"), Tool("a", source="x"), Tool("c", source="y")])

    assert len(catalog) == 3
    assert catalog.names == ("b", "a", "c")
    assert [tool.name for tool in catalog] == ["b", "a", "c"]
    assert "a" in catalog and "z" not in catalog
    assert dict(catalog.sources) == {"x": 1, "y": 2}
    assert repr(catalog).startswith("<Catalog of 3 tools, ")
