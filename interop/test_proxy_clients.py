"""Claude Code and Codex through `toolfold proxy`, with an MCP server of 64 tools of their own.

The model behind the proxy is scripted. What is asserted is what it was asked: the client's own
tools to the byte and three more, a history that only grows; what the client was told; and what
the client ran.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import office
import pytest
from coding_clients import (
    KEY,
    ClaudeCode,
    Ran,
    Session,
    converse,
    is_installed,
    program,
    start,
)
from gateways import TOOLFOLD
from listener import Listener, Said
from proxied_clients import (
    ProxiedClaude,
    ProxiedCodex,
    ProxiedOpenCode,
    ProxiedQwen,
    office_server,
)
from proxies import Proxy, before
from raw_json import elements, member
from scripted_model import (
    Asked,
    Call,
    Hang,
    Part,
    Play,
    Refuse,
    Reply,
    Say,
    ScriptedModel,
    Think,
    in_order,
)

BRIDGE = ["tool_search", "tool_describe", "tool_call"]
MARK = re.compile(r',"cache_control":\{[^{}]*\}|"cache_control":\{[^{}]*\},')
THOUGHT = Think("Ich prüfe… \u2028 </x> \U0001f9ea", "c2lnbmVk+IHRoaW5raW5n/w==")
OTHER_THOUGHT = Think("Gefunden.", "YW5vdGhlcg==")

pytestmark = pytest.mark.timeout(200)

Proxied = ProxiedClaude | ProxiedCodex | ProxiedOpenCode | ProxiedQwen
BOTH = pytest.mark.parametrize(
    "client", [ProxiedClaude(), ProxiedCodex()], ids=lambda client: client.program
)


def search(query: str = "archive an invoice") -> Call:
    return Call("tool_search", {"query": query})


def real(number: int, tool: str = "archive_invoice") -> Call:
    return Call("tool_call", {"name": f"mcp__office__{tool}", "arguments": {"number": number}})


@dataclass
class Stage:
    """A client, the proxy and the model behind it."""

    client: Proxied
    model: ScriptedModel
    proxy: Proxy
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "calls"

    @property
    def called(self) -> list[tuple[str, dict[str, object]]]:
        """What reached the client's MCP server."""
        return office.called(self.log)

    def run(self, prompt: str, *options: str) -> tuple[Ran, list[Said]]:
        """Run a prompt to its end before a proxy of its own; return what was said to the proxy."""
        with self.proxy.listening() as url, Listener(url) as listener:
            session = Session.under(self.folder, listener.url, self.client.model)
            self.client.prepare(session, office_server(self.log))
            client = replace(self.client, options=(*self.client.options, *options))
            ran = converse(client, session, prompt, seconds=150)
        return ran, listener.asked


@contextmanager
def staged(client: Proxied, folder: Path, play: Play, **given: object) -> Generator[Stage]:
    if not is_installed(client):
        pytest.skip(f"{client.program} is not installed: run `make interop`, with npm")
    with ScriptedModel(play) as model:
        proxy = before(model.url, folder / "proxy", **given)
        yield Stage(client, model, proxy, folder)


def tools_of(body: bytes) -> list[str]:
    """Return the entries of `tools` as they are written."""
    return elements(member(body.decode(), "tools"))


def conversation_of(body: bytes) -> list[str]:
    """Return the items of the conversation as they are written, but for marks for the cache.

    For a mark, Claude Code makes a block of a user's text, and a text of it again.
    """
    text = body.decode()
    items = elements(member(text, "messages") or member(text, "input"))
    return [_unmarked(MARK.sub("", item)) for item in items]


def _unmarked(item: str) -> str:
    block = re.fullmatch(
        r'\{"role":"user","content":\[\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]\}', item
    )
    return item if block is None else f'{{"role":"user","content":{block[1]}}}'


def name_of(entry: str) -> str:
    content = json.loads(entry)
    content = content.get("function", content)
    return content.get("name") or content["type"]


def is_office(entry: str) -> bool:
    return name_of(entry).startswith(("mcp__office", "office_"))


def check_tools(said: Said, asked: Asked, bridge: Sequence[str] = BRIDGE) -> None:
    """The client's own tools go up to the byte and in their order, ours behind them.

    A namespace of its own is not known to every server: there its tools stand one by one.
    """
    own: list[str] = []
    after = tools_of(asked.body)
    for entry in tools_of(said.body):
        content = json.loads(entry)
        if content.get("type") == "namespace" and not is_office(entry):
            place = len(own)
            inner = [{**t, "name": f"{content['name']}__{t['name']}"} for t in content["tools"]]
            assert [json.loads(text) for text in after[place : place + len(inner)]] == inner
            own += after[place : place + len(inner)]
        elif not is_office(entry):
            own.append(entry)
    assert after[:-3] == own
    assert [name_of(entry) for entry in after[-3:]] == list(bridge)


