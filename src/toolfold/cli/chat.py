"""`toolfold chat`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Literal

import click

from toolfold.cli import options
from toolfold.cli.models import Api, model_options, open_model
from toolfold.cli.setting_options import setting_option
from toolfold.errors import MissingExtraError, UnknownToolError
from toolfold.settings import Settings

if TYPE_CHECKING:
    from toolfold.catalog import Catalog
    from toolfold.chat import Replay, Screen, TurnOutcome
    from toolfold.config import GatewayConfig
    from toolfold.memory import Memory
    from toolfold.runtime import Hook, PendingCall
    from toolfold.serve.trust.trusting_hub import TrustingHub
    from toolfold.sources import Source, Sources


@click.command("chat", short_help="Talk to an agent whose tools are folded")
@model_options
@options.catalog_option
@click.option(
    "--tools", metavar="FILE", multiple=True,
    help="Run this Python file and take its tools: its registries, else its functions; repeatable",
)  # fmt: skip
@options.scope_options
@options.chat_config_option
@click.option("--system", metavar="TEXT", help="The system prompt")
@click.option(
    "--profile", type=click.Choice(["standard", "small"]), default="standard", show_default=True,
    help="What the model's size asks for",
)  # fmt: skip
@click.option(
    "--context-length", metavar="N", type=click.IntRange(1), help="The model's context window"
)
@setting_option(
    Settings, "prefetch", help="When to name the likely tools behind your message: off, where they "
    "are sure, or always  [default: sure; always for small models]",
)  # fmt: skip
@click.option(
    "--approve", type=click.Choice(["destructive", "writes", "all", "never"]),
    default="destructive", show_default=True, help="Which calls to ask you about",
)  # fmt: skip
@click.option(
    "--script", metavar="FILE", help="Play this script in place of a model; `demo` is bundled"
)
@click.option("--once", metavar="TEXT", help="Answer this on standard output and end")
@click.option("--plain", is_flag=True, help="Show answers as the model wrote them, not as Markdown")
@click.option("--transcript", metavar="FILE", help="Add the messages to FILE, without secrets")
@click.option(
    "--json", "as_json", is_flag=True, help="With --once or --script: print one JSON object a turn"
)
def command(
    model: str | None,
    base_url: str | None,
    api: Api,
    api_key_env: str | None,
    catalog: str | None,
    tools: tuple[str, ...],
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    config: str | None,
    system: str | None,
    profile: str,
    context_length: int | None,
    prefetch: Literal["off", "sure", "always"] | None,
    approve: str,
    script: str | None,
    once: str | None,
    plain: bool,
    transcript: str | None,
    as_json: bool,
) -> None:
    """Talk to an agent whose tools are folded.

    Its tools are those of --tools, --catalog and of the servers and functions that --config
    names, together. Without any it has the bundled demo catalog, of which a calendar, a
    mailbox, notes and an issue tracker run in memory. A catalog has definitions only. Python
    files and servers are your own programs: they are run as they stand.

    Keys come from the environment; a server on this machine needs none. Where no terminal
    is there to ask at, what needs your approval is denied.

    \b
    Examples:
      toolfold chat --script demo
      toolfold chat --model gpt-5.4-mini
      toolfold chat --model gpt-5.4-mini --config .mcp.json
      toolfold chat --model qwen3 --base-url http://localhost:8080/v1 --tools tools.py
      toolfold chat --model claude-sonnet-5-5 --api anthropic --once 'Any mail from Sam?'
    """
    from toolfold.chat import Asker, Feed, Screen, Talk, Transcript
    from toolfold.config import sources_of
    from toolfold.runtime import Agent, Approvals
    from toolfold.runtime.profiles import profile_named
    from toolfold.scope import Scope
    from toolfold.sources import Sources

    _check_usage(model, script, once, as_json)
    replay = _replay(script)
    chosen = (
        replay.model
        if replay
        else open_model(model, base_url, api, api_key_env, instead="toolfold chat --script demo")
    )
    if catalog is None and not tools:
        options.open_tools(None, config)  # the demo stands in for no file that was named
    settings, live = _configured(config)
    hub = _hub(live) if live else None
    own, own_system = _own_tools(catalog, tools, live)
    beside = as_json or once is not None
    screen = Screen(
        feed_to_stderr=beside,
        streams=not beside or (not as_json and sys.stdout.isatty()),
        plain=plain,
    )
    feed = Feed(screen)
    asker = Asker(screen, replay.answer) if replay else Asker(screen)
    sources = Sources([*own, *(sources_of(live, hub=hub) if live else ())])
    when = _when(approve, _idle(catalog, own, sources))
    hooks: list[Hook] = [Approvals(asker, when), *([replay] if replay else [])]
    secrets = live.secrets if live else ()
    memory = None if replay else _memory(settings, live, secrets, screen)
    agent = Agent(
        chosen,
        sources,
        system=own_system if system is None else system,
        scope=Scope(allow or ("*",), deny),
        settings=settings,
        context_length=context_length,
        profile=profile_named(profile),
        hooks=hooks,
        # What a script says does not hang on what it reads, and shows the searches.
        prefetch=prefetch or ("off" if replay else None),
        recovered="run" if approve == "never" else "ask",
        memory=memory,
    )
    written = Transcript(transcript, secrets=secrets) if transcript else None
    with (
        options.hushed(),
        nullcontext() if memory is None else closing(memory),
        Talk(agent, screen, feed, written, secrets) as talk,
    ):
        if hub is not None:
            failed = [status for status in hub.first.values() if status.state == "failed"]
            options.say_what_is_missing(failed, hub.waiting)
        if replay:
            _check_results(replay, talk.assembled().catalog)
        if once is not None:
            _print(talk.once(once), as_json=as_json)
            return
        talk.greet(f"the script {script}" if script else chosen.name)
        if replay is None:
            # A person has seen what failed; a script that pipes its messages in has not.
            if not talk.at_the_prompt() and not sys.stdin.isatty():
                sys.exit(1)
            return
        for outcome in talk.play(replay):
            if as_json:
                options.print_json(outcome.as_json())


def _configured(config: str | None) -> tuple[Settings, GatewayConfig | None]:
    """Return the settings, and the configuration where one was named and has tools."""
    if config is None:
        return options.open_settings(None), None
    from toolfold.config import load_gateway

    found = load_gateway(config, strict=False)
    return found.settings, found if found.has_tools else None


def _memory(
    settings: Settings, live: GatewayConfig | None, secrets: Sequence[str], screen: Screen
) -> Memory | None:
    """Return what earlier conversations' searches led to, unless that is turned off."""
    from toolfold.config import ServeSettings
    from toolfold.config.opened_store import store_of
    from toolfold.memory import open_memory
    from toolfold.redact import Redactor

    serve = live.serve if live else ServeSettings()
    return open_memory(
        settings.memory,
        serve.state_folder,
        redactor=Redactor.from_environment(secrets=secrets),
        tell=lambda text: screen.line(text, "dim"),
        database=store_of(serve).database,
    )


