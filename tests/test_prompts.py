"""Every word that a model reads, as it stands: a change here is a change of behaviour."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.tokens import exact_counter, why_not_exact

import toolfold
from toolfold import Settings, Shape, Tool, fold, prompts

SEARCH = (
    "Find tools that are not listed here, by what they do. Hits come with their signatures: "
    "most can be run with tool_call at once. 3 tools folded."
)
SEARCH_SCHEMA = (
    '{"type":"object","properties":{"query":{"type":"string","description":"What you need, or a '
    'tool\'s name; several needs separated by |"},"limit":{"type":"integer","description":'
    '"Hits per need"}},"required":["query"]}'
)
DESCRIBE = "Get the full schema of a found tool, if its signature is not enough."
DESCRIBE_SCHEMA = (
    '{"type":"object","properties":{"name":{"type":"string","description":"One name, or several '
    'with commas"}},"required":["name"]}'
)
CALL = "Run a found tool. Listed tools are called directly instead."
CALL_SCHEMA = (
    '{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},'
    '"required":["name","arguments"]}'
)


def one(head: str, name: str, description: str, key: str, schema: str, tail: str) -> str:
    return f'{head}"name":"{name}","description":"{description}","{key}":{schema}{tail}'


def three(head: str, key: str, tails: Sequence[str]) -> str:
    return ",".join(
        one(head, name, description, key, schema, tail)
        for name, description, schema, tail in (
            ("tool_search", SEARCH, SEARCH_SCHEMA, tails[0]),
            ("tool_describe", DESCRIBE, DESCRIBE_SCHEMA, tails[1]),
            ("tool_call", CALL, CALL_SCHEMA, tails[2]),
        )
    )


READS = ',"annotations":{"readOnlyHint":true}}'
BRIDGES: dict[Shape, str] = {
    "openai-chat": "[" + three('{"type":"function","function":{', "parameters", ["}}"] * 3) + "]",
    "openai-responses": "["
    + three('{"type":"function",', "parameters", [',"strict":false}'] * 3)
    + "]",
    "anthropic": "[" + three("{", "input_schema", ["}"] * 3) + "]",
    "mcp": "["
    + three(
        "{",
        "inputSchema",
        (
            f',"title":"Search tools"{READS}',
            f',"title":"Describe tools"{READS}',
            ',"title":"Call a tool"}',
        ),
    )
    + "]",
    "gemini": '[{"functionDeclarations":[' + three("{", "parametersJsonSchema", ["}"] * 3) + "]}]",
    "plain": "[" + three("{", "parameters", ["}"] * 3) + "]",
}


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("shape", BRIDGES)
def test_the_bridge_in_each_wire_shape_is_these_bytes(shape: Shape) -> None:
    tools = [Tool("a", "A.", source="s"), Tool("b", "B.", source="s"), Tool("c")]

    folded = fold(tools, settings=Settings(enabled="on", listing="off"), shape=shape)

    assert compact(folded.tools) == BRIDGES[shape]


def test_the_bridges_guidance() -> None:
    assert fold([Tool("a")], settings=Settings(enabled="on")).guidance == (
        "Not all of your tools are listed. Before you say that something cannot be done, look for "
        "a tool with tool_search, then run it with tool_call. Call listed tools directly."
    )


def test_the_search_tool_beside_stubs() -> None:
    folded = fold([Tool("a")], settings=Settings(enabled="on", strategy="stub"))

    assert compact(folded.tools[-1]) == (
        '{"type":"function","function":{"name":"tool_search","description":"Load the parameters '
        "of tools listed without them, by name or by what they do: first this, "
        'then the tool. 1 tool can be loaded.",'
        '"parameters":{"type":"object","properties":{"query":{"type":"string","description":'
        '"A tool\'s name, or what you need; empty lists all names"}},"required":["query"]}}}'
    )


SHORT_SEARCH = "Find a tool. Then run it with tool_call. 3 tools folded."
SHORT_BRIDGE = (
    '[{"type":"function","function":{"name":"tool_search","description":"'
    + SHORT_SEARCH
    + '","parameters":{"type":"object","properties":{"query":{"type":"string","description":"What '
    'you need"},"limit":{"type":"integer"}},"required":["query"]}}},'
    '{"type":"function","function":{"name":"tool_describe","description":"Show a found tool\'s '
    'schema.","parameters":{"type":"object","properties":{"name":{"type":"string"}},"required":'
    '["name"]}}},'
    '{"type":"function","function":{"name":"tool_call","description":"Run a tool that tool_search '
    'found.","parameters":' + CALL_SCHEMA + "}}]"
)


def test_the_short_texts_of_the_bridge_are_these_bytes() -> None:
    tools = [Tool("a", "A.", source="s"), Tool("b", "B.", source="s"), Tool("c")]

    folded = fold(tools, settings=Settings(enabled="on", listing="off", bridge_texts="short"))

    assert compact(folded.tools) == SHORT_BRIDGE
    assert folded.guidance == (
        "No listed tool fits? First call tool_search, then tool_call with a name it found."
    )


def test_the_short_texts_of_stubs_are_these_bytes() -> None:
    chosen = Settings(enabled="on", strategy="stub", bridge_texts="short")

    folded = fold([Tool("a")], settings=chosen)

    assert compact(folded.tools) == (
        '[{"type":"function","function":{"name":"a","description":"","parameters":{"type":"object",'
        '"properties":{}}}},'
        '{"type":"function","function":{"name":"tool_search","description":"Load a tool\'s '
        'parameters before you call it. 1 tool can be loaded.","parameters":{"type":"object",'
        '"properties":{"query":{"type":"string","description":"The tool\'s name"}},'
        '"required":["query"]}}}]'
    )
    assert folded.guidance == (
        "Before you use a tool without parameters, call tool_search with its name."
    )


def test_full_and_short_texts_of_one_catalog_are_kept_apart() -> None:
    def said(texts: Any) -> str:
        chosen = Settings(enabled="on", listing="off", bridge_texts=texts)
        folded = fold([Tool("a"), Tool("b"), Tool("c")], settings=chosen)
        return folded.tools[0]["function"]["description"]

    assert [said(texts) for texts in ("full", "short", "full")] == [SEARCH, SHORT_SEARCH, SEARCH]


@pytest.mark.parametrize("strategy", ["bridge", "stub"])
@pytest.mark.parametrize("texts", ["full", "short"])
def test_a_list_folded_with_either_text_is_known_as_folded(strategy: Any, texts: Any) -> None:
    once = fold([Tool("a")], settings=Settings(enabled="on", strategy=strategy, bridge_texts=texts))

    for other in ("full", "short"):
        twice = fold(once.tools, settings=Settings(enabled="on", bridge_texts=other))
        assert twice.report.reason == "the list is folded already"


def test_the_short_texts_cost_a_quarter_less_and_the_guidance_half() -> None:
    reason = why_not_exact()
    if reason:
        pytest.skip(reason)
    count = exact_counter()
    assert count is not None
    tools = [Tool(f"t{i}", "Does it.") for i in range(226)]

    def tokens(texts: Any) -> tuple[int, int]:
        chosen = Settings(enabled="on", listing="off", bridge_texts=texts)
        folded = fold(tools, settings=chosen)
        return count(compact(folded.tools)), count(folded.guidance or "")

    assert tokens("full") == (217, 37)
    assert tokens("short") == (158, 19)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (prompts.plural(1, "tool"), "1 tool"),
        (prompts.plural(1_226, "tool"), "1,226 tools"),
        (prompts.found(2, "a b", 9), '2 of 9 tools for "a b":'),
        (prompts.hit("a(b: string)", "s", "Do it."), "- a(b: string) [s]: Do it."),
        (prompts.hit("a()", None, ""), "- a()"),
        (prompts.hit_in_short("a"), "- a"),
        (prompts.hits_left_out(1), "(1 more hit left out. Narrow the query to see others.)"),
        (
            prompts.needs_left_out(2),
            "(2 further needs not searched. Search again for the rest.)",
        ),
        (prompts.names_left_out(2), "(2 more tools left out. Describe fewer at once.)"),
        (prompts.HITS_FOOT, "Run one with tool_call(name, arguments)."),
        (prompts.REVEALED_FOOT, "Their parameters are loaded. Call them directly."),
        (
            prompts.no_match("fax", 9, {}, 1),
            'No tool matches "fax" (9 tools searched). Try other words, or go on without a tool.',
        ),
        (
            prompts.no_match("fax", 9, {"git": 5, "slack": 4}, 2),
            'No tool matches "fax" (9 tools searched). There are tools of git (5), slack (4). Try '
            "other words, or go on without a tool.",
        ),
        (
            prompts.no_match("fax", 9, {"git": 5, "slack": 4}, 0, sources_at_most=1),
            'No tool matches "fax" (9 tools searched). There are tools of git (5) and 1 more '
            "source. Try other words, or go on without a tool.",
        ),
        (
            prompts.no_match("fax", 9, {"git": 9}, 3),
            'No tool matches "fax" (9 tools searched). That was search 3 in a row without a '
            "match: stop searching. Go on without a tool, or tell the user what is missing.",
        ),
        (prompts.source_counts({"a": 1, "b": 2}, 9, 3), "a (1), b (2), others (3)"),
        (prompts.names_there_are(["a", "b"], 2), "Tools: a, b"),
        (prompts.names_there_are(["a", "b"], 5), "Tools: a, b and 3 more"),
        (prompts.BLANK_QUERY, "The query is blank. Say in a few words what you need."),
        (prompts.QUERY_MISSING, 'tool_search needs a query, as {"query": "what you need"}.'),
        (prompts.NAME_MISSING, 'Which tool? Give its name, as {"name": "…"}.'),
        (
            prompts.CALL_NAME_MISSING,
            'Which tool? Give its name, as {"name": "…", "arguments": {…}}.',
        ),
        (prompts.call_directly("a"), "a is one of your listed tools: call it directly."),
        (prompts.not_available("a", []), '"a" is not available in this session.'),
        (
            prompts.not_available("a", ["b", "c"]),
            '"a" is not available in this session. Did you mean b or c?',
        ),
        (prompts.search_for_it(), "Find tools with tool_search."),
        (
            prompts.bridge_in_bridge("tool_search"),
            "tool_call cannot run tool_search: call tool_search directly.",
        ),
        (
            prompts.bridge_in_bridge("tool_call"),
            "tool_call cannot run itself. Give it the name of the tool that you want to run.",
        ),
        (
            prompts.bad_arguments("a", [("", "missing argument 'b'"), ("c.d", "is odd")], "a(b)"),
            "a was not run. missing argument 'b'; c.d: is odd. Signature: a(b)",
        ),
        (
            prompts.unreadable_arguments("a", "they are odd", "a(b)"),
            "a was not run: they are odd. Send one JSON object. Signature: a(b)",
        ),
        (
            prompts.unreadable_arguments("a", "they are odd", None),
            "a was not run: they are odd. Send one JSON object.",
        ),
        (prompts.description_cut(), "(Texts were shortened to fit.)"),
        (prompts.unknown_argument("a", "b"), "unknown argument 'a', did you mean 'b'?"),
        (prompts.text_cut(12_000), "(Cut: the whole text has 12,000 characters.)"),
        (
            prompts.schema_cut("a(b)"),
            "(The schema is too long to show.) Signature: a(b)",
        ),
        (
            prompts.unreadable_call("fly"),
            'Nothing was run: your message was the text of a call of "fly", and there is no such '
            "tool, or the call cannot be read. Call a tool by its exact name, with one JSON object "
            "of arguments; or answer in plain words.",
        ),
        (
            prompts.unreadable_call("fly", exists=True),
            'Nothing was run: your call of "fly" cannot be read. Make it again, with one JSON '
            "object of arguments.",
        ),
        (
            prompts.unreadable_call("fly", exists=False),
            'Nothing was run: there is no tool "fly". Call a tool by its exact name, or answer in '
            "plain words.",
        ),
        (
            prompts.unreadable_call(""),
            "Nothing was run: your message was the text of a call, and there is no such tool, or "
            "the call cannot be read. Call a tool by its exact name, with one JSON object of "
            "arguments; or answer in plain words.",
        ),
        (
            prompts.call_in_prose("fly"),
            'Nothing was run: your message only shows a call of "fly". If you mean it, make it as '
            "a tool call, without words around it; if not, answer in plain words.",
        ),
        (
            prompts.no_such_call("fly", "a(b)"),
            'Nothing was run: there is no tool "fly". If this one fits, call it now, by its exact '
            "name: a(b)",
        ),
        (
            prompts.may_help(["a(b)", "c()"], listed=["d"]),
            "(Tools that may help: first d, called directly; then these, to be run with "
            "tool_call: a(b); c())",
        ),
        (
            prompts.just_done(["a", "b"]),
            "It is done: a and b have run. Do not call it again. Say in one sentence what was "
            "done, or go on with what is left.",
        ),
        (
            prompts.again(3),
            "(You have made the same calls 3 times. Do something else, or answer with what you "
            "have.)",
        ),
        (prompts.quoted("a\n" + "b" * 200), '"a ' + "b" * 117 + '…"'),
    ],
)
def test_each_text_stands_as_it_is_written_here(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (prompts.LISTED_FOOT, "They are listed now. Call them directly, by name."),
        (prompts.hit_in_full("{}"), "- {}"),
        (
            prompts.not_json("Expecting value", 3),
            "arguments are not valid JSON: Expecting value at character 3",
        ),
        (prompts.not_json(None, None), "arguments are not valid JSON: unreadable"),
        (prompts.no_object([]), "arguments are a list, not an object"),
        (prompts.missing_argument("a"), "missing argument 'a'"),
        (prompts.unknown_arguments(["a", "b"]), "unknown argument 'a', 'b'"),
        (prompts.wrong_type(True, ["string", "null"]), "is a boolean, not string or null"),
        (prompts.not_an_option('"a", "b"'), 'is not one of "a", "b"'),
        (prompts.NOT_ALLOWED, "is not allowed"),
        (prompts.breaks("maximum", "3"), "breaks `maximum` 3"),
        (prompts.breaks("not", None), "breaks `not`"),
        (prompts.TOO_DEEP, "they nest too deep to be checked"),
        (
            prompts.not_connected("a"),
            "a is not connected here: only its definition is known. Say so.",
        ),
        (prompts.DELEGATED_TOO_DEEP, "Tasks are delegated too deep. Do this one yourself."),
        (prompts.TASK, "All it must know"),
        (prompts.of_sources({"a": 1}, 5, 2), " of a (1), others (2)."),
        (prompts.of_many_sources(3), " of 3 sources."),
        (prompts.listed_by_source(["a: b", "c (2)"]), ", by source:\na: b\nc (2)"),
        (prompts.listed_names("a", ["b", "c"]), "a: b c"),
        (prompts.listed_source("", 2), "others (2)"),
    ],
)
def test_texts_of_arguments_listings_and_delegation_stand_as_written_here(
    text: str, expected: str
) -> None:
    assert text == expected


MODEL_ROOMS = ("arguments.py", "_faults.py", "bridge.py", "_render.py", "strategy",
               "runtime/_prefetch.py", "runtime/compaction.py", "runtime/conversation.py",
               "runtime/agent.py", "chat/tool_files.py", "wire/assemble.py")  # fmt: skip


def said_in(path: Path) -> list[str]:
    """The texts of several words in a file that no docstring, error or log line holds."""
    tree = ast.parse(path.read_text("utf-8"))
    silent: set[int] = set()
    for node in ast.walk(tree):
        call = node.func if isinstance(node, ast.Call) else None
        is_log = isinstance(call, ast.Attribute) and getattr(call.value, "id", "") == "_log"
        if (
            isinstance(node, ast.Expr | ast.Raise)
            and (isinstance(node, ast.Raise) or isinstance(node.value, ast.Constant))
        ) or is_log:
            silent |= {id(inner) for inner in ast.walk(node)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in silent
        and len(re.findall(r"[A-Za-z]{2,}", node.value)) > 1
        and " " in node.value.strip()
    ]


@pytest.mark.parametrize("room", MODEL_ROOMS)
def test_what_speaks_to_a_model_takes_its_words_from_prompts(room: str) -> None:
    place = Path(toolfold.__file__).parent / room
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]

    # Why a hit is there is told to a person.
    assert [text for file in files for text in said_in(file)] in ([], ["the query is its name"])


# ---- listing

NAMED_SEARCH = (
    "Find tools by what they do; a name below needs no search. Hits come with their signatures: "
    "most can be run with tool_call at once."
)
NAMED_LOAD = (
    "Load tools, by a name from below or by what they do. What is found then joins your tools: "
    "call it directly, by its name."
)


def listed(tools: list[Tool], **settings: Any) -> str:
    folded = fold(tools, settings=Settings(enabled="on", **settings), core=["core_*"])
    said: str = folded.tools[0]["function"]["description"]
    return said.removeprefix(SEARCH[: -len("3 tools folded.")]).removeprefix(f"{NAMED_SEARCH} ")


FORGE = [Tool(f"forge.{name}", source="forge") for name in ("merge", "fork", "clone")]
MAIL = [Tool("mcp__mail__send", source="mail"), Tool("mcp__mail__read", source="mail")]


def test_the_listing_can_be_off() -> None:
    assert listed([*FORGE, *MAIL], listing="off") == "5 tools folded."
    assert listed(FORGE[:1], listing="off") == "1 tool folded."


def test_the_listing_names_sources_with_counts_by_default() -> None:
    assert listed([*MAIL, *FORGE]) == "5 tools of forge (3), mail (2)."
    assert listed([*MAIL, *FORGE, Tool("x")]) == "6 tools of forge (3), mail (2), others (1)."
    assert listed([Tool("x"), Tool("y")]) == "2 tools folded."


def test_the_listing_can_name_every_tool_by_source() -> None:
    assert listed([*MAIL, *FORGE, Tool("x")], listing="names") == (
        "6 tools, by source, called source__tool:\nothers: x\nforge: clone fork merge\n"
        "mail: read send"
    )


def test_a_listed_name_is_short_where_it_can_be_called_so_or_behind_its_source() -> None:
    tools = [*FORGE, Tool("other.fork", source="other")]

    assert listed(FORGE, listing="names") == "3 tools, by source:\nforge: clone fork merge"
    assert listed(tools, listing="names") == (
        "4 tools, by source, called source__tool:\nforge: clone fork merge\nother: fork"
    )
    beside_core = fold(
        [Tool("fork"), *FORGE], core=["fork"], settings=Settings(enabled="on", listing="names")
    )
    assert (
        "called source__tool:\nforge: clone fork merge"
        in beside_core.tools[1]["function"]["description"]
    )


def test_over_its_budget_the_largest_sources_shrink_to_a_count_first() -> None:
    large = [Tool(f"large.a_rather_long_name_{i}", source="large") for i in range(30)]
    middle = [Tool(f"middle.another_long_name_{i}", source="middle") for i in range(8)]

    tight = listed([*large, *middle, *MAIL], listing="names", listing_max_tokens=105)
    tighter = listed([*large, *middle, *MAIL], listing="names", listing_max_tokens=50)

    assert tight == (
        "40 tools, by source, called source__tool:\nlarge (30)\nmail: read send\nmiddle: "
        + " ".join(f"another_long_name_{i}" for i in range(8))
    )
    assert tighter == (
        "40 tools, by source, called source__tool:\nlarge (30)\nmail: read send\nmiddle (8)"
    )


def test_where_not_even_that_fits_counts_stand_alone() -> None:
    tools = [Tool(f"s{i:03}.x", source=f"source_number_{i:03}") for i in range(200)]

    names = listed(tools, listing="names", listing_max_tokens=50)
    sources = listed(tools, listing="sources", listing_max_tokens=50)

    assert names == sources
    assert sources.startswith("200 tools of source_number_000 (1), source_number_001 (1), ")
    assert sources.endswith(" more sources.")
    assert len(sources) <= 4 * 50 + len("200 tools")
    wide = [Tool(f"{i}.x", source=str(i) * 60) for i in range(9)]
    assert listed(wide, listing_max_tokens=50).startswith("9 tools of 00000")


def test_the_listing_does_not_depend_on_the_order_of_the_tools() -> None:
    tools = [*FORGE, *MAIL, Tool("x")]

    for listing in ("off", "sources", "names"):
        assert listed(tools, listing=listing) == listed(tools[::-1], listing=listing)


def spoken(**settings: Any) -> list[str]:
    """Return what the bridge's tools say, without what they list, and the guidance."""
    folded = fold([*FORGE, *MAIL], settings=Settings(enabled="on", **settings), shape="plain")
    descriptions = [tool["description"].split(" 5 tools")[0] for tool in folded.tools]
    return [*descriptions, folded.guidance or ""]