def prompt_of(body: bytes) -> str:
    """Return a request in the order in which a provider reads and caches it."""
    text = body.decode()
    return "\n".join(
        [
            member(text, "tools"),
            member(text, "system") or member(text, "instructions"),
            *conversation_of(body),
        ]
    )


def check_history(turns: Sequence[Asked]) -> None:
    """What the model was asked before stands in what it is asked next, to the byte."""
    for one, next_ in pairwise(turns):
        was, now = prompt_of(one.body), prompt_of(next_.body)
        common = next((i for i, (a, b) in enumerate(zip(was, now)) if a != b), len(was))  # noqa: B905
        assert common == len(was), (was[common - 80 : common + 80], now[common - 80 : common + 80])


def check_thought(thought: Think, turns: Sequence[Asked]) -> None:
    """Signed or sealed thinking stands in requests as the model made it."""
    for asked in turns:
        text = asked.body.decode()
        signed = {"type": "thinking", "thinking": thought.text, "signature": thought.signature}
        sealed = f'"encrypted_content":"{thought.signature}"'
        compact = json.dumps(signed, ensure_ascii=False, separators=(",", ":"))
        assert (compact if "messages" in asked.content else sealed) in text


# ---- a task


@BOTH
def test_a_task_takes_a_search_inside_and_a_real_call_by_the_client(
    client: Proxied, tmp_path: Path
) -> None:
    replies: list[Sequence[Part]] = [
        [THOUGHT, Say("I look. "), search()],
        [OTHER_THOUGHT, real(7)],
        [Say("It is archived.")],
    ]
    with staged(client, tmp_path, in_order(replies)) as stage:
        ran, said = stage.run("Archive invoice 7.")

    assert ran.code == 0, ran.complaint
    assert "It is archived." in ran.output
    assert stage.called == [("archive_invoice", {"number": 7})]
    assert len(said) == 2
    turns = stage.model.turns
    assert len(turns) == 3
    for asked in turns:
        check_tools(said[0], asked)
    check_history(turns)
    check_thought(THOUGHT, turns[1:])
    check_thought(OTHER_THOUGHT, turns[2:])
    assert [call.name for call in turns[-1].calls] == ["tool_search", "tool_call"]
    assert office.answer("archive_invoice", {"number": 7}) in turns[-1].results[-1].text
    assert len(office.NAMES) == 64
    assert not any(name in json.dumps(turns[0].content["tools"]) for name in office.NAMES)


@pytest.mark.parametrize(
    ("client", "prefix", "tool"),
    [
        (ProxiedOpenCode(), "tool", "office_archive_invoice"),
        # It has a `tool_search` and a `tool_call` of its own.
        (ProxiedQwen(), "toolfold", "mcp__office__archive_invoice"),
    ],
    ids=["opencode", "qwen"],
)
def test_clients_of_chat_completions_do_it_the_same_way(
    client: Proxied, prefix: str, tool: str, tmp_path: Path
) -> None:
    replies: list[Sequence[Part]] = [
        [Say("I look. "), Call(f"{prefix}_search", {"query": "archive an invoice"})],
        [Call(f"{prefix}_call", {"name": tool, "arguments": {"number": 7}})],
        [Say("It is archived.")],
    ]
    with staged(client, tmp_path, in_order(replies)) as stage:
        ran, said = stage.run("Archive invoice 7.")

    assert "It is archived." in ran.output
    assert stage.called == [("archive_invoice", {"number": 7})]
    turns = stage.model.turns
    assert len(turns) == 3
    for asked in turns:
        check_tools(said[0], asked, [f"{prefix}_{role}" for role in ("search", "describe", "call")])
    check_history(turns)


# ---- several calls in one turn


@BOTH
def test_five_parallel_calls_are_run_by_the_client_and_their_results_are_one_turn(
    client: Proxied, tmp_path: Path
) -> None:
    by_name = Call("mcp__office__find_invoice", {"number": 5})
    replies: list[Sequence[Part]] = [
        [search()],
        [THOUGHT, real(1), real(2), real(3, "update_invoice"), real(4), by_name],
        [Say("All five are done.")],
    ]
    with staged(client, tmp_path, in_order(replies)) as stage:
        ran, _ = stage.run("Archive three invoices, update one, find one.")

    assert "All five are done." in ran.output
    assert sorted((name, given["number"]) for name, given in stage.called) == [
        ("archive_invoice", 1),
        ("archive_invoice", 2),
        ("archive_invoice", 4),
        ("find_invoice", 5),
        ("update_invoice", 3),
    ]
    turns = stage.model.turns
    assert len(turns) == 3
    check_history(turns)
    named = [call.name for call in turns[-1].calls]
    assert named == ["tool_search", *["tool_call"] * 4, "mcp__office__find_invoice"]
    assert len({result.call_id for result in turns[-1].results}) == 6
    assert {call.id for call in turns[-1].calls} == {r.call_id for r in turns[-1].results}


