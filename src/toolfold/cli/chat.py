"""`toolfold chat`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import click

from toolfold.cli import options
from toolfold.errors import ConfigError, UnknownToolError

if TYPE_CHECKING:
    from toolfold.chat import Outcome, Replay, Screen
    from toolfold.runtime import Agent, Hook, Model, PendingCall, Registry

_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}


@click.command("chat", short_help="Talk to an agent whose tools are folded")
@click.option("--model", metavar="NAME", help="The model to ask")
@click.option("--base-url", metavar="URL", help="Where it is served, such as a server of yours")
@click.option(
    "--api", type=click.Choice(["openai", "anthropic"]), default="openai", show_default=True,
    help="How it is spoken to",
)  # fmt: skip
@click.option(
    "--api-key-env", metavar="NAME",
    help="The environment variable with the key  [default: OPENAI_API_KEY, ANTHROPIC_API_KEY]",
)  # fmt: skip
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
    chosen = replay.model if replay else _model(model, base_url, api, api_key_env)
    registry, own_system = _registry(catalog, tools)
    beside = as_json or once is not None
    screen = Screen(
        feed_to_stderr=beside, streams=not beside or (not as_json and sys.stdout.isatty())
    )
    feed = Feed(screen)
    asker = Asker(screen, replay.answer) if replay else Asker(screen)
    hooks: list[Hook] = [Approvals(asker, _when(approve)), *([replay] if replay else [])]
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


def _model(
    name: str | None, base_url: str | None, api: Literal["openai", "anthropic"], key: str | None
) -> Model:
    if name is None:
        raise ConfigError(
            "no model is named",
            hint="give --model NAME, with --base-url URL for a server of your own; "
            "`toolfold chat --script demo` needs no model",
        )
    from toolfold.runtime.clients import Anthropic, OpenAIChat

    client: Callable[..., Model] = OpenAIChat if api == "openai" else Anthropic
    where: dict[str, Any] = {} if base_url is None else {"base_url": base_url}
    return client(name, api_key=_key(base_url, _KEYS[api], key), **where)


def _key(base_url: str | None, usual: str, named: str | None) -> str:
    """Return the key to send: none to a server on this machine, unless one is named for it."""
    import os
    from urllib.parse import urlsplit

    key = os.environ.get(named or usual, "")
    if named is not None and not key:
        raise ConfigError(
            f"the environment variable `{named}` is not set",
            hint="set it, or leave out --api-key-env where no key is needed",
        )
    if base_url is None and not key:
        raise ConfigError(
            f"there is no key: the environment variable `{usual}` is not set",
            hint="set it, name another with --api-key-env, or give --base-url for a server of "
            "your own; `toolfold chat --script demo` needs no model",
        )
    if named is None and base_url is not None:
        try:
            host = urlsplit(base_url).hostname or ""
        except ValueError:
            return ""  # the client says what is wrong with it
        if host == "localhost" or host == "::1" or host.startswith("127."):
            return ""
    return key


def _registry(catalog: str | None, tools: tuple[str, ...]) -> tuple[Registry, str]:
    """Return the tools, and the system prompt that belongs to them."""
    if catalog is None and not tools:
        from toolfold.demo.host import SYSTEM, DemoHost

        return DemoHost().registry(), SYSTEM
    from toolfold.chat import open_tools

    return open_tools(tools, catalog), ""


def _when(approve: str) -> Callable[[PendingCall], bool]:
    from toolfold.runtime import destructive, not_read_only

    choices: dict[str, Callable[[PendingCall], bool]] = {
        "destructive": destructive,
        "writes": not_read_only,
        "all": lambda _: True,
        "never": lambda _: False,
    }
    return choices[approve]


def _check_results(replay: Replay, agent: Agent) -> None:
    """Refuse a script that has results of tools that are not there."""
    folded = agent.assemble()
    for name in replay.script.results:
        if name not in folded.catalog.names:
            raise UnknownToolError(name, near=folded.catalog.near(name))


def _print(outcome: Outcome, screen: Screen, *, as_json: bool) -> None:
    from toolfold.chat.screen import harmless

    if as_json:
        options.print_json(outcome.as_json())
    elif not sys.stdout.isatty():
        click.echo(harmless(outcome.done.text))
    if outcome.done.stop != "end":
        sys.exit(1)