def test_texts_beside_listed_names_are_these_words() -> None:
    assert spoken(listing="names") == [
        NAMED_SEARCH,
        "Get a tool's full schema, if its signature is unknown or not enough.",
        "Run a named or found tool. Other tools are called directly instead.",
        "Some of your tools are only named, in the description of tool_search. Before you say that "
        "something cannot be done, look there, or search with tool_search. Load what you need with "
        "tool_describe and run it with tool_call. Call your other tools directly.",
    ]
    assert spoken(listing="names", bridge_texts="short") == [
        "Find a tool. Then run it with tool_call.",
        "Show a tool's schema.",
        "Run a tool that tool_search names or finds.",
        "No tool fits? Take a name from tool_search: first tool_describe, then tool_call.",
    ]


def test_texts_of_reveal_beside_listed_names_are_these_words() -> None:
    assert spoken(listing="names", strategy="reveal") == [
        NAMED_LOAD,
        "Get a tool's full schema, if its signature is unknown or not enough.",
        "Some of your tools are only named, in the description of tool_search. Before you use one, "
        "or say that something cannot be done, look for it with tool_search: what it finds joins "
        "your tools. Call those directly.",
    ]
    assert spoken(listing="names", strategy="reveal", bridge_texts="short") == [
        NAMED_LOAD,
        "Show a tool's schema.",
        "No tool fits? First call tool_search with a name from it, then that tool.",
    ]