@BOTH
def test_a_turn_that_searches_and_calls_both_kinds_of_tools_is_held_together(
    client: Proxied, tmp_path: Path
) -> None:
    shell, key = {"claude": ("Bash", "command"), "codex": ("exec_command", "cmd")}[client.program]
    own = Call(shell, {key: "echo own"})
    replies: list[Sequence[Part]] = [
        [THOUGHT, own, search("find a parcel"), real(1)],
        [real(2, "find_parcel")],
        [Say("Both are done.")],
    ]
    options = ("--allowedTools", "Bash") if client.program == "claude" else ()
    with staged(client, tmp_path, in_order(replies)) as stage:
        ran, _ = stage.run("Archive invoice 1, find parcel 2.", *options)

    assert "Both are done." in ran.output
    assert stage.called == [("archive_invoice", {"number": 1}), ("find_parcel", {"number": 2})]
    turns = stage.model.turns
    assert len(turns) == 3
    check_history(turns)
    assert [call.name for call in turns[1].calls] == [shell, "tool_search", "tool_call"]
    told = {result.call_id: result.text for result in turns[1].results}
    [ran_own, found, archived] = [told[call.id] for call in turns[1].calls]
    assert "own" in ran_own
    assert "mcp__office__find_parcel" in found
    assert office.answer("archive_invoice", {"number": 1}) in archived


@BOTH
def test_a_wrong_call_is_mended_inside_and_the_client_never_sees_it(
    client: Proxied, tmp_path: Path
) -> None:
    wrong = Call("tool_call", {"name": "mcp__office__archive_invoice", "arguments": {"nr": "x"}})
    replies: list[Sequence[Part]] = [[wrong], [real(7)], [Say("Done at last.")]]
    with staged(client, tmp_path, in_order(replies)) as stage:
        ran, said = stage.run("Archive invoice 7.")

    assert "Done at last." in ran.output
    assert stage.called == [("archive_invoice", {"number": 7})]
    assert len(said) == 2
    check_history(stage.model.turns)
    assert "number" in stage.model.turns[1].results[0].text


# ---- what goes wrong

OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
LIMITED = {"type": "error", "error": {"type": "rate_limit_error", "message": "Too many"}}
BROKEN = {"type": "error", "error": {"type": "api_error", "message": "Broken"}}


RETRY = {"Retry-After": "1", "X-Ratelimit-Left": "0"}


@BOTH
@pytest.mark.parametrize(
    ("where", "refusal"),
    [
        ("at first", Refuse(529, OVERLOADED)),
        ("at first", Refuse(500, BROKEN)),
        ("at first", Refuse(429, LIMITED, RETRY)),
        ("behind a search", Refuse(429, LIMITED, RETRY)),
        ("behind a text and a search", Refuse(500, BROKEN)),
    ],
    ids=lambda given: str(given.status) if isinstance(given, Refuse) else given,
)
def test_an_error_of_the_upstream_is_the_clients_and_it_tries_again(
    client: Proxied, where: str, refusal: Refuse, tmp_path: Path
) -> None:
    searching: list[Reply] = {
        "at first": [],
        "behind a search": [[search()]],
        "behind a text and a search": [[Say("I look. "), search()]],
    }[where]
    replies = [*searching, refusal, [search()], [real(7)], [Say("It is archived.")]]
    with staged(client, tmp_path, in_order(replies)) as stage:
        ran, said = stage.run("Archive invoice 7.")

    assert "It is archived." in ran.output
    assert stage.called == [("archive_invoice", {"number": 7})]
    first = said[0]
    if where == "behind a text and a search":
        assert first.status == 200
        assert refusal.content["error"]["message"].encode() in first.answer
    else:
        assert first.status == refusal.status
        assert json.loads(first.answer) == refusal.content
        sent = {key.lower(): value for key, value in refusal.headers.items()}
        assert {key: first.answered[key] for key in sent} == sent
    check_history(stage.model.turns[len(searching) + 1 :])


