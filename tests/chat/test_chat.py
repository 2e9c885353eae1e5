"""`toolfold chat`: scripts, tools, what is shown, what is written down, what is refused."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner

from support.chatting import Ran, prepare, timeless
from toolfold import prompts
from toolfold.chat import Feed, Screen, Talk, Transcript, load_script
from toolfold.cli import main
from toolfold.demo.host import SYSTEM, DemoHost
from toolfold.errors import ConfigError
from toolfold.runtime import Agent, Says, ScriptedModel, calls, says


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path, monkeypatch)


def run(*arguments: str, stdin: str | None = None) -> Ran:
    result = CliRunner().invoke(main, ["chat", *arguments], input=stdin)
    return Ran(result.exit_code, timeless(result.stdout), timeless(result.stderr))


def play(script: str, *arguments: str) -> Ran:
    Path("script.yaml").write_text(dedent(script), encoding="utf-8")
    return run("--script", "script.yaml", *arguments)


# ---- scripts


def test_the_bundled_script_shows_search_call_correction_approval_and_memory() -> None:
    ran = run("--script", "demo")

    assert ran.err == ""
    assert ran.code == 0
    assert ran.out == BUNDLED


def test_a_script_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))

    before = sorted(tmp_path.rglob("*"))

    assert run("--script", "demo").code == 0

    assert sorted(tmp_path.rglob("*")) == before


BUNDLED = """\
the script demo · 2 tools kept, 205 deferred · 30,506 tokens of tools a request, folded to 697
> Remind me to call mum tonight at half past seven.
  ⌕ "remind me tonight" → create_calendar_event, set_out_of_office, home__create_routine, respond_to_invitation and 1 more
  ▶ create_calendar_event {"title": "Call mum", "start": {"date_time": "2026-11-15T19:30:00+01:00…
  ✓ create_calendar_event 0 ms, 41 chars
I will remind you at 19:20, ten minutes before.
  3 round trips · 3,454 tokens read (2,086 cached), 70 written · 89,427 saved by folding (29,809 × 3) · 2 tools kept, 205 deferred

> What does Sam want, and which issues are open in acme/website?
  ⌕ "list the open issues of a repository" → forge__list_issues, forge__create_issue, forge__list_pull_requests
  ▶ mail__search_mail {"from": "Sam"}
  ✓ mail__search_mail 0 ms, 150 chars
  ✗ forge__list_issues was not run. state: is not one of "open", "closed", "all". Signature: forge__list_issues(r…
  ▶ mail__read_mail {"mail_id": "mail_2"}
  ✓ mail__read_mail 0 ms, 214 chars
  ▶ forge__list_issues {"repo": "acme/website", "state": "open"}
  ✓ forge__list_issues 0 ms, 183 chars
Sam asks you to show the sign-in page at tomorrow's review, and it is blank on a phone (issue 1). The opening hours on holidays (issue 2) are open too.
  4 round trips · 7,007 tokens read (6,395 cached), 128 written · 119,236 saved by folding (29,809 × 4) · 2 tools kept, 205 deferred

> Cancel the dentist on Tuesday.
  ⌕ "cancel an appointment" → delete_calendar_event, travel__cancel_booking
  ▶ list_calendar_events {"from": "2026-11-17", "to": "2026-11-18"}
  ✓ list_calendar_events 0 ms, 101 chars
Run delete_calendar_event {"event_id": "evt_2"}? [y]es / [a]lways / [N]o y
  ▶ delete_calendar_event {"event_id": "evt_2"}
  ✓ delete_calendar_event 0 ms, 59 chars
The dentist is off your calendar.
  3 round trips · 6,668 tokens read (6,306 cached), 56 written · 89,427 saved by folding (29,809 × 3) · 2 tools kept, 205 deferred

> And remind me tomorrow at nine to find another one.
  ▶ create_calendar_event {"title": "Find another dentist", "start": {"date_time": "2026-11-16T09…
  ✓ create_calendar_event 0 ms, 41 chars
Done, tomorrow at nine.
  2 round trips · 4,791 tokens read (4,709 cached), 42 written · 59,618 saved by folding (29,809 × 2) · 2 tools kept, 205 deferred
"""  # noqa: E501


def test_the_demo_ends_with_the_same_conversation() -> None:
    result = CliRunner().invoke(main, ["demo"])

    assert result.exit_code == 0
    told = [line for line in BUNDLED.splitlines()[1:] if line]
    shown = [line.removeprefix("   ") for line in timeless(result.stdout).splitlines()]
    assert [line for line in told if line not in shown] == []


def test_each_turn_of_a_script_is_one_json_object() -> None:
    ran = run("--script", "demo", "--json")

    turns = [json.loads(line) for line in ran.out.splitlines()]
    assert [turn["round_trips"] for turn in turns] == [3, 4, 3, 2]
    assert [turn["stop"] for turn in turns] == ["end"] * 4
    assert turns[3]["text"] == "Done, tomorrow at nine."
    assert turns[3]["saved"] == 2 * (turns[0]["saved"] // 3) > 0
    assert turns[0]["usage"].keys() == {"prompt", "completion", "cached"}
    assert [(a["kind"], a["tool"]) for a in turns[0]["activities"]] == [
        ("searched", "tool_search"),
        ("started", "create_calendar_event"),
        ("finished", "create_calendar_event"),
    ]
    assert "✓ create_calendar_event" in ran.err


def test_a_call_that_needs_a_yes_is_denied_where_nobody_can_be_asked() -> None:
    script = """
        turns:
          - user: Wipe the disk.
            replies:
              - calls: [{wipe: {what: disk}}]
              - I was not allowed to.
        """

    ran = play(script, "--tools", "tools.py", "--transcript", "t.jsonl")

    assert ran.code == 0
    assert "  ⊘ wipe: it needs a yes, and there is no terminal to ask at\n" in ran.out
    assert "▶ wipe" not in ran.out
    assert "wiped" not in Path("t.jsonl").read_text("utf-8")


def test_the_model_is_not_told_that_somebody_said_no_who_was_never_asked() -> None:
    script = """
        turns:
          - user: Wipe the disk.
            replies:
              - calls: [{wipe: {what: disk}}]
              - I was not allowed to.
        """

    ran = play(script, "--tools", "tools.py", "--transcript", "t.jsonl")

    told = Path("t.jsonl").read_text("utf-8")
    assert "  ⊘ wipe refused: The user must be asked first, and cannot be asked here." in ran.out
    assert "wipe was not run. The user must be asked first, and cannot be asked here." in told
    assert "said no" not in told


def test_approvals_of_a_script_are_shown_as_if_typed() -> None:
    script = """
        turns:
          - user: Wipe three things.
            replies:
              - calls: [{wipe: {what: a}}]
              - calls: [{wipe: {what: b}}]
              - calls: [{wipe: {what: c}}, {wipe: {what: d}}]
              - Done.
            approve: [no, yes, always]
        """

    ran = play(script, "--tools", "tools.py")

    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if "wipe" in line] == [
        'Run wipe {"what": "a"}? [y]es / [a]lways / [N]o n',
        f"  ⊘ wipe refused: {prompts.DENIED}",
        'Run wipe {"what": "b"}? [y]es / [a]lways / [N]o y',
        '  ▶ wipe {"what": "b"}',
        "  ✓ wipe 0 ms, 7 chars",
        'Run wipe {"what": "c"}? [y]es / [a]lways / [N]o a',
        '  ▶ wipe {"what": "c"}',
        "  ✓ wipe 0 ms, 7 chars",
        '  ▶ wipe {"what": "d"}',
        "  ✓ wipe 0 ms, 7 chars",
    ]


@pytest.mark.parametrize(
    ("approve", "asked"),
    [("destructive", ["wipe"]), ("writes", ["wipe", "paint"]), ("never", []),
     ("all", ["wipe", "paint", "look"])],
)  # fmt: skip
def test_the_person_chooses_what_to_be_asked_about(approve: str, asked: list[str]) -> None:
    script = """
        turns:
          - user: Do it all.
            replies:
              - calls: [{wipe: {what: a}}, {paint: {what: b}}, {look: {at: c}}]
              - Done.
        """

    ran = play(script, "--tools", "tools.py", "--approve", approve)

    assert re.findall(r"⊘ (\w+): it needs a yes", ran.out) == asked
    assert re.findall(r"▶ (\w+)", ran.out) == [
        name for name in ("wipe", "paint", "look") if name not in asked
    ]


def test_a_script_has_results_for_tools_that_do_not_run() -> None:
    Path("catalog.json").write_text('[{"name": "weather"}, {"name": "tide"}, {"name": "moon"}]')
    script = """
        turns:
          - user: How is it outside?
            replies:
              - calls: [{weather: {}}, {tide: null}, {moon: {}}]
              - Cold.
        results:
          weather: {degrees: 4, on: 2026-11-15, at: 19:30}
          tide: {error: no water}
        """

    ran = play(script, "--catalog", "catalog.json", "--transcript", "t.jsonl")

    assert ran.code == 0
    assert "  ✓ weather 0 ms, 44 chars\n" in ran.out
    assert "  ✗ tide 0 ms: no water\n" in ran.out
    assert "  ✗ moon 0 ms: moon is not connected here: only its definition is known." in ran.out
    texts = [json.loads(line)["text"] for line in Path("t.jsonl").read_text("utf-8").splitlines()]
    assert texts[2] == '{"degrees":4,"on":"2026-11-15","at":"19:30"}'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "`script.yaml` is empty\n\nhint: write `turns:`"),
        ("- a", "`script.yaml`, line 1: the script is no mapping\n\n"
         "hint: write `turns:`, `results:`"),
        ("turn: []", "`script.yaml`, line 1: unknown key `turn`\n\nhint: did you mean `turns`?"),
        ("results: {}", "`script.yaml`, line 1: the script has no `turns`\n\nhint: write `turns:`"),
        ("turns: []",
         "`script.yaml`, line 1: `turns` is no list\n\nhint: write its items as `- …`"),
        ("turns:\n- replies: [a]",
         "`script.yaml`, line 2: a turn has no `user`\n\nhint: write `user:`"),
        ("turns:\n- user: a", "`script.yaml`, line 2: a turn has no `replies`\n\n"
         "hint: write what the model says"),
        ("turns:\n- user: 5\n  replies: [a]",
         "`script.yaml`, line 2: `user` is 5\n\nhint: write what the user says"),
        ("turns:\n- user: a\n  replies:\n  - say: b",
         "`script.yaml`, line 4: unknown key `say`\n\nhint: the keys are calls, text"),
        ("turns:\n- user: a\n  replies:\n  - calls:\n    - {a: {}, b: {}}",
         "`script.yaml`, line 5: a call has 2 names\n\n"
         "hint: write one name with its arguments: `- list_notes: {limit: 3}`"),
        ("turns:\n- user: a\n  replies: [b]\n  approve: [maybe]",
         "`script.yaml`, line 4: an answer is 'maybe'\n\nhint: write yes, always or no"),
        ("turns:\n- user: a\n  user: b", "`script.yaml`, line 3: the key `user` stands twice\n\n"
         "hint: leave one out"),
        ("turns: [", "`script.yaml`, line 1: expected the node content, but found '<stream end>'"
         "\n\nhint: mend the YAML"),
    ],
)  # fmt: skip
def test_a_bad_script_is_refused_with_its_line_and_the_fix(text: str, error: str) -> None:
    assert play(text) == Ran(2, "", f"error: {error}\n")


def test_a_script_that_is_not_there_is_named() -> None:
    assert run("--script", "none.yaml") == Ran(
        2,
        "",
        "error: cannot read `none.yaml`: No such file or directory\n\n"
        "hint: check the path; `demo` is the script that comes with toolfold\n",
    )


@pytest.mark.parametrize(
    ("turn", "error"),
    [
        ("replies: [{calls: [{look: {at: a}}]}]",
         "error: `script.yaml`, line 2: the turn has no reply 2\n\n"
         "hint: add it under `replies`; a turn ends with a text\n"),
        ("replies: [a, b]",
         "error: `script.yaml`, line 3: the turn ended before this reply\n\nhint: take 1 out\n"),
        ("replies: [a]\n  approve: [yes]",
         "error: `script.yaml`, line 2: 0 of 1 answers under `approve` were asked for\n\n"
         "hint: take the others out\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", ["", "\n- user: b\n  replies: [c]"])
def test_a_script_that_does_not_fit_fails(turn: str, error: str, more: str) -> None:
    ran = play(f"turns:\n- user: a\n  {turn}{more}", "--tools", "tools.py")

    assert (ran.code, ran.err) == (1, error)


def test_a_result_of_a_tool_that_is_not_there_is_refused() -> None:
    ran = play("turns: [{user: a, replies: [b]}]\nresults: {look_at: 1}", "--tools", "tools.py")

    assert ran == Ran(1, "", "error: no tool named 'look_at'\n\nhint: did you mean 'look'?\n")


# ---- which tools


def test_functions_of_a_file_are_tools() -> None:
    Path("beside.py").write_text("WORD = 'hello'\n", encoding="utf-8")
    Path("plain.py").write_text(
        "from pathlib import Path\n"
        "from json import dumps\n"
        "def greet(name: str) -> str:\n"
        "    'Greet someone.'\n"
        "    from beside import WORD\n"
        "    return f'{WORD} {name}'\n"
        "def _hidden() -> None: ...\n",
        encoding="utf-8",
    )
    script = (
        "turns: [{user: a, approve: [yes], replies: [{calls: [{greet: {name: you}}]}, {text: b}]}]"
    )

    ran = play(script, "--tools", "plain.py", "--transcript", "t.jsonl")

    assert "1 tool, none folded" in ran.out
    assert '"hello you"' in Path("t.jsonl").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("X = 1", "`bad.py` has no tools\n\nhint: write functions in it, or a "
         "`registry = Registry()` with `@registry.tool`"),
        ("\nX = y", "`bad.py`, line 2: NameError: name 'y' is not defined\n\nhint: mend the file"),
        ("\nX = = 1", "`bad.py`, line 2: SyntaxError: invalid syntax\n\nhint: mend the file"),
        ("import sys\nsys.exit(3)", "`bad.py`, line 2: SystemExit: 3\n\nhint: mend the file"),
    ],
)  # fmt: skip
def test_a_file_without_tools_is_refused_with_the_fix(text: str, error: str) -> None:
    Path("bad.py").write_text(text, encoding="utf-8")

    assert run("--script", "demo", "--tools", "bad.py") == Ran(2, "", f"error: {error}\n")


def test_two_files_cannot_have_one_tool() -> None:
    Path("more.py").write_text("def look(at: str) -> str: ...", encoding="utf-8")

    ran = run("--script", "demo", "--tools", "tools.py", "--tools", "more.py")

    assert ran.code == 2
    assert ran.err.startswith("error: two tools are named 'look': one from ")


def test_the_scope_of_the_command_line_holds() -> None:
    script = "turns: [{user: a, replies: [{calls: [{wipe: {what: b}}]}, {text: c}]}]"

    ran = play(script, "--tools", "tools.py", "--deny", "wipe", "--approve", "never")

    assert '  ✗ "wipe" is not available in this session.' in ran.out
    assert "▶" not in ran.out


# ---- what reaches the terminal


def test_control_characters_of_strangers_do_not_reach_the_terminal() -> None:
    script = r"""
        turns:
          - user: "Paint\e[2J it."
            replies:
              - text: "I \e]0;evil\a will\r\n\tdo\u202e it.\n"
                calls: [{paint: {what: "\e[1mhouse"}}, {fail: {}}, {"no\e[7m such": {}}]
              - "\e[31mDone.\x9b0m"
        """

    ran = play(script, "--tools", "tools.py", "--approve", "never")

    assert ran.code == 0
    assert set(re.findall(r"[^ -~\n\t]", ran.out)) <= set("⌕▶✓✗⊘⋯→·×…")
    assert "I ]0;evil will\n\tdo it.\n" in ran.out
    assert '  ▶ paint {"what": "\\u001b[1mhouse"}\n' in ran.out
    assert "  ⋯ paint 50% mixing [2Jcolours\n" in ran.out
    assert "  ✗ fail 0 ms: fail failed: ValueError: no 31mpaint left\n" in ran.out
    assert "[31mDone.0m\n" in ran.out


def test_a_terminal_that_cannot_show_a_sign_gets_a_plain_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))

    Screen().line("  ✓ tea 3 ms · 2 × 茶")

    assert raw.getvalue() == b"  + tea 3 ms | 2 x ?\n"


# ---- at the prompt


def at_the_prompt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, *script: Says
) -> str:
    screen = Screen()
    feed = Feed(screen)
    agent = Agent(ScriptedModel(script), DemoHost().registry(), system=SYSTEM, hooks=[])
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))

    with Talk(agent, screen, feed, Transcript("t.jsonl")) as talk:
        talk.at_the_prompt()

    return timeless(capsys.readouterr().out)


def test_a_conversation_over_a_pipe_goes_on_until_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = at_the_prompt(
        monkeypatch,
        capsys,
        "Any mail from Sam?\n\nThanks.\n",
        calls(("mail__search_mail", {"from": "Sam"})),
        says("One.\nFrom Friday."),
        says("You are welcome."),
    )

    assert re.sub(r"  \d+ round trip.*", "  …", shown) == (
        "> Any mail from Sam?\n"
        '  ▶ mail__search_mail {"from": "Sam"}\n'
        "  ✓ mail__search_mail 0 ms, 150 chars\n"
        "One.\n"
        "From Friday.\n"
        "  …\n"
        "\n"
        "> Thanks.\n"
        "You are welcome.\n"
        "  …\n"
        "\n"
    )


def test_an_error_of_the_model_is_shown_and_the_conversation_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = at_the_prompt(monkeypatch, capsys, "One.\nTwo.\nThree.\n", says("1"))

    assert shown.count("error: the script has no reply number 2\nhint: add a reply to it\n") == 2
    assert shown.endswith("\n\n")


def test_the_terminal_itself_can_be_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = (
        "/help\n/tools\n/tools cancel an appointment\n/tools zzzz\n/toosl\n/save\nHi.\n"
        "/save talk.jsonl\n/save talk.jsonl\n/new\n/save new.jsonl\n/etc/hosts\n/quit\nHi.\n"
    )

    shown = at_the_prompt(monkeypatch, capsys, typed, says("Hello."), says("A file."))

    assert "  /save FILE      write the conversation to a new file" in shown
    assert "  mail  16 tools\n" in shown
    assert "  2 kept, 205 deferred: deferrable tools take " in shown
    assert "  delete_calendar_event  Cancel an event and take it off the calendar;" in shown
    assert "  no tool fits (207 searched)\n" in shown
    assert "error: no command is named /toosl\nhint: did you mean /tools?\n" in shown
    assert "error: /save needs a file\nhint: write /save talk.jsonl\n" in shown
    assert "  2 messages in talk.jsonl\n" in shown
    assert "error: cannot write `talk.jsonl`: File exists\nhint: choose another name\n" in shown
    assert "  0 messages in new.jsonl\n" in shown
    assert shown.endswith("> /quit\n")
    written = Path("t.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["text"] for line in written] == [
        "Hi.", "Hello.", "/etc/hosts", "A file.",
    ]  # fmt: skip


# ---- transcripts


def test_a_transcript_has_every_message_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_TOKEN", "four-words-nobody-guesses")
    script = """
        turns:
          - user: My key is sk-abcdefghijklmnop1234, look at four-words-nobody-guesses.
            replies:
              - calls: [{look: {at: four-words-nobody-guesses}}]
              - Seen.
        """

    ran = play(script, "--tools", "tools.py", "--transcript", "t.jsonl")

    assert ran.code == 0
    assert [json.loads(line) for line in Path("t.jsonl").read_text("utf-8").splitlines()] == [
        {"role": "user", "text": "My key is [redacted], look at [redacted]."},
        {
            "role": "model",
            "text": "",
            "calls": [{"name": "look", "arguments": '{"at": "[redacted]"}', "id": "call_1_1"}],
        },
        {"role": "result", "name": "look", "call_id": "call_1_1", "text": "seen [redacted]"},
        {"role": "model", "text": "Seen."},
    ]
    if os.name == "posix":
        assert Path("t.jsonl").stat().st_mode & 0o077 == 0


def test_a_transcript_that_cannot_be_written_is_refused_before_the_first_word() -> None:
    ran = run("--script", "demo", "--transcript", "none/t.jsonl")

    assert ran == Ran(
        2,
        "",
        "error: cannot write `none/t.jsonl`: No such file or directory\n\nhint: check the path\n",
    )


# ---- usage


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "error: no model is named\n\nhint: give --model NAME, with --base-url URL for a "
         "server of your own; `toolfold chat --script demo` needs no model\n"),
        (("--json", "--model", "m"),
         "error: --json needs --once or --script\n\nhint: see `toolfold chat --help`\n"),
        (("--script", "demo", "--model", "m"),
         "error: --script takes the place of --model: give one of them\n\n"
         "hint: see `toolfold chat --help`\n"),
        (("--script", "demo", "--once", "a"),
         "error: --script says what the user says: leave --once out\n\n"
         "hint: see `toolfold chat --help`\n"),
        (("--model", "m", "--once", " "),
         "error: --once is blank\n\nhint: see `toolfold chat --help`\n"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_with_the_fix(arguments: tuple[str, ...], error: str) -> None:
    assert run(*arguments) == Ran(2, "", error)


def test_a_script_can_be_loaded_by_a_program() -> None:
    script = load_script("demo")

    assert [len(turn.replies) for turn in script.turns] == [3, 4, 3, 2]
    with pytest.raises(ConfigError):
        load_script("none.yaml")
