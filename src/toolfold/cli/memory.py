"""`toolfold memory`."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolfold._files import replacing
from toolfold.cli import options
from toolfold.cli.output import print_table, say
from toolfold.cli.progress_bar import progress
from toolfold.errors import ConfigError, ToolfoldError

if TYPE_CHECKING:
    from toolfold.memory import Memory, MemoryRecord, PostgresMemory
    from toolfold.memory.summary import MemorySummary

    Place = Path | PostgresMemory
    """Where a memory is kept: in a file, or in the database that `serve.store` names."""

_TOOLS_SHOWN = 20
_LINE_LIMIT = 64 * 1024
_LINES_AT_MOST = 1_000_000
_DAY = 86_400.0
_AT_ONCE = 25
_HEADER = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal", ".damaged")

file_option = click.option(
    "--file", "given", metavar="FILE",
    help="The memory's file  [default: `memory.path`, in `serve.state_dir` or `serve.store`]",
)  # fmt: skip
tenant_option = click.option(
    "--tenant", metavar="NAME", default="default", show_default=True, help="Whose memory it is"
)
principal_option = click.option("--principal", metavar="NAME", help="Only what is one caller's")


def located(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command where the memory is, as its options or the configuration name it."""

    @wraps(function)
    def with_place(config: str | None, given: str | None, tenant: str, **others: Any) -> None:
        function(file=_place(config, given, tenant), **others)

    return options.config_option(file_option(tenant_option(with_place)))


@click.group("memory", short_help="Look at what searches led to, carry it, and forget it")
def command() -> None:
    """Look at what searches led to, carry it, and forget it.

    The gateway, the proxy and the chat remember which tool a request led to, and rank by it
    as far as that would have served their own record. All of it stands in one file, for its
    owner alone, or in the PostgreSQL that `serve.store` names; every command may be used while
    they run.

    \b
    Examples:
      toolfold memory show
      toolfold memory export --out learnt.jsonl
      toolfold memory import learnt.jsonl --dry-run
      toolfold memory clear --older-than 90
    """


@command.command("show", short_help="Show what is remembered, and how much it counts")
@principal_option
@options.json_option
@located
def show(file: Place, principal: str | None, as_json: bool) -> None:
    """Show what is remembered, and how much it counts.

    Counts the requests and the tools that they led to, says how old they are, and what the
    memory weighs in searches, with the reason.

    \b
    Examples:
      toolfold memory show
      toolfold memory show --json | jq '.tools[].name'
    """
    from toolfold.memory.summary import summary_of

    with _opened(file) as memory:
        summary = summary_of(memory, _of(memory, principal=principal), principal)
    if as_json:
        options.print_json(_object(file, summary))
    else:
        _print(file, summary)