def _hub(config: GatewayConfig) -> TrustingHub | None:
    """Return who holds back what a person must look at first, and says how servers start."""
    if not config.servers and (not config.apis or config.serve.trust == "off"):
        return None
    try:
        from toolfold.serve.trust.trusting_hub import TrustingHub
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("toolfold"):
            raise
        raise MissingExtraError("reaching MCP servers", "mcp") from None
    count = len(config.servers)
    return TrustingHub.of(config, lambda status, done: options.show_progress(status, done, count))


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


def _own_tools(
    catalog: str | None, tools: tuple[str, ...], live: GatewayConfig | None
) -> tuple[list[Source], str]:
    """Return the tools that are no configuration's, and the system prompt that belongs to them."""
    if catalog is not None or tools:
        from toolfold.chat import open_tools

        return [open_tools(tools, catalog)], ""
    if live is not None:
        return [], ""
    from toolfold.demo.host import SYSTEM, DemoHost

    return [DemoHost().registry()], SYSTEM


def _when(approve: str, idle: Callable[[PendingCall], bool]) -> Callable[[PendingCall], bool]:
    """Return which calls to ask about; nobody is asked about what does not run."""
    from toolfold.runtime import destructive, not_read_only

    choices: dict[str, Callable[[PendingCall], bool]] = {
        "destructive": destructive,
        "writes": not_read_only,
        "all": lambda _: True,
        "never": lambda _: False,
    }
    return lambda call: choices[approve](call) and not idle(call)


def _idle(
    catalog: str | None, own: list[Source], sources: Sources
) -> Callable[[PendingCall], bool]:
    """Return which calls are of a catalog's definitions: a server's tool may have the same name."""
    from toolfold.sources import load_catalog

    names = frozenset(load_catalog(catalog).names) if catalog is not None else frozenset[str]()

    def is_idle(call: PendingCall) -> bool:
        found = sources.find(call.tool.name) if call.tool.name in names else None
        return found is not None and found.source in own

    return is_idle


def _check_results(replay: Replay, catalog: Catalog) -> None:
    """Refuse a script that has results of tools that are not there."""
    for name in replay.script.results:
        if name not in catalog.names:
            raise UnknownToolError(name, near=catalog.near(name))


def _print(outcome: TurnOutcome, *, as_json: bool) -> None:
    from toolfold.chat.screen import harmless

    if as_json:
        options.print_json(outcome.as_json())
    elif not sys.stdout.isatty():
        click.echo(harmless(outcome.done.text))
    if outcome.done.stop != "end":
        sys.exit(1)
