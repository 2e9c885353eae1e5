"""`toolfold demo`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Generator
from contextlib import closing

import click

from toolfold._terminal import styled
from toolfold.answer import Answer, Invocation
from toolfold.cli import options
from toolfold.cli.output import say, say_cut
from toolfold.cli.pages import Pages
from toolfold.demo import demo_catalog
from toolfold.demo.host import SYSTEM, DemoHost
from toolfold.fold import Folded, Report, fold
from toolfold.prompts import plural
from toolfold.scope import Scope
from toolfold.settings import Settings
from toolfold.tool import Json

_WINDOW = 131_072
_LINE_LIMIT = 300
_ROWS = 2
"""How many rows of a terminal one line of an answer may take: a screen shows all of it."""


@click.command("demo", short_help="Show folding on a bundled catalog of 207 tools")
def command() -> None:
    """Show folding on a bundled catalog of 207 tools.

    Runs without a model, a key or a network: the calls below are those that a model
    would make, and the conversation at the end is a script that `toolfold chat` plays.
    On a terminal it shows one screen at a time; in a pipe, all of it at once.

    \b
    Examples:
      toolfold demo
      toolfold demo | less
    """
    pages = Pages()
    show = _Show()
    with closing(show.screens()) as screens:
        for _ in screens:
            if not pages.turn():
                break
    show.close()


class _Show:
    """What the demo shows, screen by screen."""

    def __init__(self) -> None:
        self._catalog = demo_catalog()
        self._folded = fold(self._catalog, context_length=_WINDOW, shape="openai-chat")
        self._requests = 0
        self._searches = 0
        self._saved = 0

    def screens(self) -> Generator[None]:
        """Show one screen after another."""
        for part in (
            self._fold,
            self._search,
            self._describe,
            self._call,
            self._correct,
            self._scope,
        ):
            part()
            yield
        yield from self._converse()

    def close(self) -> None:
        """Say how to go on, and what it comes to."""
        _title("Try it on your own tools")
        for line in ("import", "search 'what you need'", "inspect", "chat --model NAME"):
            say(f"   toolfold {line}")
        report = self._folded.report
        say()
        if self._requests:
            asked = f"{plural(self._requests, 'request')} with {self._searches} searches"
            say(f"   that conversation: {asked}, {self._saved:,} tokens of tools not sent")
        tools, before, after = report.tools_before, report.tokens_before, report.tokens_after
        headline = f"{tools} tools for {after:,} tokens, not {before:,}"
        say(options.bold(f"   {headline}: {_less(report)}"))

    def _fold(self) -> None:
        report = self._folded.report
        _title(f"1. Fold {len(self._catalog)} tools of {len(self._catalog.sources)} servers")
        before, after = report.tokens_before, report.tokens_after
        say(f"   before   {report.tools_before:>4} tools  {before:>7,} tokens a turn")
        say(f"   after    {report.tools_after:>4} tools  {after:>7,} tokens  ({_less(report)})")
        say(f"   why      {report.reason}", hang=" " * 9)

    def _search(self) -> None:
        _title("2. The model searches, in words that no tool has")
        _answer(self._folded, "tool_search", {"query": "remind me tonight"})

    def _describe(self) -> None:
        _title("3. It asks for one tool's full schema, which it rarely must")
        _answer(self._folded, "tool_describe", {"name": "delete_calendar_event"}, rows=6)

    def _call(self) -> None:
        _title("4. It calls a tool, and gets an argument wrong")
        wrong = {"title": "Call mum", "alerts": [{"method": "siren", "minutes_before": 10}]}
        calls = {"name": "create_calendar_event", "arguments": wrong}
        _answer(self._folded, "tool_call", calls, rows=6)

    def _correct(self) -> None:
        _title("5. It corrects the call; the host runs the real tool")
        host = DemoHost()
        calls = {"name": "create_calendar_event", "arguments": _RIGHT}
        _run(self._folded, host, "tool_call", calls)
        span = {"from": "2026-11-15", "to": "2026-11-16"}
        _run(self._folded, host, "list_calendar_events", span)

    def _scope(self) -> None:
        _title("6. A caller who may only read mail tries the same")
        scope = Scope(allow=("@mail",), deny=("*send*", "*delete*"))
        reader = fold(
            self._catalog, settings=Settings(enabled="on"), scope=scope, shape="openai-chat"
        )
        _answer(reader, "tool_search", {"query": "create_calendar_event"})
        _answer(reader, "tool_call", {"name": "create_calendar_event", "arguments": _RIGHT})

    def _converse(self) -> Generator[None]:
        """Play the bundled script: a scripted model, and tools that really run."""
        from toolfold.chat import Asker, Feed, Replay, Screen, Talk, load_script
        from toolfold.runtime import Agent, Approvals

        _title("7. An agent does all that, with the real tools in sight")
        screen = Screen(indent="   ")
        replay = Replay(load_script("demo"))
        agent = Agent(
            replay.model,
            DemoHost().registry(),
            system=SYSTEM,
            context_length=_WINDOW,
            hooks=[Approvals(Asker(screen, replay.answer))],
            prefetch="off",  # as `toolfold chat --script demo`: the script searches
        )
        with Talk(agent, screen, Feed(screen)) as talk:
            for outcome in talk.play(replay):
                self._requests += outcome.done.round_trips
                self._searches += sum(a.kind == "searched" for a in outcome.activities)
                self._saved += sum(outcome.saved)
                yield


_RIGHT: dict[str, Json] = {
    "title": "Call mum",
    "start": {"date_time": "2026-11-15T19:30:00+01:00"},
    "alerts": {"method": "popup", "minutes_before": "10"},
}


def _less(report: Report) -> str:
    return f"-{100 * (1 - report.tokens_after / report.tokens_before):.1f} %"


def _title(text: str) -> None:
    say(f"\n{options.bold(text)}")


def _say_call(name: str, arguments: Json) -> None:
    say(styled(f"   {name}({json.dumps(arguments)})", "cyan"))


def _answer(folded: Folded, name: str, arguments: Json, *, rows: int = _ROWS) -> None:
    _say_call(name, arguments)
    resolved = folded.resolve(name, arguments)
    if isinstance(resolved, Answer):
        for line in resolved.text.splitlines():
            say_cut(f"   {textwrap.shorten(line, _LINE_LIMIT, placeholder=' …')}", rows=rows)


def _run(folded: Folded, host: DemoHost, name: str, arguments: Json) -> None:
    _say_call(name, arguments)
    resolved = folded.resolve(name, arguments)
    if isinstance(resolved, Invocation):
        run = json.dumps(resolved.arguments)
        say(f"   host runs {options.bold(resolved.tool.name)} with {run}")
        say(f"   -> {json.dumps(host.run(resolved.tool.name, resolved.arguments))}")
    else:
        say(f"   {resolved.text}")