@command.command("export", short_help="Write what is remembered as JSON lines")
@click.option("--out", metavar="FILE", help="Where it goes  [default: standard output]")
@principal_option
@click.option("--tool", metavar="NAME", help="Only what led to one tool")
@located
def export(file: Place, out: str | None, principal: str | None, tool: str | None) -> None:
    """Write what is remembered as JSON lines.

    One line for each request and tool it led to, secrets taken out, to be read over before it
    is carried elsewhere. It holds requests as people wrote them, and whose they were.

    \b
    Examples:
      toolfold memory export --out learnt.jsonl
      toolfold memory export --tool github__create_issue | jq -r .request
    """
    from dataclasses import replace

    from toolfold.redact import Redactor

    redactor = Redactor.from_environment()
    with _opened(file) as memory:
        records = _of(memory, principal=principal, tool=tool)
    # What was no secret to the one who kept it may be one here.
    lines = [replace(r, request=redactor.redact(r.request)).line() for r in records]
    if out is None:
        for line in lines:
            click.echo(line)
        return
    try:
        with replacing(Path(out).expanduser(), durable=True) as opened:
            opened.write("".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        raise ConfigError(
            f"cannot write `{out}`: {error.strerror}", hint="give another file with --out"
        ) from None
    say(f"{_count(len(lines), 'record')} to {options.plain(out)}", err=True)


@command.command("import", short_help="Take in what another memory exported")
@click.argument("source", metavar="FILE")
@click.option(
    "--principal", metavar="NAME", help="Whose it is from now on  [default: whose it was]"
)
@click.option("--dry-run", is_flag=True, help="Check every line and write nothing")
@options.json_option
@located
def import_(file: Place, source: str, principal: str | None, dry_run: bool, as_json: bool) -> None:
    """Take in what another memory exported.

    Every line is checked before the first is kept; - reads standard input. What is there is
    added to. A record counts for a tool of the same name that says the same, and for no other.

    \b
    Examples:
      toolfold memory import learnt.jsonl --dry-run
      toolfold memory import learnt.jsonl --principal team
    """
    from toolfold.memory import MemoryRecord, MemoryRecordError

    lines: list[str] = []
    tools: set[str] = set()
    for number, line in _lines(source):
        if not line.strip():
            continue
        try:
            tools.add(MemoryRecord.read(line).tool)
        except MemoryRecordError as error:
            raise ConfigError(
                f"`{source}`, line {number}: {error.message}", hint=error.hint
            ) from None
        lines.append(line)
    if not dry_run:
        with _opened(file, made=True) as memory, progress(len(lines), "kept", quiet=as_json) as bar:
            for start in range(0, len(lines), _AT_ONCE):
                bar.update(memory.imported(lines[start : start + _AT_ONCE], principal))
                _refuse_problem(memory, file)
            _refuse_problem(memory, file)
    if as_json:
        told = {"records": len(lines), "tools": len(tools), "kept": not dry_run}
        options.print_json({"file": str(file), **told})
        return
    did = "would be kept" if dry_run else "kept"
    about = f"{_count(len(lines), 'record')} of {_count(len(tools), 'tool')}"
    say(f"{about} {did} in {options.plain(str(file))}")


@command.command("clear", short_help="Forget for good what is remembered")
@click.option("--tool", metavar="NAME", help="Only what led to one tool")
@principal_option
@click.option(
    "--older-than", metavar="DAYS", type=click.FloatRange(0),
    help="Only what was last used more than so many days ago",
)  # fmt: skip
@click.option("-y", "--yes", is_flag=True, help="Do not ask")
@options.json_option
@located
def clear(
    file: Place,
    tool: str | None,
    principal: str | None,
    older_than: float | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Forget for good what is remembered.

    What is forgotten is overwritten in the file; gateways that run forget it within a second.
    Asks before it does so. A file that is damaged is removed.

    \b
    Examples:
      toolfold memory clear
      toolfold memory clear --tool github__create_issue --yes
      toolfold memory clear --older-than 90 --principal alice
    """
    before = None if older_than is None else time.time() - older_than * _DAY
    is_whole = tool is None and principal is None and before is None
    if is_whole and isinstance(file, Path) and file.exists() and _looked_at(file):
        _ask(f"remove the damaged {options.plain(str(file))}", yes=yes)
        _remove(file)
        _say_forgotten(file, 0, as_json=as_json)
        return
    with _opened(file) as memory:
        found = _of(memory, principal=principal, tool=tool, before=before)
        if not found and (not is_whole or (isinstance(file, Path) and not file.exists())):
            _say_forgotten(file, 0, as_json=as_json)
            return
        _ask(f"forget {_count(len(found), 'record')} for good", yes=yes)
        gone = memory.forget(tool=tool, principal=principal, before=before)
    _say_forgotten(file, gone, as_json=as_json)


def _place(config: str | None, given: str | None, tenant: str) -> Place:
    from toolfold.memory import memory_place, tenants_place

    if given is not None:
        return Path(given).expanduser()
    from toolfold.config import load_gateway
    from toolfold.config.opened_store import store_of

    found = load_gateway(config, strict=False)
    database = store_of(found.serve).database
    place = memory_place(found.settings.memory, found.serve.state_folder, database)
    return tenants_place(place, tenant)


@contextmanager
def _opened(file: Place, *, made: bool = False) -> Generator[Memory]:
    """Open a memory; where there is none yet, an empty one that leaves no file.

    Raises:
        ToolfoldError: It is damaged, or cannot be used.
    """
    from toolfold.memory import Memory

    if not isinstance(file, Path):
        with closing(Memory(file, tell=lambda _: None)) as shared:
            yield shared
        return
    is_there = file.exists()
    if is_there and (damage := _looked_at(file)):
        raise ToolfoldError(
            f"the memory in `{file}` is damaged: {damage}",
            hint="`toolfold memory clear` removes it; whoever learns next puts it aside and begins "
            "anew",
        )
    memory = Memory(file if is_there or made else None, tell=lambda _: None)
    try:
        if is_there:
            _refuse_problem(memory, file)
        yield memory
    finally:
        memory.close()


def _refuse_problem(memory: Memory, file: Place) -> None:
    if memory.problem:
        raise ToolfoldError(
            f"the memory in `{file}` cannot be used: {memory.problem}",
            hint="give another file with --file, or mend its permissions",
        )


def _looked_at(file: Path) -> str:
    """Return what is wrong with a memory's file, read without changing anything.

    Raises:
        ToolfoldError: It is no memory at all: it is somebody else's, and is left alone.
    """
    try:
        is_database = file.is_file() and _begins(file) in (b"", _HEADER)
    except OSError as error:
        raise ToolfoldError(
            f"cannot read `{file}`: {error.strerror}", hint="give another file with --file"
        ) from None
    problem, is_ours = _damage(file) if is_database else ("", False)
    if not is_ours:
        raise ToolfoldError(f"`{file}` is no memory", hint="give another file with --file")
    return problem


def _begins(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(len(_HEADER))


def _damage(file: Path) -> tuple[str, bool]:
    """Return what is wrong with a database, and whether it may be ours."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as opened:
            rows = opened.execute("PRAGMA quick_check(1)").fetchall()
            tables = opened.execute("SELECT name FROM sqlite_master").fetchall()
    except sqlite3.OperationalError:
        return "", True  # busy, or not ours to read: opening it says so
    except sqlite3.DatabaseError as error:
        return str(error), True
    # An empty file is a memory that was never written to.
    is_ours = not tables or ("requests",) in tables
    return "" if rows == [("ok",)] else str(rows[0][0]), is_ours


def _remove(file: Path) -> None:
    try:
        for suffix in ("", *_BESIDE):
            with suppress(FileNotFoundError):
                file.with_name(file.name + suffix).unlink()
    except OSError as error:
        raise ToolfoldError(
            f"cannot remove `{file}`: {error.strerror}", hint="remove it by hand"
        ) from None


def _of(
    memory: Memory,
    *,
    principal: str | None = None,
    tool: str | None = None,
    before: float | None = None,
) -> list[MemoryRecord]:
    return [
        record
        for record in memory.records()
        if (principal is None or record.principal == principal)
        and (tool is None or record.tool == tool)
        and (before is None or record.at < before)
    ]


def _lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file, numbered, within bounds."""
    try:
        opened = sys.stdin.buffer if source == "-" else Path(source).expanduser().open("rb")
    except OSError as error:
        raise ConfigError(
            f"cannot read `{source}`: {error.strerror}", hint="check the path"
        ) from None
    with opened:
        for number in range(1, _LINES_AT_MOST + 1):
            line = opened.readline(_LINE_LIMIT + 1)
            if not line:
                return
            if len(line) > _LINE_LIMIT:
                raise ConfigError(
                    f"`{source}`, line {number}: more than {_LINE_LIMIT:,} bytes",
                    hint="remove the line",
                )
            yield number, line.decode("utf-8", "replace")
        if opened.readline(1):
            raise ConfigError(
                f"`{source}` has more than {_LINES_AT_MOST:,} lines", hint="import it in parts"
            )


def _ask(what: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise ToolfoldError(f"nobody is there to be asked whether to {what}", hint="give --yes")
    click.confirm(f"{what[:1].upper()}{what[1:]}?", abort=True, err=True)


def _say_forgotten(file: Place, gone: int, *, as_json: bool) -> None:
    if as_json:
        options.print_json({"file": str(file), "forgotten": gone})
    else:
        say(f"forgot {_count(gone, 'record')}")


def _object(file: Place, summary: MemorySummary) -> dict[str, object]:
    return {
        "file": str(file),
        "requests": summary.requests,
        "worked": summary.worked,
        "failed": summary.failed,
        "principals": summary.principals,
        "oldest": summary.oldest,
        "newest": summary.newest,
        "weight": summary.weight,
        "why": summary.why,
        "tools": [tool._asdict() for tool in summary.tools],
    }


def _print(file: Place, summary: MemorySummary) -> None:
    say(options.plain(str(file)))
    if not summary.requests or summary.oldest is None or summary.newest is None:
        say("nothing is remembered yet")
        return
    of = f" of {_count(summary.principals, 'caller')}" if summary.principals > 1 else ""
    say(
        f"{_count(summary.requests, 'request')}{of} led to {_count(len(summary.tools), 'tool')}; "
        f"{_count(summary.worked, 'call')} worked, {summary.failed:,} did not; "
        f"{_day(summary.oldest)} to {_day(summary.newest)}"
    )
    say(f"weight {summary.weight:g}: {summary.why}")
    rows = [["tool", "requests", "worked", "failed", "last"]]
    rows += [
        [options.plain(t.name), f"{t.requests:,}", f"{t.worked:,}", f"{t.failed:,}", _day(t.last)]
        for t in summary.tools[:_TOOLS_SHOWN]
    ]
    print_table(rows)
    if len(summary.tools) > _TOOLS_SHOWN:
        say(options.dim(f"and {len(summary.tools) - _TOOLS_SHOWN} more: see --json"))


def _day(moment: float) -> str:
    try:
        return datetime.fromtimestamp(moment, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return "?"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