@BOTH
@pytest.mark.parametrize(
    ("hidden", "sent"),
    [(0, signal.SIGINT), (1, signal.SIGINT), (1, signal.SIGKILL)],
    ids=["in the first round", "in a later round", "killed in a later round"],
)
def test_a_client_that_is_stopped_in_mid_stream_stops_the_upstream(
    client: Proxied, hidden: int, sent: signal.Signals, tmp_path: Path
) -> None:
    replies = [*[[search()]] * hidden, Hang([Say("I think about it, and it takes long.")])]
    with (
        staged(client, tmp_path, in_order(replies)) as stage,
        stage.proxy.listening() as url,
    ):
        session = Session.under(stage.folder, url, client.model)
        client.prepare(session, office_server(stage.log))
        process = start(client, session, "Archive invoice 7.")
        try:
            assert stage.model.hangs.wait(60)
            assert not stage.model.left.is_set()
            os.killpg(process.pid, sent)
            assert stage.model.left.wait(30)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@BOTH
def test_an_upstream_that_is_busy_behind_a_text_is_waited_for_and_the_client_hears_nothing(
    client: Proxied, tmp_path: Path
) -> None:
    busy = Refuse(429, LIMITED, RETRY)
    replies = [[THOUGHT, Say("I look. "), search()], busy, [real(7)], [Say("It is archived.")]]
    with staged(client, tmp_path, in_order(replies)) as stage:
        ran, said = stage.run("Archive invoice 7.")

    assert "It is archived." in ran.output
    assert [one.status for one in said] == [200, 200]
    turns = stage.model.turns
    assert turns[1].body == turns[2].body
    check_history(turns)


# ---- a proxy that is started again


def again(client: Proxied) -> tuple[str, ...]:
    return ("--continue",) if client.program == "claude" else ("resume", "--last")


TWO_TASKS: list[Sequence[Part]] = [
    [THOUGHT, Say("I look. "), search()],
    [OTHER_THOUGHT, real(7)],
    [Say("Seven is archived.")],
    [THOUGHT, real(8)],
    [Say("Eight is archived.")],
]


@BOTH
def test_a_kept_history_outlives_the_proxy(client: Proxied, tmp_path: Path) -> None:
    with staged(client, tmp_path, in_order(TWO_TASKS), store="file") as stage:
        stage.run("Archive invoice 7.")
        ran, _ = stage.run("Now archive invoice 8.", *again(client))

    assert "Eight is archived." in ran.output
    assert [given["number"] for _, given in stage.called] == [7, 8]
    turns = stage.model.turns
    assert len(turns) == 5
    check_history(turns)
    check_thought(THOUGHT, turns[1:])
    assert [call.name for call in turns[-1].calls] == ["tool_search", "tool_call", "tool_call"]


@BOTH
def test_a_search_that_led_to_no_call_stays_in_the_history(client: Proxied, tmp_path: Path) -> None:
    replies: list[Sequence[Part]] = [
        [THOUGHT, Say("I look. "), search()],
        [OTHER_THOUGHT, Say("There is a tool for it.")],
        [Say("As I said.")],
    ]
    with staged(client, tmp_path, in_order(replies), store="file") as stage:
        stage.run("Is there a tool that archives invoices?")
        ran, _ = stage.run("Really?", *again(client))

    assert "As I said." in ran.output
    turns = stage.model.turns
    assert len(turns) == 3
    check_history(turns)
    check_thought(THOUGHT, turns[1:])
    check_thought(OTHER_THOUGHT, turns[2:])


@BOTH
def test_without_the_history_a_conversation_goes_on_with_direct_calls(
    client: Proxied, tmp_path: Path
) -> None:
    with staged(client, tmp_path, in_order(TWO_TASKS)) as stage:
        stage.run("Archive invoice 7.")
        ran, _ = stage.run("Now archive invoice 8.", *again(client))

    assert "Eight is archived." in ran.output
    assert [given["number"] for _, given in stage.called] == [7, 8]
    turns = stage.model.turns
    assert len(turns) == 5
    check_history(turns[3:])
    named = [call.name for call in turns[-1].calls]
    assert named == ["mcp__office__archive_invoice", "tool_call"]
    # What led to calls that are gone is gone, too; what the answer says stays.
    assert OTHER_THOUGHT.signature not in turns[3].body.decode()
    assert "Seven is archived." in turns[3].body.decode()


# ---- Claude Code with a search of its own


def own_search(asked: Asked) -> Sequence[Part]:
    """A model that finds one tool by Claude Code's own search and calls it by name."""
    archive = asked.tool("archive_invoice")
    if asked.text_of("archive_invoice") is not None:
        return [Say("It is archived.")]
    if asked.text_of("ToolSearch") is not None:
        return [Call("mcp__office__archive_invoice", {"number": 7})] if archive else [Say("Lost.")]
    return [THOUGHT, Call("ToolSearch", {"query": "select:mcp__office__archive_invoice"})]


