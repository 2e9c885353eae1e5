"""`toolfold demo`."""

from __future__ import annotations

import json
import textwrap

import click

from toolfold._terminal import styled
from toolfold.answer import Answer, Invocation
from toolfold.cli import options
from toolfold.demo import demo_catalog
from toolfold.demo.host import SYSTEM, DemoHost
from toolfold.fold import Folded, fold
from toolfold.scope import Scope
from toolfold.settings import Settings
from toolfold.tool import Json

_WINDOW = 131_072


@click.command("demo", short_help="Show folding on a bundled catalog of 200 tools")
def command() -> None:
    """Show folding on a bundled catalog of 200 tools.

    Runs without a model, a key or a network: the calls below are those that a model
    would make, and the conversation at the end is a script that `toolfold chat` plays.

    \b
    Examples:
      toolfold demo
    """
    catalog = demo_catalog()
    folded = fold(catalog, context_length=_WINDOW, shape="openai-chat")
    report = folded.report
    saved = 100 * (1 - report.tokens_after / report.tokens_before)
    _title(f"1. Fold {len(catalog)} tools of {len(catalog.sources)} servers")
    before, after = report.tokens_before, report.tokens_after
    click.echo(f"   before   {report.tools_before:>4} tools  {before:>7,} tokens, on every turn")
    click.echo(f"   after    {report.tools_after:>4} tools  {after:>7,} tokens  (-{saved:.1f} %)")
    click.echo(f"   why      {report.reason}")

    _title("2. The model searches, in words that no tool has")
    _answer(folded, "tool_search", {"query": "remind me tonight", "limit": 3})

    _title("3. It asks for one tool's full schema, which it rarely must")
    _answer(folded, "tool_describe", {"name": "delete_calendar_event"})

    _title("4. It calls a tool, and gets an argument wrong")
    wrong = {"title": "Call mum", "alerts": [{"method": "siren", "minutes_before": 10}]}
    _answer(folded, "tool_call", {"name": "create_calendar_event", "arguments": wrong})

    _title("5. It corrects the call; the host runs the real tool")
    host = DemoHost()
    right = {
        "title": "Call mum",
        "start": {"date_time": "2026-11-15T19:30:00+01:00"},
        "alerts": {"method": "popup", "minutes_before": "10"},
    }
    _run(folded, host, "tool_call", {"name": "create_calendar_event", "arguments": right})
    _run(folded, host, "list_calendar_events", {"from": "2026-11-15", "to": "2026-11-16"})

    _title("6. A caller who may only read mail tries the same")
    scope = Scope(allow=("@mail",), deny=("*send*", "*delete*"))
    reader = fold(catalog, settings=Settings(enabled="on"), scope=scope, shape="openai-chat")
    _answer(reader, "tool_search", {"query": "create_calendar_event", "limit": 1})
    _answer(reader, "tool_call", {"name": "create_calendar_event", "arguments": right})

    _title("7. An agent does all that, with the real tools in sight")
    _converse()

    _title("Try it on your own tools")
    click.echo("   toolfold search 'what you need' --catalog tools.json")
    click.echo("   toolfold fold --catalog tools.json --context-length 200000 --diff")
    click.echo("   toolfold chat --model NAME --base-url http://localhost:8080/v1 --tools tools.py")


def _converse() -> None:
    """Play the bundled script: a scripted model, and tools that really run."""
    from toolfold.chat import Asker, Feed, Replay, Screen, Talk, load_script
    from toolfold.runtime import Agent, Approvals

    screen = Screen(indent="   ")
    feed = Feed(screen)
    replay = Replay(load_script("demo"))
    hooks = [Approvals(Asker(screen, replay.answer))]
    registry = DemoHost().registry()
    agent = Agent(
        replay.model,
        registry,
        system=SYSTEM,
        context_length=_WINDOW,
        hooks=hooks,
        prefetch="off",  # as `toolfold chat --script demo`: the script searches
    )
    with Talk(agent, screen, feed) as talk:
        for _ in talk.play(replay):
            pass


def _title(text: str) -> None:
    click.echo(f"\n{options.bold(text)}")


def _call(name: str, arguments: Json) -> str:
    return styled(f"   {name}({json.dumps(arguments)})", "cyan")


def _answer(folded: Folded, name: str, arguments: Json) -> None:
    click.echo(_call(name, arguments))
    resolved = folded.resolve(name, arguments)
    if isinstance(resolved, Answer):
        for line in resolved.text.splitlines():
            click.echo(textwrap.indent(textwrap.shorten(line, 300, placeholder=" …"), "   "))


def _run(folded: Folded, host: DemoHost, name: str, arguments: Json) -> None:
    click.echo(_call(name, arguments))
    resolved = folded.resolve(name, arguments)
    if isinstance(resolved, Invocation):
        click.echo(
            f"   host runs {options.bold(resolved.tool.name)} with {json.dumps(resolved.arguments)}"
        )
        click.echo(f"   -> {json.dumps(host.run(resolved.tool.name, resolved.arguments))}")
    else:
        click.echo(f"   {resolved.text}")
