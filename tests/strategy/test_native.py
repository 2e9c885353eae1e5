"""Native deferral: the provider keeps definitions back, and our search says which are loaded."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from support.judges import judged_anthropic, judged_openai
from support.outcomes import answered
from support.talks import CHAT, CLAUDE, GPT, INLINE, NANO, ROUTED, Model, Talk
from toolfold import ConfigError, Invocation, Scope, Session, Settings, Tool, fold
from toolfold.demo import demo_catalog

TAKES = {
    "type": "object",
    "properties": {"to": {"type": "string"}},
    "required": ["to"],
}
TOOLS = [
    Tool("send_mail", "Send a message by mail.", TAKES),
    Tool("book_room", "Book a meeting room.", TAKES),
    Tool("weather.today", "Tell today's weather.", TAKES),
]
ON = Settings(enabled="on", ranker="bm25")


def talk(model: Model, tools: Any = TOOLS, **more: Any) -> Talk:
    return Talk(list(tools), replace(ON, **more), model)


def definition(name: str, description: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, **more}


# ---- what `auto` comes to


@pytest.mark.parametrize(
    ("model", "strategy", "form"),
    [
        (CLAUDE, "native", "tool_reference"),
        (INLINE, "native", "tool_addition"),
        (GPT, "native", "tool_search_output"),
        (NANO, "bridge", "text"),
        (ROUTED, "bridge", "text"),
        (CHAT, "bridge", "text"),
        (replace(CLAUDE, api=None), "bridge", "text"),
        (replace(CLAUDE, host=""), "bridge", "text"),
        (replace(CLAUDE, name="claude-3-opus"), "bridge", "text"),
    ],
)
def test_auto_is_native_where_api_host_and_model_are_known_and_else_the_bridge(
    model: Model, strategy: str, form: str
) -> None:
    folded = talk(model).folded

    assert (folded.report.strategy, folded.found_form) == (strategy, form)
    assert folded.is_native is (strategy == "native")


def test_what_is_asked_for_is_obeyed_wherever_an_api_is_named() -> None:
    assert talk(ROUTED, strategy="native").folded.found_form == "tool_reference"
    assert talk(CLAUDE, strategy="bridge").folded.found_form == "text"
    assert talk(NANO, strategy="hosted").folded.is_native


def test_native_without_an_api_is_the_bridge_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bridged = fold(TOOLS, settings=replace(ON, strategy="bridge"))

    for _ in range(2):
        folded = fold(TOOLS, settings=replace(ON, strategy="hosted"))
        assert (folded.tools, folded.report) == (bridged.tools, bridged.report)

    assert [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING] == [
        "`strategy: hosted` needs to know the provider: pass `api` to `fold`; without it the "
        "tools are folded behind the bridge"
    ]


def test_more_tools_than_a_provider_takes_go_behind_the_bridge() -> None:
    many = [Tool(f"t{i}", "Does it.") for i in range(10_001)]

    folded = fold(many, settings=ON, api=CLAUDE.api, host=CLAUDE.host, model=CLAUDE.name)

    assert folded.report.strategy == "bridge"


@pytest.mark.parametrize("strategy", ["stub", "reveal"])
def test_a_list_that_changes_warns_once_where_reasoning_is_bound_to_it(
    strategy: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        fold(TOOLS, settings=replace(ON, strategy=strategy), model="claude-opus-5-5")
        fold(TOOLS, settings=replace(ON, strategy=strategy), model="claude-opus-5")

    (said,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert said == (
        f"`strategy: {strategy}` changes the list of tools within a conversation, and "
        "claude-opus-5-5 refuses a request that holds an earlier thinking block after such a "
        "change (400): use `auto`, `native` or `bridge`, or send no thinking back"
    )


def test_an_api_that_is_not_one_and_a_shape_that_is_not_its_own_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        fold(TOOLS, api="openai-chat")  # type: ignore[arg-type]
    assert str(caught.value).startswith("`api` is 'openai-chat'")

    with pytest.raises(ConfigError) as caught:
        fold(TOOLS, api="anthropic-messages", shape="mcp")
    assert caught.value.hint == "leave `shape` out"


# ---- references


def test_anthropic_gets_the_search_and_behind_it_what_is_deferred() -> None:
    folded = talk(CLAUDE).folded

    search, *deferred = folded.tools
    assert search["name"] == "tool_search"
    assert search["description"] == (
        "Find tools that are not listed here, by what they do. What is found is loaded: call it "
        "directly, by its name. 3 tools folded."
    )
    assert deferred == [
        definition("send_mail", "Send a message by mail.", input_schema=TAKES, defer_loading=True),
        definition("book_room", "Book a meeting room.", input_schema=TAKES, defer_loading=True),
        definition(
            "weather_today_289914f3",
            "Tell today's weather.",
            input_schema=TAKES,
            defer_loading=True,
        ),
    ]
    assert folded.headers == {}
    assert folded.guidance == (
        "Not all of your tools are listed. Before you say that something cannot be done, look for "
        "a tool with tool_search, then call what it found by its name."
    )
    report = folded.report
    assert (report.tools_after, report.kept, report.deferred, report.breaks) == (1, 0, 3, 0)
    assert report.tokens_after == -(-len(json.dumps([search], separators=(",", ":"))) // 4)


def test_a_hit_with_a_signature_is_a_reference_and_its_tool_is_called_by_its_name() -> None:
    folded = talk(CLAUDE).folded

    answer = answered(folded.resolve("tool_search", {"query": "weather.today"}))
    call = folded.resolve("weather_today_289914f3", {"to": "x"}, session=answer.session)

    assert answer.result_content() == [
        {"type": "tool_reference", "tool_name": "weather_today_289914f3"}
    ]
    assert answer.text.endswith("They are loaded now. Call them directly, by name.")
    assert isinstance(call, Invocation)
    assert (call.tool.name, call.via) == ("weather.today", "direct")
    assert call.session.sent == folded.session.sent


def test_hits_by_name_are_not_references() -> None:
    folded = talk(CLAUDE, demo_catalog()).folded

    answer = answered(folded.resolve("tool_search", {"query": "send a message", "limit": 2}))

    shown = [hit.tool.wire_name for hit in answer.hits if hit.shown == "signature"]
    assert len(answer.hits) > len(shown)
    assert [block["tool_name"] for block in answer.result_content()] == shown
    assert "Also, not loaded (search for the name):" in answer.text


def test_a_search_loads_no_more_than_a_describe_would_show() -> None:
    large = {"type": "object", "properties": {"x": {"type": "string", "description": "y" * 2_000}}}
    tools = [Tool(f"mail_{i}", "Send mail.", large) for i in range(5)]

    for model in (CLAUDE, GPT):
        found = (
            talk(model, tools, describe_max_tokens=1_200).call("tool_search", query="mail").found
        )
        assert found == ("mail_0", "mail_1")
        alone = talk(model, tools, describe_max_tokens=200).call("tool_search", query="mail").found
        assert alone == ("mail_0",)


@pytest.mark.parametrize("query", ["", "quarks", None])
def test_a_search_without_hits_is_a_text(query: Any) -> None:
    answer = answered(talk(CLAUDE).folded.resolve("tool_search", {"query": query}))

    assert answer.result_content() == [{"type": "text", "text": answer.text}]


def test_a_wrong_argument_is_answered_with_the_signature() -> None:
    wrong = answered(talk(CLAUDE).folded.resolve("send_mail", {}))

    assert wrong.is_error
    assert wrong.text.endswith("Signature: send_mail(to: string)")


def test_the_scope_holds_in_the_array_too() -> None:
    folded = fold(
        TOOLS,
        settings=ON,
        scope=Scope(deny=("send_*",)),
        api=CLAUDE.api,
        host=CLAUDE.host,
        model=CLAUDE.name,
    )

    assert "send_mail" not in json.dumps(folded.tools)
    assert "not available" in answered(folded.resolve("send_mail", {"to": "x"})).text


def test_a_cache_mark_moves_from_what_is_deferred_to_the_last_that_is_not() -> None:
    records = [
        {"name": f"t{i}", "description": "Does it.", "input_schema": {"type": "object"}}
        for i in range(3)
    ]
    records[-1]["cache_control"] = {"type": "ephemeral"}
    for strategy, last in (("native", "tool_search"), ("hosted", "tool_search_tool_bm25")):
        folded = talk(CLAUDE, records, strategy=strategy, core=("t0",)).folded
        marked = [entry["name"] for entry in folded.tools if "cache_control" in entry]
        assert marked == [last]
        assert folded.tools[0] is records[0]


def test_there_are_never_more_than_four_marks_and_those_that_were_sent_stay() -> None:
    def marked(name: str) -> dict[str, Any]:
        takes = {"type": "object", "properties": {}}
        return {"name": name, "input_schema": takes, "cache_control": {"type": "ephemeral"}}

    own = talk(CLAUDE, [*TOOLS, *map(marked, "abcdef")], core=tuple("abcdefg"))
    before = own.folded.tools
    own.tools.append(marked("g"))  # type: ignore[arg-type]
    after = own.assemble().tools

    assert [entry["name"] for entry in before if "cache_control" in entry] == list("cdef")
    assert after[:-1] == before
    assert after[-1]["name"] == "g"
    assert "cache_control" not in after[-1]


def test_a_conversation_of_references_is_taken_by_the_sdks_types() -> None:
    own = talk(CLAUDE)
    own.call("tool_search", query="mail")
    own.call("send_mail", to="x")
    own.call("tool_search", query="quarks")
    own.assemble()

    judged_anthropic(own.request())
    assert own.request()["messages"][2]["content"][0]["content"] == [
        {"type": "tool_reference", "tool_name": "send_mail"}
    ]


# ---- injection


def test_openai_gets_a_search_that_we_answer_and_no_definition() -> None:
    folded = talk(GPT).folded

    assert folded.tools == [
        {
            "type": "tool_search",
            "execution": "client",
            "description": "Find tools that are not listed here, by what they do. What is found "
            "is loaded: call it directly, by its name. 3 tools folded.",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "What you need, or a tool's name; several needs separated "
                        "by |",
                    },
                    "limit": {"type": "integer", "description": "Hits per need"},
                },
                "required": ["query"],
                "additionalProperties": False,
            },
        }
    ]


def test_what_was_found_comes_in_with_the_output_and_its_calls_have_a_namespace() -> None:
    own = talk(GPT)
    own.call("tool_search", query="mail")
    own.call("send_mail", to="x")
    folded = own.assemble()

    _, search, output, call, _ = own.request()["input"]
    assert search["arguments"] == {"query": "mail"}
    assert output == {
        "type": "tool_search_output",
        "execution": "client",
        "call_id": "call_0",
        "status": "completed",
        "tools": [
            {
                "type": "function",
                "name": "send_mail",
                "description": "Send a message by mail.",
                "parameters": TAKES,
                "strict": False,
                "defer_loading": True,
            }
        ],
    }
    assert call["namespace"] == "send_mail"
    assert folded.namespace("nobody") is None
    judged_openai(own.request())


def test_an_output_without_a_tool_is_followed_by_what_the_search_says() -> None:
    answer = answered(talk(GPT).folded.resolve("tool_search", {"query": "quarks"}))

    output, said = answer.search_output("c")

    assert output["tools"] == []
    assert said["role"] == "user"
    assert said["content"][0]["text"].startswith(
        'tool_search found nothing to load. It says: No tool matches "quarks"'
    )


def test_what_was_found_long_ago_keeps_its_namespace() -> None:
    many = [Tool(f"t{i}", "Does it.", TAKES) for i in range(700)]
    own = talk(GPT, many)
    for tool in many:
        own.call("tool_search", query=tool.name)

    assert {own.folded.for_session(own.session).namespace(tool.name) for tool in many} == {
        tool.name for tool in many
    }


def test_a_tool_that_is_listed_needs_no_namespace() -> None:
    assert talk(GPT, core=("send_mail",)).folded.namespace("send_mail") is None


# ---- definitions behind the answer


def test_inline_definitions_come_in_once_in_a_message_behind_the_result() -> None:
    own = talk(INLINE)
    own.call("tool_search", query="mail")
    own.call("tool_search", query="send_mail")
    folded = own.assemble()

    assert [entry["name"] for entry in folded.tools] == ["tool_search"]
    assert folded.headers == {"anthropic-beta": "inline-tools-2026-09-15"}
    messages = own.request()["messages"]
    assert messages[2]["content"][0]["content"] == [
        {
            "type": "text",
            "text": "Found, and defined below: send_mail. Call them directly, by name.",
        }
    ]
    assert messages[3] == {
        "role": "system",
        "content": [
            {
                "type": "tool_addition",
                "tool": {
                    "type": "tool_definition",
                    "definition": definition(
                        "send_mail", "Send a message by mail.", input_schema=TAKES
                    ),
                },
            }
        ],
    }
    assert sum(message["role"] == "system" for message in messages) == 1
    judged_anthropic(own.request(), beta=True)


@pytest.mark.parametrize("model", [CLAUDE, INLINE, GPT])
def test_an_old_search_does_not_name_what_is_out_of_the_scope_by_now(model: Model) -> None:
    found = answered(talk(model).folded.resolve("tool_search", {"query": "mail"}))
    narrow = talk(model, TOOLS[1:]).folded

    again = narrow.replayed(found.text, [tool.name for tool in found.found])

    said = [again.result_content(), again.search_output("c"), again.additions()]
    assert "send_mail" in found.text
    assert "send_mail" not in json.dumps(said)
    assert again.text == (
        "What this search found then cannot be loaded now. Search again for what you need."
    )


# ---- the provider's own search


@pytest.mark.parametrize(
    ("model", "entry"),
    [
        (CLAUDE, {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}),
        (GPT, {"type": "tool_search"}),
    ],
)
def test_hosted_lists_the_providers_search_and_defers_the_rest(
    model: Model, entry: dict[str, str]
) -> None:
    own = talk(model, strategy="hosted")
    own.call("send_mail", to="x")
    folded = own.assemble()

    assert folded.tools[0] == entry
    assert [e["defer_loading"] for e in folded.tools[1:]] == [True] * 3
    assert folded.guidance is None
    assert folded.report.deferred == 3
    if model is GPT:
        judged_openai(own.request())
        assert own.request()["input"][1]["namespace"] == "send_mail"
    else:
        judged_anthropic(own.request())


def names_of(folded: Any) -> list[str]:
    return [entry["name"] for entry in folded.tools]


def test_a_tool_with_the_name_of_the_providers_search_leaves_it_the_other_one() -> None:
    own = talk(CLAUDE, [Tool("tool_search_tool_bm25", "Mine."), *TOOLS], strategy="hosted")
    names = names_of(own.folded)

    assert own.folded.tools[0] == {
        "type": "tool_search_tool_regex_20251119",
        "name": "tool_search_tool_regex",
    }
    assert len(names) == len(set(names)) == 5
    judged_anthropic(own.request())

    before = own.folded.tools
    own.tools.pop(0)  # it stays defined until the conversation ends, and so does its name
    assert own.assemble().tools == before


def test_where_both_names_are_taken_hosted_is_the_bridge_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    mine = [Tool(f"tool_search_tool_{kind}", "Mine.") for kind in ("bm25", "regex")]

    for _ in range(2):
        folded = talk(CLAUDE, [*mine, *TOOLS], strategy="hosted").folded
        assert names_of(folded) == ["tool_search", "tool_describe", "tool_call"]

    (said,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert said.startswith("`strategy: hosted` needs a name that tools of yours have")


# ---- a list that changes


def test_a_tool_that_went_stays_defined_and_is_not_available() -> None:
    own = talk(CLAUDE)
    own.call("tool_search", query="mail")
    before = own.folded.tools
    own.tools.pop(0)

    own.assemble()
    turn = own.call("send_mail", to="x")

    assert own.folded.tools == before
    assert '"send_mail" is not available in this session.' in turn.text
    assert own.folded.report.breaks == 0
    assert own.request()["messages"][2]["content"][0]["content"][0]["tool_name"] == "send_mail"


def test_a_new_tool_comes_last_and_the_break_is_counted() -> None:
    own = talk(CLAUDE)
    before = own.folded.tools
    own.tools.insert(0, Tool("play_song", "Play a song."))

    folded = own.assemble()

    assert folded.tools[:-1] == before
    assert folded.tools[-1]["name"] == "play_song"
    assert folded.report.breaks == 1
    assert own.assemble().report.breaks == 1
    assert own.call("tool_search", query="song").found == ("play_song",)


def test_a_definition_that_changed_stays_as_it_was_sent_and_calls_go_by_the_new_one() -> None:
    for model in (CLAUDE, GPT):
        own = talk(model)
        own.call("tool_search", query="mail")
        own.assemble()
        before = own.request()
        takes = {"type": "object", "properties": {"whom": {"type": "string"}}, "required": ["whom"]}
        own.tools[0] = Tool("send_mail", "Send mail.", takes)

        folded = own.assemble()

        assert own.request() == before
        assert isinstance(folded.resolve("send_mail", {"whom": "x"}), Invocation)
        assert "whom" in answered(folded.resolve("send_mail", {"to": "x"})).text
        assert folded.report.breaks == 0


def test_a_definition_stays_as_it_was_found_even_if_it_changes_at_once() -> None:
    own = talk(GPT)
    own.call("tool_search", query="mail")
    own.tools[0] = Tool("send_mail", "Send mail.")
    own.assemble()

    (definition,) = own.request()["input"][2]["tools"]
    assert definition["parameters"] == TAKES


def test_a_tool_that_was_listed_openly_stays_so_and_is_no_reference() -> None:
    own = talk(CLAUDE, core=("send_mail",))
    before = own.folded.tools
    own.settings = replace(own.settings, core=())
    own.assemble()
    answer = answered(own.folded.resolve("tool_search", {"query": "send_mail"}))

    assert own.folded.tools == before
    assert "send_mail" not in own.folded.hidden
    assert answer.found == (TOOLS[0],)
    assert answer.result_content() == [{"type": "text", "text": answer.text}]


def test_a_tool_that_was_deferred_stays_so_and_is_found_though_it_is_core_by_now() -> None:
    own = talk(CLAUDE)
    before = own.folded.tools
    own.settings = replace(own.settings, core=("send_mail",))

    assert own.assemble().tools == before
    answer = answered(own.folded.resolve("tool_search", {"query": "send_mail"}))
    assert answer.result_content() == [{"type": "tool_reference", "tool_name": "send_mail"}]
    own.refuse()
    assert own.assemble().tools[0]["name"] == "send_mail"


def test_a_conversation_that_was_folded_stays_so_below_the_threshold_and_without_a_tool() -> None:
    own = Talk(list(TOOLS), Settings(ranker="bm25"), CLAUDE, context_length=1_000)
    before = own.folded.tools

    del own.tools[1:]
    assert own.assemble().tools == before
    assert own.folded.report.reason == "the conversation was folded before"
    own.tools.clear()
    assert own.assemble().tools == before
    assert own.folded.active
    assert own.call("tool_search", query="mail").found == ()


def test_the_bridge_keeps_its_array_too_where_an_api_is_named() -> None:
    own = talk(ROUTED)
    before = own.folded.tools
    own.tools.append(Tool("play_song", "Play a song."))

    assert own.assemble().tools == before
    assert own.call("tool_search", query="song").found == ("play_song",)


@pytest.mark.parametrize("model", [CLAUDE, GPT, ROUTED], ids=["references", "injection", "bridge"])
def test_what_the_provider_runs_itself_follows_the_hosts_list_at_once(model: Model) -> None:
    server = {"type": "mcp", "server_label": "files", "authorization": "old-token"}
    renewed: Any = {**server, "authorization": "new-token"}
    web = {"type": "web_search_20250305", "name": "web_search"}
    own = talk(model, [server, web, *TOOLS])
    before = own.folded.tools

    own.tools[0] = renewed
    own.tools.append(Tool("play_song", "Play a song."))
    changed = own.assemble().tools
    assert changed[: len(before)] == [renewed, *before[1:]]
    del own.tools[:2]
    assert own.assemble().tools == changed[2:]
    assert own.folded.report.breaks == 2
    assert "token" not in repr(own.folded.session)


# ---- refusals and switches


def test_a_provider_that_refuses_gets_the_bridge_from_then_on_and_others_do_not() -> None:
    own = talk(CLAUDE)
    own.refuse()

    assert own.folded.report.strategy == "bridge"
    assert own.assemble().report.strategy == "bridge"
    assert not own.folded.is_native
    assert own.folded.report.breaks == 1
    own.model = GPT
    assert own.assemble().report.strategy == "native"
    own.model = CLAUDE
    assert own.assemble().report.strategy == "bridge"
    assert talk(CLAUDE).folded.report.strategy == "native"


def test_another_provider_gets_what_was_found_in_its_own_words() -> None:
    own = talk(CLAUDE)
    own.call("tool_search", query="mail")
    own.call("send_mail", to="x")
    own.tools.pop(0)  # gone, and found: it stays defined for whoever comes

    own.model = GPT
    own.assemble()
    _, _, output, call, _ = own.request()["input"]
    assert [entry["name"] for entry in output["tools"]] == ["send_mail"]
    assert output["tools"][0]["parameters"] == TAKES
    assert call["namespace"] == "send_mail"
    judged_openai(own.request())

    own.model = CLAUDE
    own.assemble()
    judged_anthropic(own.request())
    assert own.request()["messages"][2]["content"][0]["content"] == [
        {"type": "tool_reference", "tool_name": "send_mail"}
    ]

    own.model = ROUTED
    own.assemble()
    said = own.request()["messages"][2]["content"][0]["content"][0]["text"]
    assert said.endswith("Run one with tool_call(name, arguments).")


def test_calls_through_the_bridge_stay_defined_after_a_switch() -> None:
    own = talk(CHAT)
    own.call("tool_call", name="send_mail", arguments={"to": "x"})
    own.model = GPT

    folded = own.assemble()

    names = [entry.get("name", entry["type"]) for entry in folded.tools]
    assert names == ["tool_describe", "tool_call", "tool_search"]
    assert own.assemble().tools == folded.tools
    judged_openai(own.request())


def test_a_bridge_under_another_prefix_is_spoken_of_by_it() -> None:
    own = talk(CLAUDE, demo_catalog(), bridge_prefix="fold")
    text = own.call("fold_search", query="send a message").text
    own.model = ROUTED

    said = own.assemble().replayed(text, ()).text

    assert "Also (fold_describe first):" in said
    assert said.endswith("Run one with fold_call(name, arguments).")


# ---- beside all this


def test_folding_twice_changes_nothing() -> None:
    for model in (CLAUDE, GPT):
        once = talk(model).folded
        twice = talk(model, once.tools).folded
        assert twice.report.reason == "the list is folded already"
        assert twice.tools == once.tools


def test_a_session_that_knows_no_array_gets_the_one_that_the_model_saw() -> None:
    folded = talk(CLAUDE).folded

    answer = folded.resolve("tool_search", {"query": "mail"}, session=Session())

    assert answer.session.sent == folded.session.sent


def test_below_the_gate_the_tools_pass_through() -> None:
    records = [{"name": "a", "description": "A.", "input_schema": {"type": "object"}}]

    folded = fold(records, api=CLAUDE.api, host=CLAUDE.host, model=CLAUDE.name)

    assert not folded.active
    assert folded.tools[0] is records[0]
    assert not folded.is_native


def test_who_names_no_api_imports_nothing_of_this() -> None:
    own = ["providers", "_deferral", "strategy.native", "strategy.array", "strategy.choice"]
    code = (
        "import sys, toolfold; f = toolfold.fold([{'name': 'a'}],"
        " settings=toolfold.Settings(enabled='on')); f.resolve('tool_search', {'query': 'a'});"
        f"print([n for n in {own} if 'toolfold.' + n in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[]"