SEARCHING = ProxiedClaude(more={})


def test_claude_codes_own_search_passes_to_the_byte_where_the_upstream_understands_it(
    tmp_path: Path,
) -> None:
    with staged(SEARCHING, tmp_path, own_search, searches=True) as stage:
        ran, said = stage.run("Archive invoice 7.")

    assert "It is archived." in ran.output
    assert stage.called == [("archive_invoice", {"number": 7})]
    assert [asked.body for asked in stage.model.turns] == [one.body for one in said]
    assert b"tool_reference" in said[-1].body


def test_claude_codes_own_search_is_said_in_plain_words_where_the_upstream_does_not(
    tmp_path: Path,
) -> None:
    def play(asked: Asked) -> Sequence[Part]:
        if asked.text_of("ToolSearch") is None:
            return [THOUGHT, Call("ToolSearch", {"query": "select:mcp__office__archive_invoice"})]
        if asked.text_of("tool_call") is None:
            return [real(7)]
        return [Say("It is archived.")]

    with staged(SEARCHING, tmp_path, play) as stage:
        ran, said = stage.run("Archive invoice 7.")

    assert "It is archived." in ran.output
    assert stage.called == [("archive_invoice", {"number": 7})]
    assert b"tool_reference" in said[-1].body
    for asked in stage.model.turns:
        assert b"tool_reference" not in asked.body
        assert b"defer_loading" not in asked.body
        assert "advanced-tool-use" not in json.dumps(dict(asked.headers))
    assert "mcp__office__archive_invoice" in stage.model.turns[1].text_of("ToolSearch")


# ---- `toolfold run`


def run_through(
    client: Proxied, folder: Path, play: Play, *more: str, **environment: str
) -> tuple[Ran, ScriptedModel, list[tuple[str, dict[str, object]]]]:
    """Start a client by `toolfold run`, which is told of the upstream as the client would be."""
    if not is_installed(client):
        pytest.skip(f"{client.program} is not installed: run `make interop`, with npm")
    with ScriptedModel(play) as model:
        session = Session.under(folder, model.url, client.model)
        client.prepare(session, office_server(folder / "calls"))
        launched = Launched(client, more, environment)
        ran = converse(launched, session, "Archive invoice 7.", seconds=150)
    return ran, model, office.called(folder / "calls")


@dataclass(frozen=True)
class Launched:
    """A client that `toolfold run` starts, without anything that points it at a model."""

    client: Proxied
    more: Sequence[str]
    given: Mapping[str, str]
    name: str = ""
    program: str = ""

    def prepare(self, session: Session, gateway: Sequence[str]) -> None:
        """There is nothing more."""

    def command(self, session: Session, prompt: str) -> Sequence[str]:
        own = [TOOLFOLD, "run", "--enabled", "on", *self.more, "--"]
        if isinstance(self.client, ProxiedClaude):
            return [*own, *self.client.command(session, prompt)]
        free = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return [*own, program(self.client), "exec", "--model", session.model, *free, prompt]

    def environment(self, session: Session) -> Mapping[str, str]:
        path = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        if isinstance(self.client, ProxiedClaude):
            own = ClaudeCode(more={}).environment(session)
        else:
            own = {"OPENAI_BASE_URL": f"{session.model_url}/v1", "OPENAI_API_KEY": KEY}
        return {**path, **own, **self.given}


@BOTH
def test_toolfold_run_starts_a_client_whose_tools_are_folded(
    client: Proxied, tmp_path: Path
) -> None:
    replies: list[Sequence[Part]] = [[THOUGHT, search()], [real(7)], [Say("It is archived.")]]
    ran, model, called = run_through(client, tmp_path, in_order(replies))

    assert ran.code == 0, ran.complaint
    assert "It is archived." in ran.output
    assert called == [("archive_invoice", {"number": 7})]
    assert len(model.turns) == 3
    check_history(model.turns)
    assert [name for name in model.turns[0].names if name in BRIDGE] == BRIDGE
    assert "tokens" in ran.complaint.splitlines()[-1]


@BOTH
def test_toolfold_run_ends_as_the_client_does(client: Proxied, tmp_path: Path) -> None:
    refused = Refuse(
        400, {"type": "error", "error": {"type": "invalid_request_error", "message": "No."}}
    )
    ran, _, _ = run_through(client, tmp_path, in_order([refused] * 20))
    assert ran.code == 1
