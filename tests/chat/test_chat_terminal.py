"""`toolfold chat` as a program: over a real wire, and on a real terminal."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.chatting import COMMAND, Ran, prepare, timeless
from support.gateways import ODD
from support.model_server import ModelServer, Raw, Says, event, openai_chunks
from toolfold import prompts
from toolfold.demo.host import SYSTEM
from toolfold.runtime import Call


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path, monkeypatch)


# ---- over a real wire

SEARCH = Says(calls=(Call("tool_search", '{"query": "cancel it", "limit": 1}', "a"),), prompt=900)
ASK = Says(
    "Let me look.",
    (Call("mail__search_mail", '{"from": "Sam"}', "b"),),
    prompt=1_000,
    cached=800,
    completion=20,
)
ANSWER = Says("One, about the *review*.", prompt=1_100, completion=9)


def command(*arguments: str, **environment: str) -> Ran:
    """Run the command in a process of its own."""
    ran = subprocess.run(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )
    return Ran(ran.returncode, ran.stdout, timeless(ran.stderr))


def test_one_message_is_answered_on_standard_output_and_the_rest_is_beside_it() -> None:
    with ModelServer(SEARCH, ASK, ANSWER) as server:
        ran = command(
            "--model", "any", "--base-url", server.openai, "--once", "Any mail from Sam?"
        )  # fmt: skip

    assert ran == Ran(
        0,
        "One, about the *review*.\n",
        '  ⌕ "cancel it" → delete_calendar_event\n'
        "Let me look.\n"
        '  ▶ mail__search_mail {"from": "Sam"}\n'
        "  ✓ mail__search_mail 0 ms, 150 chars\n"
        "  3 round trips · 3,000 tokens read (800 cached), 29 written · 89,427 saved by folding "
        "(29,809 × 3) · 2 tools kept, 205 deferred\n",
    )
    first = server.requests[0].body
    assert first["messages"][0]["content"].startswith(SYSTEM)
    assert [tool["function"]["name"] for tool in first["tools"]] == [
        "list_calendar_events", "mail__search_mail", "tool_search", "tool_describe", "tool_call",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("api", "path", "system"),
    [("anthropic", "", "system"), ("openai-responses", "/v1", "instructions")],
)
def test_one_message_is_answered_as_one_json_object_by_the_other_apis_too(
    api: str, path: str, system: str
) -> None:
    with ModelServer(ASK, ANSWER) as server:
        ran = command(
            "--model", "any", "--api", api, "--base-url", server.url + path, "--json",
            "--once", "Any mail from Sam?", "--system", "Be brief.",
        )  # fmt: skip

    printed = json.loads(ran.out)
    assert ran.code == 0
    assert {key: printed[key] for key in ("text", "stop", "round_trips", "usage")} == {
        "text": "One, about the *review*.",
        "stop": "end",
        "round_trips": 2,
        "usage": {"prompt": 2_100, "completion": 29, "cached": 800},
    }
    assert [(a["kind"], a["tool"], a["is_error"]) for a in printed["activities"]] == [
        ("started", "mail__search_mail", False),
        ("finished", "mail__search_mail", False),
    ]
    assert "Be brief." in json.dumps(server.requests[0].body[system])


def test_an_answer_that_is_not_whole_fails() -> None:
    with ModelServer(Says("I go on and", stop="length")) as server:
        ran = command("--model", "any", "--base-url", server.openai, "--once", "Tell me all.")

    assert (ran.code, ran.out) == (1, "I go on and\n")
    assert "  ⊘ stopped: the answer reached its limit, or repeated itself\n" in ran.err


def test_a_key_goes_to_a_server_of_this_machine_only_where_it_is_named_for_it() -> None:
    with ModelServer(ANSWER, ANSWER) as server:
        common = ("--model", "any", "--base-url", server.openai, "--once", "Hi.")
        command(*common, OPENAI_API_KEY="one-key")
        command(*common, "--api-key-env", "LOCAL_KEY", LOCAL_KEY="other-key")
        unset = command(*common, "--api-key-env", "NO_KEY")

    sent = [request.headers.get("authorization") for request in server.requests]
    assert sent == [None, "Bearer other-key"]
    assert unset == Ran(
        2,
        "",
        "error: the environment variable `NO_KEY` is not set\n\n"
        "hint: set it, or leave out --api-key-env where no key is needed\n",
    )


# ---- a real terminal

pty = pytest.importorskip("pty", reason="needs a terminal of the POSIX kind")


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self.shown = ""
        self._read = 0

    def until(self, text: str) -> str:
        """Wait until a text is shown behind what was waited for last; return what came."""
        ends = time.monotonic() + 20
        while text not in self.shown[self._read :]:
            ready, _, _ = select.select([self._descriptor], [], [], max(ends - time.monotonic(), 0))
            more = self._more() if ready else b""
            assert more, f"{text!r} was not shown:\n{self.shown}"
            self.shown += more.decode(errors="replace")
        start, self._read = self._read, self.shown.index(text, self._read) + len(text)
        return self.shown[start : self._read]

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def end(self) -> int:
        """Wait for the program's end and return its exit code."""
        while more := self._more():
            self.shown += more.decode(errors="replace")
        return self.process.wait(timeout=20)

    def _more(self) -> bytes:
        try:
            return os.read(self._descriptor, 65_536)
        except OSError:  # Linux says so when the other side is gone
            return b""


