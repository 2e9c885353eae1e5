"""`toolfold trust`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from toolfold._terminal import Style, styled
from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.cli.status import refuse_anothers
from toolfold.config.opened_store import store_of
from toolfold.errors import ToolfoldError, UnknownToolError
from toolfold.invisible import shown
from toolfold.serve.trust import verdicts as trust
from toolfold.serve.trust.store import Book, TrustEntry, TrustStore, Waiting

F = TypeVar("F", bound=Callable[..., Any])

_NAME_LIMIT = 120

state_option = click.option(
    "--state-dir",
    metavar="DIR",
    help="Where the gateway remembers things  [default: `serve.state_dir`]",
)


def stored(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the store, from its own options or from those before its name."""

    @wraps(function)
    def with_store(config: str | None, state_dir: str | None, **others: Any) -> None:
        before: Options = click.get_current_context().obj
        own = config is not None or state_dir is not None
        opened = _open(config, state_dir) if own else _open(*before)
        function(opened.store, **others)

    return options.config_option(state_option(with_store))


def chosen(function: F) -> F:
    """Add what names tools: their names, a server, or all of them."""
    everything = click.option("--all", "everything", is_flag=True, help="All tools")
    server = click.option("--server", metavar="NAME", help="All tools of one server")
    names = click.argument("names", metavar="[NAME]...", nargs=-1)
    return names(server(everything(function)))


class Options(NamedTuple):
    """Where the store is, as it was said before the command's name."""

    config: str | None
    state_dir: str | None


class Opened(NamedTuple):
    """The store, and which tools wait, where the configuration was read."""

    store: TrustStore
    mode: str | None


class FoundTools(NamedTuple):
    """One tool that is remembered."""

    server: str
    tool: str
    entry: TrustEntry

    @property
    def shown_name(self) -> str:
        """The name with nothing hidden in it."""
        return shown(self.tool, _NAME_LIMIT)


@click.group(
    "trust",
    invoke_without_command=True,
    short_help="Look at new and changed tools, and approve them",
)
@options.config_option
@state_option
@options.json_option
@click.pass_context
def command(
    context: click.Context, config: str | None, state_dir: str | None, as_json: bool
) -> None:
    """Look at new and changed tools, and approve them.

    Without a command, lists the tools that wait: with `trust: changes` those that say
    something else than when they were first seen, with `trust: all` new ones too. They
    exist for nobody until they are approved.

    \b
    Examples:
      toolfold trust
      toolfold trust show github__create_issue
      toolfold trust approve github__create_issue
      toolfold trust approve --server github
    """
    context.obj = Options(config, state_dir)
    if context.invoked_subcommand is None:
        opened = _open(config, state_dir)
        _list(_all(opened.store.load()), opened.mode, as_json=as_json)


@command.command("show", short_help="Show what changed in a tool")
@click.argument("name")
@options.json_option
@stored
def show(store: TrustStore, name: str, as_json: bool) -> None:
    """Show what changed in a tool, or all of it where it is new.

    Characters that cannot be seen are written out, as [U+202E].

    \b
    Examples:
      toolfold trust show github__create_issue
      toolfold trust show github__create_issue --json | jq -r .difference
    """
    found = _named(_all(store.load()), [name])
    _mark_shown(store, found)
    if as_json:
        options.print_json(
            _object(found[0]) | {"difference": trust.entry_difference(found[0].entry)}
        )
        return
    for item in found:
        _show(item)


