"""`toolfold tokens`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from toolfold.cli import options
from toolfold.cli.output import say
from toolfold.cli.servers import AskedGateways, Reached
from toolfold.cli.status import refuse_anothers, state_folders
from toolfold.config.opened_store import store_of
from toolfold.errors import ConfigError, ToolfoldError
from toolfold.store.store import DEFAULT_TENANT

if TYPE_CHECKING:
    from toolfold.config.gateway_config import GatewayConfig
    from toolfold.serve.token_store import TokenStore

_PATIENCE = 30.0


@click.group("tokens", short_help="Make and revoke tokens for the gateway over HTTP")
def command() -> None:
    """Make and revoke tokens for the gateway over HTTP.

    A token is printed once, and only its digest is kept, where `serve.store` says. Running
    gateways take a change up at once. Tokens that stand in the configuration are changed
    there.

    \b
    Examples:
      toolfold tokens create laptop --allow '@github' --read-only
      toolfold tokens list
      toolfold tokens revoke laptop
    """


@command.command("create", short_help="Make a token, and print it once")
@click.argument("name")
@options.scope_options
@click.option("--read-only", is_flag=True, help="Only tools that say they change nothing")
@click.option(
    "--tenant",
    metavar="NAME",
    default=DEFAULT_TENANT,
    show_default=True,
    help="Whose it is, among those who share a deployment",
)
@click.option(
    "--profile", "profiles", metavar="NAME", multiple=True,
    help="May ask under this profile, at /mcp/NAME, and nowhere else; repeatable",
)  # fmt: skip
@options.config_option
@options.json_option
def create(
    name: str,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    read_only: bool,
    tenant: str,
    profiles: tuple[str, ...],
    config: str | None,
    as_json: bool,
) -> None:
    """Make a token, and print it once.

    \b
    Examples:
      toolfold tokens create laptop
      toolfold tokens create reader --allow '@github' --deny '*delete*' --read-only
    """
    from toolfold.config.served_profiles import profile_named
    from toolfold.serve.oauth.grants import PREFIX
    from toolfold.serve.principals import check_name
    from toolfold.serve.token_store import KeptToken, digest_of, new_token

    loaded = _loaded(config)
    # With one that is refused at a start, no gateway would start again; an issuer may come later.
    check_name(name, PREFIX)
    if any(token.name == name for token in loaded.serve.tokens):
        raise ConfigError(
            f"the configuration has a token named {name!r}", hint="choose another name"
        )
    for profile in profiles:
        profile_named(loaded.profiles, profile)
    value = new_token()
    made = KeptToken(
        name,
        digest_of(value),
        time.time(),
        allow or ("*",),
        deny,
        read_only,
        tenant,
        profiles=profiles or None,
    )
    assert made.token  # a name or a pattern that cannot be used is refused before it is kept
    _store(loaded).create(made)
    told, _ = _apply(config)
    if as_json:
        options.print_json({"name": name, "token": value, "gateways": told})
    else:
        click.echo(value)
        say("it is not shown again; only its digest is kept", err=True)


@command.command("revoke", short_help="Have a token count no more")
@click.argument("name")
@options.config_option
@options.json_option
def revoke(name: str, config: str | None, as_json: bool) -> None:
    """Have a token count no more: what it has open at running gateways ends.

    Exits with 1 where a gateway runs that did not take it up: the token opens there still.

    \b
    Examples:
      toolfold tokens revoke laptop
    """
    loaded = _loaded(config)
    kept = _store(loaded)
    kept.revoke(name, time.time())
    told, is_everywhere = _apply(config)
    if as_json:
        options.print_json({"name": name, "gateways": told})
    else:
        say(f"revoked {options.plain(name)}")
        if not loaded.serve.tokens and all(each.revoked is not None for each in kept.load()):
            say("it was the last: over HTTP nobody is let in until you make another", err=True)
    if not is_everywhere:
        raise ToolfoldError(
            f"a gateway runs at which {name!r} may still be let in",
            hint="have it take the tokens up with `toolfold reload`, or end it",
        )


@command.command("list", short_help="List the tokens, without themselves")
@options.config_option
@options.json_option
def list_command(config: str | None, as_json: bool) -> None:
    """List the tokens, those of the configuration too, without themselves.

    \b
    Examples:
      toolfold tokens list --json
    """
    from toolfold.serve.control.moments import moment
    from toolfold.serve.token_store import TokenStore

    loaded = _loaded(config)
    found: list[dict[str, Any]] = [
        {"name": token.name, "from": "file", "created": None, "revoked": None,
         "allow": list(token.allow), "deny": list(token.deny), "read_only": token.read_only,
         "tenant": token.tenant, "profiles": _listed(token.profiles)}
        for token in loaded.serve.tokens
    ]  # fmt: skip
    for each in TokenStore(store_of(loaded.serve).documents).load():
        revoked = None if each.revoked is None else moment(each.revoked)
        found.append(
            {"name": each.name, "from": "command", "created": moment(each.created),
             "revoked": revoked, "allow": list(each.allow), "deny": list(each.deny),
             "read_only": each.read_only, "tenant": each.tenant,
             "profiles": _listed(each.profiles)}
        )  # fmt: skip
    if as_json:
        options.print_json({"tokens": found})
        return
    if not found:
        say("there are no tokens; `toolfold tokens create NAME` makes one", err=True)
    for one in found:
        words = [f"from the {one['from']}" if one["from"] == "file" else f"of {one['created']}"]
        words += [f"allow {' '.join(one['allow'])}"] if one["allow"] != ["*"] else []
        words += [f"deny {' '.join(one['deny'])}"] if one["deny"] else []
        words += ["read-only"] if one["read_only"] else []
        words += [f"of the tenant {one['tenant']}"] if one["tenant"] != DEFAULT_TENANT else []
        if one["profiles"] is not None:
            words.append(f"under {' '.join(one['profiles']) or 'no profile'} alone")
        words += [f"revoked {one['revoked']}"] if one["revoked"] else []
        say(f"{options.bold(options.plain(one['name']))}  {options.plain(', '.join(words))}")


def _listed(profiles: tuple[str, ...] | None) -> list[str] | None:
    return None if profiles is None else list(profiles)


def _loaded(config: str | None) -> GatewayConfig:
    from toolfold.config.gateway_config import load_gateway

    return load_gateway(config, strict=False)


def _store(loaded: GatewayConfig) -> TokenStore:
    """Return where tokens are kept, to be written to."""
    from toolfold.serve.token_store import TokenStore

    if loaded.serve.store_address is None:
        refuse_anothers(loaded.serve.state_folder)
    return TokenStore(store_of(loaded.serve).documents)


def _apply(config: str | None) -> tuple[list[dict[str, Any]], bool]:
    """Have running gateways take the tokens up, and say whether all did; none need run."""
    from toolfold.serve.control.asking import sockets

    asked = AskedGateways([])
    found: list[Reached] = []
    try:
        asked = AskedGateways(sockets(state_folders(config)))
        found = asked.ask("tokens.apply", patience=_PATIENCE)
    except ToolfoldError as error:
        if not error.message.startswith("no gateway runs"):
            say(f"warning: {options.plain(error.message)}", err=True)
    return [{"pid": one.pid, **one.result} for one in found], not asked.refused