@pytest.mark.parametrize("strategy", ["bridge", "stub", "reveal"])
@pytest.mark.parametrize("texts", ["full", "short"])
def test_what_is_named_is_not_called_unlisted(strategy: Any, texts: Any) -> None:
    said = " ".join(spoken(listing="names", strategy=strategy, bridge_texts=texts))
    assert "not listed" not in said
    assert "Not all of your tools" not in said


@pytest.mark.parametrize("strategy", ["bridge", "reveal"])
def test_without_names_in_it_the_list_is_spoken_of_as_ever(strategy: Any) -> None:
    tools = [
        Tool(f"{letter}.a_rather_long_name_{i}", source=letter * 30)
        for letter in "abcd"
        for i in range(30)
    ]

    def said(listing: Any) -> str | None:
        chosen = Settings(enabled="on", strategy=strategy, listing=listing, listing_max_tokens=50)
        return fold(tools, settings=chosen).guidance

    assert said("names") == said("sources") == said("off")


@pytest.mark.parametrize("strategy", ["bridge", "reveal"])
@pytest.mark.parametrize("texts", ["full", "short"])
@pytest.mark.parametrize("tools", [FORGE, [*FORGE, *MAIL], [Tool("x")]])
def test_a_list_that_names_its_tools_is_known_as_folded(
    strategy: Any, texts: Any, tools: list[Tool]
) -> None:
    chosen = Settings(enabled="on", strategy=strategy, bridge_texts=texts, listing="names")
    twice = fold(fold(tools, settings=chosen).tools, settings=Settings(enabled="on"))

    assert twice.report.reason == "the list is folded already"


def test_a_gateway_that_names_its_tools_does_not_ask_to_search_for_them() -> None:
    assert prompts.instructions("tool", "sources") == prompts.INSTRUCTIONS
    assert prompts.instructions("fold", "names") == (
        "Tools of several servers, named server__tool. If fold_search is listed, most of them are "
        "behind it, and those that its description names need no search: before you say that "
        "something cannot be done, look there, or search with it, and run what you find as it "
        "says. Call your other tools directly."
    )


def test_the_texts_around_hits_without_signatures_are_these_bytes() -> None:
    assert prompts.nearest("fax it") == 'No close match for "fax it"; nearest:'
    assert prompts.named_hit("send", "Send a letter") == "send (Send a letter)"
    assert prompts.named_hit("send", "") == "send"
    assert prompts.also(prompts.ALSO, ["a", "b"]) == "Also (tool_describe first): a, b"
    assert prompts.ALSO_UNLISTED == "Also, not listed (search for the name):"
    assert prompts.beside(["a", "b"]) == "May be needed too: a, b"
