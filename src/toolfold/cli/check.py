"""`toolfold check`."""

from __future__ import annotations

import sys

import click

from toolfold.checkup import check_tools, costliest
from toolfold.cli import options
from toolfold.scope import Scope
from toolfold.tokens import compact, estimate
from toolfold.wire import write


@click.command("check", short_help="Look a catalog over for what would hurt")
@options.catalog_option
@options.scope_options
@options.config_option
@options.json_option
def command(
    catalog: str | None, allow: tuple[str, ...], deny: tuple[str, ...], config: str | None, as_json: bool
) -> None:
    """Look a catalog over for what would hurt.

    Missing or over-long descriptions, near-duplicate tools, unusable schemas, name
    clashes, and the costliest definitions. Also checks the configuration. Exits with 1
    where there is an error.

    \b
    Examples:
      toolfold check --catalog tools.json
      toolfold check --catalog tools.json --json | jq '.findings[].kind'
    """
    options.open_settings(config)
    scope = Scope(allow or ("*",), deny)
    tools = [t for entry in options.open_entries(catalog) for t in entry.tools if t in scope]
    findings = check_tools(tools)
    dear = costliest(tools)
    tokens = sum(estimate(compact(write(tool, "openai-chat"))) for tool in tools)
    errors = sum(finding.severity == "error" for finding in findings)
    if as_json:
        options.print_json(
            {
                "tools": len(tools),
                "tokens": tokens,
                "errors": errors,
                "warnings": len(findings) - errors,
                "findings": [finding._asdict() for finding in findings],
                "costliest": [{"name": name, "tokens": cost} for name, cost in dear],
            }
        )
    else:
        for finding in findings:
            colour = "red" if finding.severity == "error" else "yellow"
            label = click.style(f"{finding.severity}: {finding.kind}", fg=colour)
            click.echo(f"{label}: {', '.join(finding.tools)}: {finding.message}")
        click.echo("costliest definitions:")
        for name, cost in dear:
            click.echo(f"  {cost:>7,} tokens  {name}")
        warnings = len(findings) - errors
        click.echo(f"{len(tools)} tools, {tokens:,} tokens: {errors} errors, {warnings} warnings")
    sys.exit(1 if errors else 0)