# Ctrl-C is a signal only on the terminal that controls the program.
OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@contextmanager
def terminal(*arguments: str, **environment: str) -> Iterator[Terminal]:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL, *COMMAND, *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment},
    )
    os.close(follower)
    try:
        yield Terminal(process, leader)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(leader)


ASKING = """
turns:
  - user: Wipe things.
    replies:
      - calls: [{wipe: {what: a}}]
      - calls: [{wipe: {what: b}}]
      - calls: [{wipe: {what: c}}]
      - Done.
"""


def test_a_person_says_yes_always_or_no_at_the_prompt() -> None:
    Path("script.yaml").write_text(ASKING, encoding="utf-8")

    with terminal("--script", "script.yaml", "--tools", "tools.py", NO_COLOR="1") as seen:
        seen.until('Run wipe {"what": "a"}? [y]es / [a]lways / [N]o ')
        seen.type("\n")
        seen.until("⊘ wipe refused")
        seen.until('Run wipe {"what": "b"}? [y]es / [a]lways / [N]o ')
        seen.type("always\n")
        seen.until('▶ wipe {"what": "b"}')
        seen.until('▶ wipe {"what": "c"}')
        code = seen.end()

    assert code == 0
    assert "\x1b" not in seen.shown


def test_what_was_typed_before_a_question_does_not_answer_it() -> None:
    Path("script.yaml").write_text(ASKING, encoding="utf-8")

    with terminal("--script", "script.yaml", "--tools", "tools.py") as seen:
        seen.type("y\n")
        for _ in "abc":
            seen.until("[N]o ")
            seen.type("n\n")
        code = seen.end()

    assert code == 0
    assert seen.shown.count("refused") == 3
    assert "▶ wipe" not in seen.shown


def test_ctrl_c_at_a_question_tells_the_tools_and_ends_a_script() -> None:
    Path("script.yaml").write_text(ASKING, encoding="utf-8")

    with terminal("--script", "script.yaml", "--tools", "tools.py") as seen:
        seen.until("[N]o ")
        seen.type("\x03")
        code = seen.end()

    assert code == 130
    assert "▶ wipe" not in seen.shown


def test_progress_is_shown_in_place_on_a_terminal() -> None:
    script = "turns: [{user: a, replies: [{calls: [{paint: {what: b}}]}, {text: c}]}]"
    Path("script.yaml").write_text(script, encoding="utf-8")

    with terminal("--script", "script.yaml", "--tools", "tools.py", NO_COLOR="1") as seen:
        code = seen.end()

    assert code == 0
    line = "  ⋯ paint 50% mixing [2Jcolours"
    assert f"{line}\r{' ' * len(line)}\r  ✓ paint" in seen.shown


