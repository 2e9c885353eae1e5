"""`toolfold chat`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import click

from toolfold.cli import options
from toolfold.cli.models import model_options, open_model
from toolfold.errors import UnknownToolError

if TYPE_CHECKING:
    from toolfold.chat import Replay, Screen, TurnOutcome
    from toolfold.runtime import Agent, Hook, PendingCall, Registry


@click.command("chat", short_help="Talk to an agent whose tools are folded")
@model_options
@options.catalog_option
@click.option(
    "--tools", metavar="FILE", multiple=True,
    help="Run this Python file and take its tools: its registries, else its functions; repeatable",
)  # fmt: skip
@options.scope_options
@options.config_option
@click.option("--system", metavar="TEXT", help="The system prompt")
@click.option(
    "--profile", type=click.Choice(["standard", "small"]), default="standard", show_default=True,
    help="What the model's size asks for",
)  # fmt: skip
@click.option(
    "--context-length", metavar="N", type=click.IntRange(1), help="The model's context window"
)
@click.option(
    "--prefetch/--no-prefetch", help="Name the likely tools behind each message  [default: no]"
)
@click.option(
    "--approve", type=click.Choice(["destructive", "writes", "all", "never"]),
    default="destructive", show_default=True, help="Which calls to ask you about",
)  # fmt: skip
@click.option(
    "--script", metavar="FILE", help="Play this script in place of a model; `demo` is bundled"
)
@click.option("--once", metavar="TEXT", help="Answer this on standard output and end")
@click.option("--transcript", metavar="FILE", help="Add the messages to FILE, without secrets")
@click.option(
    "--json", "as_json", is_flag=True, help="With --once or --script: print one JSON object a turn"
)
def command(
    model: str | None,
    base_url: str | None,
    api: Literal["openai", "anthropic"],
    api_key_env: str | None,
    catalog: str | None,
    tools: tuple[str, ...],
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    config: str | None,
    system: str | None,
    profile: str,
    context_length: int | None,
    prefetch: bool,
    approve: str,
    script: str | None,
    once: str | None,
    transcript: str | None,
    as_json: bool,
) -> None:
    """Talk to an agent whose tools are folded.

    Without --catalog and --tools it has the bundled demo catalog, of which a calendar, a
    mailbox, notes and an issue tracker run in memory. A catalog has definitions only; what
    runs comes from --tools. Those files are your own programs: they are run as they stand.

    Keys come from the environment; a server on this machine needs none. Where no terminal
    is there to ask at, what needs your approval is denied.

    \b
    Examples:
      toolfold chat --script demo
      toolfold chat --model gpt-5.2-mini
      toolfold chat --model qwen3 --base-url http://localhost:8080/v1 --tools tools.py
      toolfold chat --model claude-sonnet-4-5 --api anthropic --once 'Any mail from Sam?'
    """
    from toolfold.chat import Asker, Feed, Screen, Talk, Transcript
    from toolfold.runtime import Agent, Approvals
    from toolfold.runtime.profiles import profile_named
    from toolfold.scope import Scope

    _check_usage(model, script, once, as_json)
    replay = _replay(script)
    chosen = (
        replay.model
        if replay
        else open_model(model, base_url, api, api_key_env, instead="toolfold chat --script demo")
    )
    registry, own_system = _registry(catalog, tools)
    beside = as_json or once is not None
    screen = Screen(
        feed_to_stderr=beside, streams=not beside or (not as_json and sys.stdout.isatty())
    )
    feed = Feed(screen)
    asker = Asker(screen, replay.answer) if replay else Asker(screen)
    hooks: list[Hook] = [Approvals(asker, _when(approve, catalog)), *([replay] if replay else [])]
    agent = Agent(
        chosen,
        registry,
        system=own_system if system is None else system,
        scope=Scope(allow or ("*",), deny),
        settings=options.open_settings(config),
        context_length=context_length,
        profile=profile_named(profile),
        hooks=hooks,
        prefetch=prefetch,
        recovered="run" if approve == "never" else "ask",
    )
    if replay:
        _check_results(replay, agent)
    talk = Talk(agent, screen, feed, Transcript(transcript) if transcript else None)
    if once is not None:
        _print(talk.once(once), screen, as_json=as_json)
        return
    talk.greet(f"the script {script}" if script else chosen.name)
    if replay is None:
        talk.at_the_prompt()
        return
    for outcome in talk.play(replay):
        if as_json:
            options.print_json(outcome.as_json())


def _check_usage(model: str | None, script: str | None, once: str | None, as_json: bool) -> None:
    if script is not None and model is not None:
        raise click.UsageError("--script takes the place of --model: give one of them")
    if script is not None and once is not None:
        raise click.UsageError("--script says what the user says: leave --once out")
    if as_json and script is None and once is None:
        raise click.UsageError("--json needs --once or --script")
    if once is not None and not once.strip():
        raise click.UsageError("--once is blank")


def _replay(script: str | None) -> Replay | None:
    from toolfold.chat import Replay, load_script

    return None if script is None else Replay(load_script(script))


def _registry(catalog: str | None, tools: tuple[str, ...]) -> tuple[Registry, str]:
    """Return the tools, and the system prompt that belongs to them."""
    if catalog is None and not tools:
        from toolfold.demo.host import SYSTEM, DemoHost

        return DemoHost().registry(), SYSTEM
    from toolfold.chat import open_tools

    return open_tools(tools, catalog), ""


def _when(approve: str, catalog: str | None) -> Callable[[PendingCall], bool]:
    """Return which calls to ask about; of a catalog nothing runs, so nobody is asked."""
    from toolfold.runtime import destructive, not_read_only
    from toolfold.sources import load_catalog

    idle = frozenset(load_catalog(catalog).names) if catalog is not None else frozenset[str]()
    choices: dict[str, Callable[[PendingCall], bool]] = {
        "destructive": destructive,
        "writes": not_read_only,
        "all": lambda _: True,
        "never": lambda _: False,
    }
    return lambda call: call.tool.name not in idle and choices[approve](call)


def _check_results(replay: Replay, agent: Agent) -> None:
    """Refuse a script that has results of tools that are not there."""
    folded = agent.assemble()
    for name in replay.script.results:
        if name not in folded.catalog.names:
            raise UnknownToolError(name, near=folded.catalog.near(name))


def _print(outcome: TurnOutcome, screen: Screen, *, as_json: bool) -> None:
    from toolfold.chat.screen import harmless

    if as_json:
        options.print_json(outcome.as_json())
    elif not sys.stdout.isatty():
        click.echo(harmless(outcome.done.text))
    if outcome.done.stop != "end":
        sys.exit(1)
