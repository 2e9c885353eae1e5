"""`toolfold check`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolfold._checkup import Finding, check_tools, costliest
from toolfold._json_values import compact
from toolfold._retrievability import Retrievability, retrievability
from toolfold._terminal import styled
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.cli.progress_bar import progress
from toolfold.cli.setting_options import setting_options
from toolfold.prompts import plural
from toolfold.scope import Scope
from toolfold.search._tool_words import load_words
from toolfold.settings import Settings
from toolfold.tokens import estimate
from toolfold.tool import Tool
from toolfold.wire import write

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.serve._one_shot import Listed


@click.command("check", short_help="Look a catalog over for what would hurt")
@options.live_catalog_option
@options.scope_options
@setting_options(Settings, "ranker", into="given")
@click.option(
    "--retrieval/--no-retrieval",
    default=True,
    help="Whether to search for every tool by its own words and others  [default: yes]",
)
@options.live_config_option
@options.profile_option
@options.json_option
def command(
    catalog: str | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    retrieval: bool,
    config: str | None,
    profile: str | None,
    as_json: bool,
    given: dict[str, Any],
) -> None:
    """Look a catalog over for what would hurt.

    Missing or over-long descriptions, near-duplicate tools, unusable schemas, name
    clashes, the costliest definitions, and tools that a search does not find by their own
    description or by paraphrases of it: which tools shadow them, which words to add. Also
    checks the configuration, and reaches its servers. Exits with 1 where there is an error.

    \b
    Examples:
      toolfold check --catalog tools.json
      toolfold check --config .mcp.json --no-retrieval
      toolfold check --catalog tools.json --json | jq '.findings[].kind'
    """
    opened = options.open_tools(
        catalog, config, profile, enabled="on", relevance_floor=0.0, **given
    )
    scope = Scope(allow or ("*",), deny)
    found: list[Finding] = []
    if opened.live is not None:
        listed = options.list_live(opened.live, scope, quiet=True)
        tools = list(listed.catalog)
        found = _of_servers(opened.live, listed)
    else:
        tools = [t for entry in opened.entries() for t in entry.tools if t in scope]
    report = CheckReport(
        tools=len(tools),
        tokens=estimate(compact([write(tool, "openai-chat") for tool in tools])),
        findings=[*found, *check_tools(tools), *_of_words(tools, opened.settings)],
        costliest=costliest(tools),
        retrieval=_retrieval(tools, opened.settings, quiet=as_json) if retrieval else [],
        enrich=_enrich_command(catalog, config),
    )
    if as_json:
        options.print_json(report.object())
    else:
        report.print()
    sys.exit(1 if report.errors else 0)


def _of_servers(config: GatewayConfig, listed: Listed) -> list[Finding]:
    """Return what is wrong with servers and odd about their entries."""
    failed = [
        Finding("error", f"{status.kind} failed", (status.name,), str(status.error))
        for status in listed.failed
    ]
    notes = (*config.notes, *listed.notes)
    return [*failed, *(Finding("warning", "configuration", (), note) for note in notes)]


def _of_words(tools: Sequence[Tool], settings: Settings) -> list[Finding]:
    """Return what is wrong with the words that were written for tools."""
    words = load_words(settings.enriched)
    if words is None:
        return []
    where = Path(words.where).name
    bad = [
        Finding("warning", "unusable words", (), f"{where}, line {line.number}: {line.problem}")
        for line in words.bad_lines
    ]
    message = f"it changed after its words in {where} were written: they are not used"
    return [*bad, *(Finding("warning", "stale words", (n,), message) for n in words.stale(tools))]


def _enrich_command(catalog: str | None, config: str | None) -> str:
    """Return the command that has words written for the tools that are hard to find."""
    named = (("--catalog", catalog), ("--config", config))
    given = [part for flag, value in named if value for part in (flag, value)]
    return shlex.join(["toolfold", "enrich", *given, "--hard-to-find", "--model", "NAME"])


def _retrieval(tools: Sequence[Tool], settings: Settings, *, quiet: bool) -> list[Retrievability]:
    """Look for every tool; for the first of each name where names clash."""
    distinct = {tool.wire_name: tool for tool in reversed(tools)}
    wanted = list(reversed(distinct.values()))
    bridge = Bridge.over(Catalog(wanted), settings)
    with progress(len(wanted), "searching for every tool", quiet=quiet) as bar:
        return retrievability(wanted, bridge.search, progress=bar.update)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What the command found."""

    tools: int
    tokens: int
    findings: list[Finding]
    costliest: list[tuple[str, int]]
    retrieval: list[Retrievability]
    enrich: str
    """The command that has words written for the tools that are hard to find."""

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def lost(self) -> list[Retrievability]:
        """The tools that one of the searches did not find."""
        return [item for item in self.retrieval if not item.is_found]

    def object(self) -> dict[str, object]:
        """Return the report as JSON."""
        return {
            "tools": self.tools,
            "tokens": self.tokens,
            "errors": self.errors,
            "warnings": len(self.findings) - self.errors,
            "findings": [finding._asdict() for finding in self.findings],
            "costliest": [{"name": name, "tokens": cost} for name, cost in self.costliest],
            "retrieval": {
                "searched": len(self.retrieval),
                "found_by_description": sum(r.by_description is not None for r in self.retrieval),
                "found_by_paraphrase": sum(r.by_paraphrase is not None for r in self.retrieval),
                "tools": [item._asdict() for item in self.retrieval],
            },
            "enrich": {"tools": [item.name for item in self.lost], "command": self.enrich},
        }

    def print(self) -> None:
        """Print the report for a person."""
        for finding in self.findings:
            colour = "red" if finding.severity == "error" else "yellow"
            label = styled(f"{finding.severity}: {finding.kind}", colour)
            about = f"{', '.join(finding.tools)}: " if finding.tools else ""
            say(f"{label}: {options.plain(f'{about}{finding.message}')}")
        for item in self.lost:
            how = "its own description" if item.by_description is None else "a paraphrase"
            shadows = f"; shadowed by {', '.join(item.shadowed_by)}" if item.shadowed_by else ""
            words = f"; worth adding: {', '.join(item.words_to_add)}" if item.words_to_add else ""
            label = styled("hard to find", "yellow")
            line = f"{item.name}: not by {how}{shadows}{words}"
            say(f"{label}: {options.plain(line)}")
        if self.retrieval:
            own = sum(item.by_description is not None for item in self.retrieval)
            other = sum(item.by_paraphrase is not None for item in self.retrieval)
            of = len(self.retrieval)
            say(f"found by their description: {own} of {of}; by paraphrases: {other} of {of}")
        if self.lost:
            count = f"{len(self.lost)} tool" + "s" * (len(self.lost) != 1)
            say(f"{count} would profit from more words: {options.plain(self.enrich)}")
        say("costliest definitions:")
        for name, cost in self.costliest:
            say(f"  {cost:>7,} tokens  {options.plain(name)}")
        faults = plural(self.errors, "error")
        warnings = plural(len(self.findings) - self.errors, "warning")
        counted = f"{plural(self.tools, 'tool')}, {plural(self.tokens, 'token')}"
        say(f"{counted}: {faults}, {warnings}")
