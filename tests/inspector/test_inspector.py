"""The inspector: what its views say, who may read them, and that a stranger's text is inert."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from base64 import b64encode
from importlib.resources import files
from pathlib import Path
from threading import Event
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from support.inspecting import ask
from toolfold import CatalogError, Settings, Tool
from toolfold._json_values import compact
from toolfold.catalog import Catalog
from toolfold.cli import main
from toolfold.demo import demo_catalog
from toolfold.inspector.conversations import recorded_files
from toolfold.inspector.inspected import Inspected
from toolfold.tokens import estimate
from toolfold.tool import Shape
from toolfold.wire import write

SCRIPT = "<img src=x onerror=alert(1)></script><script>alert(1)</script>"
HOSTILE = Catalog(
    [
        Tool(f"{SCRIPT}{i}", SCRIPT, {"type": "object", "properties": {SCRIPT: {"type": "string"}}})
        for i in range(3)
    ]
)


def looked_over(catalog: Catalog) -> dict[str, Any]:
    """Return what the checkup comes to once it is over."""
    inspected = Inspected(catalog, Settings(), "a catalog")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = inspected.checkup.view(retrieval=True)
        if found["findings"] is not None and found["hard_to_find"] is not None:
            return found
        Event().wait(0.01)
    raise AssertionError("the checkup does not end")


# ---- the views


def test_the_catalog_is_shown_by_source_with_what_each_tool_costs() -> None:
    value = ask("/api/catalog").value

    assert value["tools"] == 207
    # The list's brackets and commas are counted once, each tool's characters are rounded up.
    assert abs(value["tokens"] - sum(source["tokens"] for source in value["sources"])) < 207
    costs = [source["tokens"] for source in value["sources"]]
    assert costs == sorted(costs, reverse=True)
    forge = next(source for source in value["sources"] if source["name"] == "forge")
    assert {"name": "forge__create_issue", "tokens": 235} in forge["tools"]


def test_what_would_hurt_is_said_with_the_tools_it_is_said_of() -> None:
    twins = Catalog([Tool("send_mail", "Send a mail."), Tool("send-mail", "")])

    found = looked_over(twins)["findings"]

    assert {"severity", "kind", "tools", "message"} == set(found[0])
    assert [f["kind"] for f in found if f["tools"] == ["send-mail"]] == ["missing description"]


def test_a_tool_that_no_search_finds_comes_with_the_words_to_add() -> None:
    crowd = [Tool(f"reserve_room_{i}", "Reserve accommodation in a hotel.") for i in range(9)]
    hidden = Tool("zz", "Book a hotel room.")

    found = looked_over(Catalog([*crowd, hidden]))

    (hard,) = [each for each in found["hard_to_find"] if each["name"] == "zz"]
    assert hard["words_to_add"]
    assert hard["shadowed_by"]
    assert found["searched"] == found["tools"] == 10


def test_a_large_catalog_is_searched_through_only_when_somebody_asks() -> None:
    many = Catalog([Tool(f"tool_{i}", f"Does the thing number {i}.") for i in range(501)])
    inspected = Inspected(many, Settings(), "many")

    unasked = inspected.checkup.view(retrieval=False)

    assert (unasked["searching"], unasked["hard_to_find"]) == (False, None)
    assert inspected.checkup.view(retrieval=True)["searching"]


@pytest.mark.skipif(sys.platform == "win32", reason="running gateways are asked over unix sockets")
def test_where_nothing_runs_the_live_view_is_empty() -> None:
    assert ask("/api/live").value == {"running": []}


def test_a_tool_is_shown_as_a_model_reads_it_in_every_shape() -> None:
    value = ask("/api/tool", name="create_calendar_event").value

    assert value["signature"].startswith("create_calendar_event(")
    assert json.loads(value["described"])["name"] == "create_calendar_event"
    assert json.loads(value["wire"]["anthropic"]["text"])["input_schema"]["type"] == "object"
    assert set(value["wire"]) == set(get_args(Shape))
    for shape, own in value["wire"].items():
        tool = demo_catalog()["create_calendar_event"]
        assert own == {"text": (text := compact(write(tool, shape))), "tokens": estimate(text)}
    assert value["found"]["by_description"] == 1


def test_a_search_shows_hits_with_reasons_beside_the_answer_a_model_reads() -> None:
    value = ask("/api/search", q="create a pull request").value

    first = value["hits"][0]
    assert first["name"] == "forge__create_pull_request"
    assert first["signature"] in value["answer"]
    assert "words" in first["why"]
    assert value["tokens"] > 0


def test_a_need_below_the_floor_shows_what_was_nearest() -> None:
    value = ask("/api/search", q="create a pull request", floor=1).value

    assert value["hits"] == []
    (missed,) = value["missed"]
    assert missed["nearest"][0]["name"] == "forge__create_pull_request"


def test_why_not_says_the_place_and_what_stands_above() -> None:
    value = ask("/api/why-not", q="create a pull request", name="forge__merge_pull_request").value

    (row,) = value["needs"]
    assert row["place"] > 1
    assert row["above"][0]["name"] == "forge__create_pull_request"


def test_the_fold_follows_the_window_and_the_strategy() -> None:
    folded = ask("/api/fold", context_length=131_072).value
    passed = ask("/api/fold", context_length=1_000_000).value
    stubs = ask("/api/fold", strategy="stub", enabled="on").value

    assert (folded["active"], passed["active"]) == (True, False)
    assert folded["report"]["tokens_after"] < folded["report"]["tokens_before"] / 50
    assert stubs["report"]["strategy"] == "stub"


@pytest.mark.parametrize("window", [32_768, 131_072, 400_000])
@pytest.mark.parametrize("strategy", ["auto", "bridge", "reveal", "stub"])
def test_the_fold_says_what_the_command_says(window: int, strategy: str) -> None:
    given = ["--context-length", str(window), "--strategy", strategy, "--json"]
    said = json.loads(CliRunner().invoke(main, ["fold", *given]).output)

    shown = ask("/api/fold", context_length=window, strategy=strategy).value

    names = ("active", "strategy", "tokens_before", "tokens_after", "threshold_tokens", "kept")
    assert {name: shown["report"][name] for name in names} == {name: said[name] for name in names}
    assert [json.loads(tool["text"]) for tool in shown["tools"]] == said["tools"][:200]
    assert shown["guidance"] == said["guidance"]


def test_every_strategy_stands_beside_the_others_and_each_provider_is_a_row() -> None:
    rows = ask("/api/strategies", context_length=131_072, model="claude-opus-5").value["rows"]

    ways = {(row["strategy"], row["api"]): row for row in rows}
    assert set(ways) == {
        ("bridge", None),
        ("reveal", None),
        ("stub", None),
        ("native", "anthropic-messages"),
        ("native", "openai-responses"),
        ("hosted", "anthropic-messages"),
        ("hosted", "openai-responses"),
    }
    assert ways["native", "anthropic-messages"]["comes_to"] == "native"
    assert ways["stub", None]["after"] > ways["bridge", None]["after"]


def test_the_gate_may_be_moved_and_a_model_brings_its_window() -> None:
    wide = ask("/api/fold", context_length=400_000).value
    lowered = ask("/api/fold", context_length=400_000, gate=5).value
    known = ask("/api/fold", model="llama-3-8b").value

    assert (wide["active"], lowered["active"]) == (False, True)
    assert known["report"]["context_length"] == 8_192


def test_two_catalogs_answer_the_same_query() -> None:
    other = Catalog([Tool("post_letter", "Send a letter by post.")])

    titles = ask("/api/catalog", beside=[other]).value["catalogs"]
    first = ask("/api/search", q="send a letter", beside=[other]).value
    second = ask("/api/search", q="send a letter", beside=[other], catalog=1).value

    assert titles == ["the demo catalog", "another"]
    assert [hit["name"] for hit in second["hits"]] == ["post_letter"]
    assert "post_letter" not in [hit["name"] for hit in first["hits"]]
    assert ask("/api/search", q="a", beside=[other], catalog=2).status == 400


@pytest.mark.parametrize(
    ("path", "query", "error"),
    [
        ("/api/search", {}, "`q` is missing"),
        ("/api/search", {"q": "a", "floor": "x"}, "`floor` is 'x': write a number"),
        ("/api/search", {"q": "a", "floor": 7}, "`relevance_floor` is 7.0"),
        ("/api/search", {"q": "a", "ranker": "hybird"}, "write default | hybrid"),
        ("/api/fold", {"strategy": "x"}, "`strategy` is 'x'"),
        ("/api/fold", {"shape": "x"}, "`shape` is 'x'"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(
    path: str, query: dict[str, Any], error: str
) -> None:
    reply = ask(path, **query)

    assert reply.status == 400
    assert error in reply.value["error"]


def test_a_tool_that_is_not_there_is_not_found() -> None:
    assert ask("/api/tool", name="nothing_like_it_at_all").status == 404


# ---- the door


@pytest.mark.parametrize("path", ["/api/catalog", "/api/tool", "/api/search", "/api/fold", "/x"])
def test_nothing_but_the_pages_own_files_is_shown_without_the_key(path: str) -> None:
    assert ask(path, token=None).status == 401
    assert ask(path, token="another-token-of-some-length").status == 401


def test_another_name_for_this_machine_or_another_page_is_refused() -> None:
    assert ask("/", host="evil.example").status == 421
    assert ask("/api/catalog", origin="https://evil.example").status == 403
    assert ask("/api/catalog", method="POST").status == 405


def test_the_pages_files_hold_no_script_of_their_own_and_name_no_other_host() -> None:
    page = ask("/", token=None)

    assert page.status == 200
    assert "default-src 'none'; script-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    folder = files("toolfold.inspector") / "static"
    names = [f"/{file.name}" for file in folder.iterdir() if file.name != "icon.svg"]
    assert "/inspector.js" in names
    for body in (
        page.body,
        *(ask(name.replace("/index.html", "/"), token=None).body for name in names),
    ):
        assert b"http://" not in body
        assert b"https://" not in body
        for way in (b"innerHTML", b"outerHTML", b"insertAdjacentHTML", b"document.write", b"eval("):
            assert way not in body
    scripts = re.findall(rb"<script[^>]*>(.*?)</script>", page.body)
    assert scripts == [b""]
    frame = re.sub(rb"<style>.*?</style>", b"", page.body, flags=re.DOTALL)
    assert b" on" not in frame.replace(b"everything on", b"")


def test_the_frame_is_painted_without_another_file_its_styles_allowed_by_digest() -> None:
    page = ask("/", token=None)

    (styles,) = re.findall(rb"<style>(.*?)</style>", page.body, flags=re.DOTALL)
    assert b".bar {" in styles
    digest = b64encode(hashlib.sha256(styles).digest()).decode()
    assert f"style-src 'sha256-{digest}';" in page.headers["content-security-policy"]
    named = re.findall(rb'(?:src|href)="([^"#]+)"', page.body)
    assert sorted(named) == [b"begin.js", b"icon.svg"]


def test_every_script_is_open_and_asked_for_behind_the_first_paint() -> None:
    folder = files("toolfold.inspector") / "static"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".js"))
    begin = ask("/begin.js", token=None).body.decode()

    assert {ask(f"/{name}", token=None).status for name in names} == {200}
    (listed,) = re.findall(r"const FILES = \[(.*?)\]", begin, flags=re.DOTALL)
    assert sorted([*re.findall(r'"(\w+)"', listed), "begin"]) == [name[:-3] for name in names]


@pytest.mark.parametrize("site", [None, "cross-site", "same-site", "same-origin"])
def test_a_page_that_opened_this_one_has_no_hold_on_it(site: str | None) -> None:
    page = ask("/", token=None, site=site)

    assert page.headers["cross-origin-opener-policy"] == "same-origin"


def test_a_link_that_a_person_opened_needs_no_process_of_its_own() -> None:
    page = ask("/", token=None, site="none")

    assert "cross-origin-opener-policy" not in page.headers


@pytest.mark.parametrize("path", ["/api/catalog", "/api/search", "/api/fold", "/api/tool"])
def test_a_strangers_text_arrives_as_json_that_no_browser_takes_for_a_page(path: str) -> None:
    reply = ask(path, HOSTILE, q="alert", name=f"{SCRIPT}0")

    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert json.loads(reply.body)


# ---- the command


def test_it_listens_on_this_machine_only() -> None:
    ran = CliRunner().invoke(main, ["inspect", "--listen", "0.0.0.0:0", "--no-browser"])

    assert ran.exit_code != 0
    assert "the inspector is for this machine" in ran.output


def test_a_listen_that_is_no_address_says_how_to_write_one() -> None:
    ran = CliRunner().invoke(main, ["inspect", "--listen", "8790"])

    assert ran.exit_code != 0
    assert "write HOST:PORT" in ran.output


# ---- conversations


def test_a_recorded_chat_shows_the_real_calls_with_the_bridge_folded_away(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    ran = CliRunner().invoke(main, ["chat", "--script", "demo", "--transcript", str(file)])
    assert ran.exit_code == 0

    (listed,) = ask("/api/conversations", recorded=(file,)).value["conversations"]
    value = ask("/api/conversation", recorded=(file,), id=0).value

    said = "Remind me to call mum tonight at half past seven."
    assert (listed["name"], listed["kind"], listed["title"]) == ("chat.jsonl", "chat", said)
    assert value["kind"] == "chat"
    steps = [step for turn in value["turns"] for step in turn["steps"]]
    searched = next(step for step in steps if step["tool"] == "tool_search")
    called = next(step for step in steps if step["kind"] == "call")
    assert searched["kind"] == "bridge"
    assert searched["needs"]
    assert called["tool"] not in ("tool_search", "tool_describe", "tool_call")
    assert called["tool"] in value["turns"][0]["used"] + value["turns"][1]["used"]
    assert "create_calendar_event" in value["turns"][0]["found"]


def test_a_file_that_is_no_conversation_says_the_line(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text('{"role": "user", "text": "Hi"}\n{"role": "nobody"}\n')

    reply = ask("/api/conversation", recorded=(file,), id=0)

    assert reply.status == 400
    assert f"`{file}`, line 2" in reply.value["error"]


@pytest.mark.parametrize(
    ("number", "status"), [("1", 404), ("-1", 400), ("x", 400), ("9" * 99, 400)]
)
def test_only_conversations_that_were_given_can_be_asked_for(
    tmp_path: Path, number: str, status: int
) -> None:
    assert ask("/api/conversation", recorded=(tmp_path / "a",), id=number).status == status


def test_what_cannot_be_read_is_listed_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"role": "nobody"}')
    gone = tmp_path / "gone.json"

    listed = ask("/api/conversations", recorded=(tmp_path / "bad.json", gone)).value

    assert [bool(each["error"]) for each in listed["conversations"]] == [True, True]


def test_a_folder_is_looked_through_and_a_path_that_is_not_there_is_an_error(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("b.json", "in/a.jsonl", "notes.txt"):
        (tmp_path / name).write_text("{}")

    found = recorded_files([str(tmp_path)])

    assert [file.name for file in found] == ["b.json", "a.jsonl"]
    with pytest.raises(CatalogError, match="there is no"):
        recorded_files([str(tmp_path / "elsewhere")])