def _unfinished(text: str) -> Raw:
    """Return a reply that begins and does not go on."""
    chunks = list(openai_chunks(Says(text)))[:-2]
    return Raw([event(chunk) for chunk in chunks], then="hold")


def test_ctrl_c_cancels_the_answer_tells_the_server_and_gives_the_prompt_back() -> None:
    script = (_unfinished("Once upon a time"), Says("Hello again."))
    with (
        ModelServer(*script) as server,
        terminal("--model", "any", "--base-url", server.openai) as seen,
    ):
        seen.until("any · 2 tools kept, 205 deferred")
        seen.until("> ")
        seen.type("Tell me a story.\n")
        seen.until("Once upon a")  # whether the last word is whole is not known yet
        seen.type("\x03")
        seen.until("cancelled")
        assert server.gone.wait(5)
        seen.until("> ")
        seen.type("Are you there?\n")
        seen.until("Hello again.")
        seen.until("1 round trip ·")
        seen.until("> ")
        seen.type("\x04")
        code = seen.end()

    assert code == 0
    assert "Traceback" not in seen.shown


def test_ctrl_c_reaches_the_tools_and_their_calls_are_answered() -> None:
    hang = Says(calls=(Call("hang", "{}", "a"),))
    with (
        ModelServer(hang, Says("Fine.")) as server,
        terminal("--model", "any", "--base-url", server.openai, "--tools", "tools.py") as seen,
    ):
        seen.until("> ")
        seen.type("Hang.\n")
        seen.until("▶ hang")
        _wait_for_file("hanging")
        seen.type("\x03")
        seen.until("cancelled")
        assert Path("told").exists()
        seen.until("> ")
        seen.type("Go on.\n")
        seen.until("Fine.")
        seen.until("> ")
        seen.type("\x04")
        code = seen.end()

    assert code == 0
    roles = [message["role"] for message in server.requests[1].body["messages"]]
    assert roles == ["user", "assistant", "tool", "user"]
    assert server.requests[1].body["messages"][2]["content"] == prompts.CANCELLED


def test_ctrl_c_at_the_prompt_ends() -> None:
    with (
        ModelServer() as server,
        terminal("--model", "any", "--base-url", server.openai) as seen,
    ):
        seen.until("> ")
        ends = time.monotonic() + 5
        # Readline does not hear a signal that comes just before it begins to wait.
        while seen.process.poll() is None and time.monotonic() < ends:
            seen.type("\x03")
            with suppress(subprocess.TimeoutExpired):
                seen.process.wait(timeout=1)

    assert seen.process.returncode == 0
    assert server.requests == []


def _wait_for_file(name: str) -> None:
    ends = time.monotonic() + 5
    while not Path(name).exists():
        assert time.monotonic() < ends, f"{name} was not made"
        time.sleep(0.01)


def _with_a_server() -> None:
    server = {
        "command": sys.executable,
        "args": [ODD, "stdio"],
        "env": {"MARK": str(Path("m").absolute())},
    }
    whole = {"mcpServers": {"one": server}, "serve": {"state_dir": "state"}}
    Path("f.json").write_text(json.dumps(whole), encoding="utf-8")


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_reaches_a_server_and_the_end_of_the_chat_ends_it() -> None:
    _with_a_server()
    pid = Says(calls=(Call("one__pid", "{}", "a"),))
    slow = Says(calls=(Call("one__slow", '{"x": "30"}', "b"),))
    script = (pid, Says("One."), slow, Says("Two."))
    more = ("--config", "f.json", "--approve", "never")
    with (
        ModelServer(*script) as server,
        terminal("--model", "any", "--base-url", server.openai, *more) as seen,
    ):
        seen.until("1 of 1 server: one ready")
        seen.until("> ")
        seen.type("Who?\n")
        seen.until("One.")
        number = int(server.requests[1].body["messages"][-1]["content"])
        seen.until("> ")
        seen.type("Be slow.\n")
        seen.until("▶ one__slow")
        _wait_for_file("m")
        seen.type("\x03")
        seen.until("cancelled")
        seen.until("> ")
        assert _is_running(number)
        seen.type("Go on.\n")
        seen.until("Two.")
        seen.until("> ")
        seen.type("\x04")
        code = seen.end()

    assert code == 0
    assert Path("m").read_text(encoding="utf-8") == "started 30\ncancelled 30\n"
    assert not _is_running(number)