@command.command("approve", short_help="Let tools be used as they are")
@chosen
@click.option("-y", "--yes", is_flag=True, help="Do not ask")
@options.json_option
@stored
def approve(
    store: TrustStore,
    names: tuple[str, ...],
    server: str | None,
    everything: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Let tools be used as they are.

    What was not shown before is shown first. An approval is of what was shown: a tool
    that has changed again since then still waits.

    \b
    Examples:
      toolfold trust approve github__create_issue
      toolfold trust approve --server github --yes
    """
    found = _waiting(_selected(store, names, server, everything=everything))
    unseen = [item for item, waiting in found if not waiting.is_shown]
    if unseen and not yes:
        if as_json or not sys.stdin.isatty():
            some = ", ".join(f"`{item.shown_name}`" for item in unseen[:5])
            raise ToolfoldError(
                f"nobody has looked at {some}",
                hint="look with `toolfold trust show NAME`, or approve unseen with --yes",
            )
        for item in unseen:
            _show(item)
        _mark_shown(store, unseen)
        click.confirm(f"approve {_count(len(found))}?", abort=True)
    now = time.time()

    def change(book: Book) -> Book:
        for item, waiting in found:
            book = trust.approve(book, item.server, item.tool, waiting.fingerprint, now)
        return book

    store.update(change)
    _report(store, found, "approved", as_json=as_json)


@command.command("reject", short_help="Keep tools away until they change again")
@chosen
@options.json_option
@stored
def reject(
    store: TrustStore, names: tuple[str, ...], server: str | None, everything: bool, as_json: bool
) -> None:
    """Keep tools away until they change again.

    They are listed no more as waiting.

    \b
    Examples:
      toolfold trust reject github__create_issue
    """
    found = _waiting(_selected(store, names, server, everything=everything))

    def change(book: Book) -> Book:
        for item, waiting in found:
            book = trust.reject(book, item.server, item.tool, waiting.fingerprint)
        return book

    store.update(change)
    _report(store, found, "rejected", as_json=as_json)


@command.command("forget", short_help="Forget what is known of tools")
@chosen
@options.json_option
@stored
def forget(
    store: TrustStore, names: tuple[str, ...], server: str | None, everything: bool, as_json: bool
) -> None:
    """Forget what is known of tools: the next time they are seen is the first.

    \b
    Examples:
      toolfold trust forget --server github
    """
    found = _selected(store, names, server, everything=everything)

    def change(book: Book) -> Book:
        for item in found:
            book = trust.forget(book, item.server, item.tool)
        return book

    store.update(change)
    if as_json:
        options.print_json({"forgotten": [item.tool for item in found]})
    else:
        say(f"forgot {_count(len(found))}")


def _open(config: str | None, state_dir: str | None) -> Opened:
    if state_dir is not None:
        folder = Path(state_dir).expanduser()
        refuse_anothers(folder)
        return Opened(TrustStore(folder), None)
    from toolfold.config.gateway_config import load_gateway

    serve = load_gateway(config, strict=False).serve
    if serve.store_address is None:
        refuse_anothers(serve.state_folder)
    return Opened(TrustStore(store_of(serve).documents), serve.trust)


def _all(book: Book) -> list[FoundTools]:
    return [
        FoundTools(server, tool, entry)
        for server, entries in sorted(book.items())
        for tool, entry in sorted(entries.items())
    ]


def _selected(
    store: TrustStore, names: Sequence[str], server: str | None, *, everything: bool
) -> list[FoundTools]:
    if bool(names) + bool(server) + everything != 1:
        raise click.UsageError("name tools, or give --server NAME, or --all")
    known = _all(store.load())
    if names:
        return _named(known, names)
    found = [item for item in known if everything or item.server == server]
    if server is not None and not found:
        raise ToolfoldError(
            f"no tool of a server {server!r} is known",
            hint=_suggestion(server, sorted({item.server for item in known})),
        )
    return found


def _named(known: Sequence[FoundTools], names: Sequence[str]) -> list[FoundTools]:
    found: list[FoundTools] = []
    for name in names:
        own = [item for item in known if name in (item.tool, item.shown_name)]
        if not own:
            error = UnknownToolError(
                name, near=get_close_matches(name, [item.tool for item in known], n=1)
            )
            # What waits is in no list of tools.
            if not error.near:
                error.hint = "see those that wait with `toolfold trust`"
            raise error
        found += own
    return found


def _suggestion(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"the servers are {', '.join(known)}" if known else "start the gateway once"


def _waiting(found: Sequence[FoundTools]) -> list[tuple[FoundTools, Waiting]]:
    """Return those that wait, with what waits.

    Raises:
        ToolfoldError: None of them does.
    """
    waiting = [(item, item.entry.waiting) for item in found]
    kept = [(item, own) for item, own in waiting if own is not None]
    if not kept:
        raise ToolfoldError(
            "none of these tools waits" if found else "no tool waits",
            hint="see those that do with `toolfold trust`",
        )
    return kept


def _mark_shown(store: TrustStore, found: Sequence[FoundTools]) -> None:
    def change(book: Book) -> Book:
        for item in found:
            if item.entry.waiting is not None:
                name = item.entry.waiting.fingerprint
                book = trust.mark_shown(book, item.server, item.tool, name)
        return book

    store.update(change)


def _list(known: Sequence[FoundTools], mode: str | None, *, as_json: bool) -> None:
    waiting = [f for f in known if f.entry.waiting and not f.entry.waiting.is_rejected]
    if as_json:
        counts = {"known": len(known), "count": len(waiting)}
        options.print_json({"mode": mode, **counts, "waiting": [_object(f) for f in waiting]})
        return
    if mode == "off":
        say("trust is off; set `trust: changes` or `trust: all` under `serve`", err=True)
    by_server: dict[str, list[FoundTools]] = {}
    for item in waiting:
        by_server.setdefault(item.server, []).append(item)
    for server, own in by_server.items():
        say(f"{options.bold(shown(server, _NAME_LIMIT))} {options.dim(f'({len(own)})')}")
        for item in own:
            _line(item)
    if waiting:
        verb = "waits" if len(waiting) == 1 else "wait"
        say(f"{_count(len(waiting))} {verb}: `toolfold trust show NAME`", err=True)
    else:
        say(f"no tool waits ({len(known)} known)", err=True)


def _line(item: FoundTools) -> None:
    waiting = item.entry.waiting
    if waiting is not None:
        say(f"  {item.shown_name}  {options.dim(waiting.reason)}")
        for mark in waiting.marks:
            say(f"    {styled('note', 'yellow')}: {mark}")


def _show(item: FoundTools) -> None:
    waiting, approved = item.entry.waiting, item.entry.approved
    state = "approved" if waiting is None else waiting.reason
    if waiting is not None and waiting.is_rejected:
        state += ", rejected"
    name = waiting.fingerprint if waiting else approved.fingerprint if approved else ""
    say(f"{options.bold(item.shown_name)}  {options.dim(f'{state}, {name[:12]}')}")
    colours: dict[str, Style] = {"-": "red", "+": "green"}
    for line in trust.entry_difference(item.entry).splitlines():
        colour = colours.get(line[2:3]) if line.startswith("  ") else None
        say(styled(line, colour) if colour else line)
    for mark in waiting.marks if waiting else ():
        say(f"{styled('note', 'yellow')}: {mark}")


def _object(item: FoundTools) -> dict[str, Any]:
    waiting, approved = item.entry.waiting, item.entry.approved
    return {
        "server": item.server,
        "tool": item.tool,
        "state": "approved" if waiting is None else waiting.reason,
        "rejected": waiting is not None and waiting.is_rejected,
        "fingerprint": waiting.fingerprint if waiting else None,
        "approved": approved.fingerprint if approved else None,
        "marks": list(waiting.marks) if waiting else [],
    }


def _report(
    store: TrustStore, found: Sequence[tuple[FoundTools, Waiting]], done: str, *, as_json: bool
) -> None:
    """Say what was done, and what has changed in the meantime."""
    book = store.load()
    changed: list[str] = []
    for item, waiting in found:
        entry = book.get(item.server, {}).get(item.tool)
        left = entry.waiting if entry else None
        if left is not None and left.fingerprint != waiting.fingerprint:
            changed.append(item.shown_name)
    count = len(found) - len(changed)
    if as_json:
        options.print_json({done: count, "changed": changed})
    else:
        say(f"{done} {_count(count)}")
    if changed:
        raise ToolfoldError(
            f"changed again in the meantime: {', '.join(changed)}",
            hint="look at them with `toolfold trust show NAME`",
        )


def _count(number: int) -> str:
    return f"{number} tool{'' if number == 1 else 's'}"