def test_a_server_that_dies_while_the_person_thinks_is_back_when_it_is_asked() -> None:
    _with_a_server()
    pid = Says(calls=(Call("one__pid", "{}", "a"),))
    more = ("--config", "f.json", "--approve", "never")
    with (
        ModelServer(pid, Says("One."), pid, Says("Two.")) as server,
        terminal("--model", "any", "--base-url", server.openai, *more) as seen,
    ):
        seen.until("> ")
        seen.type("Who?\n")
        seen.until("One.")
        seen.until("> ")
        first = int(server.requests[1].body["messages"][-1]["content"])
        os.kill(first, signal.SIGKILL)
        # Nothing runs for the chat now but its event loop, which buries the server.
        ends = time.monotonic() + 10
        while _is_running(first):
            assert time.monotonic() < ends
            time.sleep(0.01)
        seen.type("And now?\n")
        seen.until("Two.")
        second = int(server.requests[3].body["messages"][-1]["content"])
        seen.until("> ")
        seen.type("\x04")
        code = seen.end()

    assert code == 0
    assert second != first
    assert not _is_running(second)


def test_ctrl_c_while_servers_start_ends_them() -> None:
    server = {"command": sys.executable, "args": [ODD, "stdio", "hang"]}
    whole = {"mcpServers": {"one": ECHOING, "mute": server}, "serve": {"state_dir": "state"}}
    Path("f.json").write_text(json.dumps(whole), encoding="utf-8")
    Path("script.yaml").write_text("turns: [{user: a, replies: [b]}]", encoding="utf-8")

    with terminal("--script", "script.yaml", "--config", "f.json") as seen:
        seen.until("1 of 2 servers: one ready")
        children = _children(seen.process.pid)
        seen.type("\x03")
        code = seen.end()

    assert code == 130
    assert len(children) == 2
    assert not any(map(_is_running, children))
    assert "Traceback" not in seen.shown


ECHOING = {"command": sys.executable, "args": [ODD, "stdio"]}


def _children(pid: int) -> list[int]:
    if not Path("/proc/self/task").exists():
        pytest.skip("needs /proc to see the processes")
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text(encoding="ascii").split()]


def test_a_question_of_one_message_can_be_answered_at_the_terminal() -> None:
    wipe = Says(calls=(Call("wipe", '{"what": "it"}', "a"),))
    with (
        ModelServer(wipe, Says("Wiped.")) as server,
        terminal(
            "--model", "any", "--base-url", server.openai, "--tools", "tools.py", "--once", "Wipe."
        ) as seen,
    ):  # fmt: skip
        seen.until("[N]o ")
        seen.type("y\n")
        seen.until("✓ wipe")
        seen.until("Wiped.")
        code = seen.end()

    assert code == 0


def test_a_tool_that_will_not_stop_does_not_hold_the_terminal() -> None:
    stubborn = Says(calls=(Call("stubborn", "{}", "a"),))
    with (
        ModelServer(stubborn) as server,
        terminal("--model", "any", "--base-url", server.openai, "--tools", "tools.py") as seen,
    ):
        seen.until("> ")
        seen.type("Go.\n")
        seen.until("▶ stubborn")
        _wait_for_file("going")
        seen.type("\x03")
        seen.until("cancelled")
        seen.until("> ")
        seen.type("\x04")
        code = seen.end()

    assert code == 0
    assert "Traceback" not in seen.shown


def test_bytes_that_are_no_text_do_not_end_a_conversation() -> None:
    with ModelServer(Says("What?"), Says("Ah.")) as server:
        ran = subprocess.run(
            [*COMMAND, "--model", "any", "--base-url", server.openai],
            input=b"caf\xe9\nHi.\n",
            capture_output=True,
            timeout=30,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )

    assert ran.returncode == 0
    said = [request.body["messages"][-1]["content"] for request in server.requests]
    assert said == ["caf\ufffd", "Hi."]
