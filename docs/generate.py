"""Write the reference pages that are derived from the code.

    python docs/generate.py            # write docs/reference/{settings,gateway,cli,api}.md
                                       # and docs/clients/*.md, and the tables of rooms
                                       # and modules in docs/architecture.md, of figures
                                       # in README.md
    python docs/generate.py --check    # exit with 1 where one of them is out of date

A page derived from the code cannot say something else than the code; a test holds the
files to what this module makes of it.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import importlib
import inspect
import json
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, get_origin

import click
import docstring_parser
import figures
import picture

import toolfold
from toolfold.cli import main
from toolfold.config.oauth_settings import Grant, OAuthSettings
from toolfold.config.proxy_settings import ProxySettings, Upstream
from toolfold.config.serve_settings import ServeSettings, Token
from toolfold.config.served_profiles import NOT_THEIRS, ServedProfile
from toolfold.config.server_entries import ENV_FILE
from toolfold.settings import PRESETS, MemorySettings, Reranker, Settings, load
from toolfold.settings.declared import declared
from toolfold.setup.client_programs import CLIENTS, ClientProgram, Launch, Machine, Platform
from toolfold.setup.editing import rendered
from toolfold.sources.function_modules import FunctionModule
from toolfold.sources.mcp.server import Server
from toolfold.sources.openapi import ClientCredentials, HttpApi

__all__ = ["pages"]

REFERENCE = Path(__file__).parent / "reference"
CLIENT_PAGES = Path(__file__).parent / "clients"
NOTE = "<!-- Made by docs/generate.py. Change the code, then run it again. -->"
WIDTH = 88

OTHER_VARIABLES = {
    "TOOLFOLD_CONFIG": "The settings file to read where none is named.",
    "TOOLFOLD_CORPORA": "The folder of corpora that `make bench` and the tests read.",
    "TOOLFOLD_STORE": "The address of a PostgreSQL, where `serve.store` names this variable.",
    "TOOLFOLD_ADMIN": "The admin's token, where `serve.admin` names this variable.",
}

JSON_KEYS = {
    "ab": "`model`, `folder`, `rows` (means: each `scenario`, `arm`, `runs`, `succeeded`, "
    "`errors`, `invented`, `core_via_bridge`, `needless_searches`, `searches`, `describes`, "
    "`round_trips`, `prompt_tokens`, `cached_tokens`, `uncached_tokens`, `completion_tokens`, "
    "`cost`, `first_action_seconds`, `seconds`; the scenario `all` holds those of every "
    "scenario), `runs` (the same for each run, with `repeat`, `model`, `success`, `problems`, "
    "`error`, `tools_run`, and `invented` as names). `cost` is null for a model without a price. "
    "With `--list`: `scenarios` (each `name`, `about`, `turns`).",
    "call": "the tool's result as it came: `content`, `structuredContent`, `isError`, `_meta`, "
    "where it has them.",
    "chat": "one object a turn: `user`, `text`, `stop`, `usage` (`prompt`, `completion`, "
    "`cached`), `round_trips`, `seconds`, `saved`, `kept`, `deferred`, `activities` (each `kind`, "
    "`tool`, `call_id`, `agent`, `toolset`, `via`, `seconds`, `size`, `is_error`, `message`, "
    "`fraction`, `found`).",
    "check": "`tools` and `tokens` (of the whole catalog), `errors` and `warnings` (counts), "
    "`findings` (each `severity`, `kind`, `tools`, `message`), `costliest` (each `name`, "
    "`tokens`), `retrieval` (`searched`, `found_by_description`, `found_by_paraphrase`, `tools`: "
    "each `name`, `by_description` and `by_paraphrase` (its place, or null), `shadowed_by`, "
    "`words_to_add`), `enrich` (the `tools` that would profit from more words, and the `command` "
    "that has them written). Over live servers `findings` also has the kinds `server failed` and "
    "`configuration`.",
    "describe": "`tools`: each `name`, `source`, `description`, `parameters`, `signature`, "
    "`policy`, `annotations`.",
    "doctor": "`ok`, `warnings` and `broken` (how many of each), `checks` (each `part`, `name`, "
    "`health` (`ok`, `warning` or `broken`), `message`, `fix`).",
    "enrich": "`file`, `tools` (how many there are), `asked`, `written`, `unusable` and `failed` "
    "(names), `refused_texts`, `calls`, `prompt_tokens`, `completion_tokens`, `cost` (null for a "
    "model without a price). With `--dry-run`, and where nothing is to be asked: `file`, `tools`, "
    "`with_words`, `calls`, `prompt_tokens`, `completion_tokens`, `cost`, `ask_about` (names).",
    "eval": "one object a line, for each corpus and ranker: `corpus`, `ranker`, `tools`, "
    "`queries`, "
    "`recall@1`, `recall@5`, `recall@10`, `recall@20`, `all_gold@5`, `mrr`, `ndcg@5`, "
    "`false_hit_rate`, `recall@5_interval` (95 %), `ms_p50`, `ms_p95`, `build_ms`, `categories`, "
    "`curve` (of each floor: itself, recall@5, false hits). A rate is null where no request "
    "counts towards it.",
    "fold": "`active`, `strategy`, `reason`, `tools_before`, `tools_after`, `kept`, `deferred`, "
    "`tokens_before`, `tokens_after`, `deferrable_tokens`, `threshold_tokens`, "
    "`renamed` (each `source`, `name`, `served_as`), `breaks`, "
    "`context_length`, `guidance`, `tools` (what the model would see); with `--diff` also "
    "`entered` and `left`. Tokens are characters over four.",
    "import": "`file`, `written`, `backup`, `found` (each `client`, `path`, `scope`, `problem`, "
    "`servers`: each `name`, `as`, `new`, `secrets` (how many)), `variables` (to be set), "
    "`elsewhere` (servers of other folders).",
    "install": "`client`, `file`, `written`, `backup`, `entry`, `others` (servers the client still "
    "starts), `gone`, `back`, `variables`. With `--list`: `clients` (each `client`, `title`, "
    "`file`, `found`, `installed`, `servers`).",
    "list": "`count`, `sources` (each with its number of tools), `tools` (each `name`, `source`, "
    "`summary`, `tokens`).",
    "replay": "`results` (each `trace`, `strategy`, `turns`, `needs`, `met`, `round_trips`, "
    "`prompt_tokens`, `cached_tokens`, `uncached_tokens`, `completion_tokens`, `prompt_by_turn`, "
    "`discovery_by_turn`); with `--growth` also `growth` (`tools`, `budget`, and `unfolded`, "
    "`folded`, `folded_no_budget`, each like a result). Tokens are characters over four.",
    "reload": "`gateways`, each `pid`, `servers` (`added`, `removed`, `changed`), `openapi`, "
    "`tokens`, `profiles`, `settings`, `needs_restart` (keys) and `widened` (clauses).",
    "status": "`gateways`, each `pid`, `answers` and `error` (why it does not) and, of one that "
    "answers, `version`, `transport` (`stdio` or `http`), `address`, `since`, `config`, "
    "`stopping`, `clients`, `in_flight`, `calls`, `failed`, `searches`, `folded` (`active`, "
    "`tools`, `tokens_before`, `tokens_after`, `tokens_saved`, `reason`), `config_problem` (why "
    "the file as it is cannot be used, or null), `reloaded`, `profiles` (each "
    "`name` and `clients`), `left_out` (servers that the "
    "configuration disables), `servers` (each `name`, `transport`, `state`, "
    "`since`, `tools`, `quarantined`, `restarts`, `cause`, `retry_in` (seconds), `calls`, "
    "`failed`) and `functions` (each `name`, `kind` (`functions` or `openapi`), `tools`, "
    "`quarantined`, `cause`, `calls`, `failed`). A proxy has the "
    "`transport` `proxy`, and in place of those `requests`, `failed`, `folded_requests`, `rounds`, "
    "`searches`, `tokens_before`, `tokens_after`, `prompt_tokens`, `cached_tokens` and `upstreams` "
    "(each `name`, `url`, `requests`, `failed`).",
    "trust": "`mode`, `known` (how many tools are remembered), `count`, `waiting` (each `server`, "
    "`tool`, `state`, `rejected`, `fingerprint`, `approved`, `marks`). `show` adds `difference`; "
    "`approve` and `reject` print `approved` or `rejected` with `changed`, `forget` prints "
    "`forgotten`.",
    "search": "`query`, `searched` (how many tools), `hits` (each `name`, `source`, `need`, "
    "`shown`, `score`, `signature`, `summary`; with `--explain` also `why`), need by need, best "
    "first, companions behind all; `weak` and `missed` (needs with no close match, and with "
    "none), `text` (what a model reads) and its `tokens`. `shown` is `signature`, `name` or "
    "`companion`.",
}
"""What a command prints with `--json`."""

GROUPS = {
    "Folding": ["fold", "Folded", "Report"],
    "What a call comes to": ["Answer", "Hit", "Invocation"],
    "Conversations": ["Session", "SessionStore"],
    "Tools, catalogs, scopes": ["Tool", "Catalog", "Scope", "EVERYTHING"],
    "Settings": ["Settings", "Reranker", "MemorySettings", "load_settings"],
    "Tokens": ["estimate", "TokenCounter"],
    "Types": ["Json", "Policy", "Shape"],
}
BESIDE: dict[str, list[str] | None] = {
    "toolfold.sources": None,
    "toolfold.sources.openapi": None,
    "toolfold.sources.mcp.mcp_source": None,
    "toolfold.sources.mcp.server": ["Server"],
    "toolfold.dispatch": None,
    "toolfold.runtime": None,
    "toolfold.adapters.functions": None,
    "toolfold.search": None,
    "toolfold.memory": None,
    "toolfold.shared": None,
    "toolfold.shared_fold": None,
    "toolfold.bridge": None,
    "toolfold.providers": None,
    "toolfold.config": None,
    "toolfold.invisible": None,
    "toolfold.serve.principals": ["Principal"],
    "toolfold.serve.trust": None,
    "toolfold.redact": None,
    "toolfold.demo": None,
}
"""Public modules beside the top level, with the names that are public where `__all__` has more."""

KEYS_OF = {
    Settings: "[Settings](settings.md)",
    Reranker: "[Settings](settings.md#the-reranker-block)",
    MemorySettings: "[Settings](settings.md#the-memory-block)",
    ServeSettings: "[The gateway's configuration](gateway.md#how-to-serve)",
    Token: "[The gateway's configuration](gateway.md#tokens)",
    OAuthSettings: "[The gateway's configuration](gateway.md#access-tokens-of-an-issuer)",
    Grant: "[The gateway's configuration](gateway.md#grants)",
    ServedProfile: "[The gateway's configuration](gateway.md#profiles)",
    ProxySettings: "[The proxy's configuration](gateway.md#the-proxy)",
    Upstream: "[The proxy's configuration](gateway.md#upstreams)",
    ClientCredentials: "[The gateway's configuration](gateway.md#access-tokens)",
}
"""Classes whose fields are described on another page."""


def pages() -> dict[Path, str]:
    """Return the text of every generated page, by its path."""
    made = {
        "settings.md": _settings(),
        "gateway.md": _gateway(),
        "cli.md": _cli(),
        "api.md": _api(),
    }
    house = {picture.PAGE: picture.drawn(picture.PAGE.read_text("utf-8"))}
    front = {figures.PAGE: figures.filled(figures.PAGE.read_text("utf-8"))}
    clients = {CLIENT_PAGES / f"{client.id}.md": _client(client) for client in CLIENTS.values()}
    return {REFERENCE / name: text for name, text in made.items()} | clients | house | front


# ---- settings


def _settings() -> str:
    lines = [
        "# Settings",
        NOTE,
        "How to give them, and which wins, is in the [guide](../guides/settings-file.md). In a "
        "file they stand under `tools:` and `tool_search:`. A value that cannot be used is a "
        "[`ConfigError`](errors.md#configerror).",
        *_setting_entries(Settings, ""),
        "## The reranker block",
        "Keys of the block `reranker`.",
        *_setting_entries(Reranker, "reranker."),
        "## The memory block",
        "Keys of the block `memory`; see [Memory](../guides/memory.md).",
        *_setting_entries(MemorySettings, "memory."),
        "## Presets",
        "A preset stands for a list of names and patterns in `core` and `never_defer`.",
        *(f"- `preset:{name}`: {_codes(names)}" for name, names in PRESETS.items()),
        "## Other environment variables",
        "Any other variable that starts with `TOOLFOLD_` is an error, so that a misspelt one "
        "is noticed.",
        *(
            f"- `{name}`: {OTHER_VARIABLES.get(name, '')}"
            for name in sorted(load._OTHER_VARIABLES)  # pyright: ignore[reportPrivateUsage]
        ),
    ]
    return _joined(lines)


def _setting_entries(cls: Any, prefix: str) -> Iterator[str]:
    for item in declared(cls).values():
        key = prefix + item.key
        yield f"{'###' if prefix else '##'} `{key}`"
        yield item.meaning
        if item.kind.name == "block":
            yield f"Its keys are [below](#the-{item.key}-block)."
            continue
        yield f"- Takes: {_kind(item.kind)}"
        yield f"- Default: `{_default(item)}`"
        yield f"- Environment: `{load.variable(key)}`"
        flags = list(_flags(item.name)) if not prefix else []
        if flags:
            yield f"- Flag: {', '.join(flags)}"


def _kind(kind: Any) -> str:
    text = " | ".join(f"`{choice}`" for choice in kind.choices) or str(kind)
    if kind.name == "switch":
        text += "; true means `on`, false means `off`"
    return text


def _default(item: Any) -> str:
    value = item.default
    if isinstance(value, Mapping):
        return json.dumps(dict(value))
    if isinstance(value, str) and value and value == value.strip():
        return value
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _flags(name: str) -> Iterator[str]:
    flag = f"--{name.replace('_', '-')}"
    for command, _, own in _commands():
        if any(flag in option.opts for option in own.params):
            yield f"`{flag}` of `toolfold {command}`"


# ---- the gateway

EVERYBODYS_KEYS = ("type", "command", "args", "env", "cwd", "url", "headers")
"""The keys of a server's entry that every client knows."""

REFERENCES = {
    "${NAME}": "The environment variable. One that is not set is an error of this one server.",
    "${NAME:-default}": "The same, or the default where it is unset or empty.",
    "${env:NAME}": "The same as `${NAME}`, as VS Code and Cursor write it.",
    "${file:PATH#/json/pointer}": "One value of another JSON, TOML or YAML file, which stays "
    "there. A relative path starts at the configuration, `~` is your own folder; in both parts, "
    "`%`, `#`, `{` and `}` are written as `%25`, `%23`, `%7B`, `%7D`.",
    "${file:PATH}": "All of another file, without the white space around it.",
    "${workspaceFolder}": "The project: the folder of the configuration (of `.vscode/mcp.json` the "
    "one above); of your own configuration, the folder worked in.",
    "${userHome}": "Your own folder.",
    "$${": "A plain `${`.",
}


BLOCKS_AT: Mapping[type, str] = {
    Token: "tokens",
    OAuthSettings: "access-tokens-of-an-issuer",
    Grant: "grants",
    Upstream: "upstreams",
}
"""Where the keys of a block within a block stand."""


def _listed_keys(keys: Collection[str]) -> str:
    *first, last = (f"`{key}`" for key in keys)
    return f"{', '.join(first)} and {last}"


def _gateway() -> str:
    lines = [
        "# The gateway's configuration",
        NOTE,
        "One YAML or JSON file with up to seven blocks: `mcpServers` (or VS Code's `servers`), "
        "`functions`, `openapi`, `serve`, `profiles`, `proxy`, and `tools: tool_search:`, whose "
        "keys are "
        "[the settings](settings.md). Every client's `mcp.json` is such a file as it stands. How "
        "to get one is in the [guide](../guides/gateway.md).",
        "The file is the one given with `--config`, else `TOOLFOLD_CONFIG`, else `toolfold.yaml` "
        "in the working directory (which must be named if it has servers, functions, APIs, "
        "`serve`, or settings that send, write or permit something: whoever wrote the folder "
        "chose them, not whoever looks into it), else `toolfold.yaml` in the user's "
        "configuration folder, which `toolfold import` writes. A value that cannot be used is a "
        "[`ConfigError`](errors.md#configerror) that names the key, the line and the fix; a server "
        "that cannot be used does not keep the others from starting.",
        "## Servers",
        "Each entry of `mcpServers` has the keys that everybody knows and, beside them, ours. "
        "Other clients' words for the same are understood (`disabledTools`, `includeTools`, "
        "`enabled: false`), and what they write to themselves (`autoApprove`, `alwaysAllow`) is "
        "passed over. A key that nobody knows is an error of that server alone where the file is "
        "ours, and wherever it is nearly one of these; `toolfold check` tells of the others.",
        *_server_entries(),
        "## Functions",
        "Each entry of `functions` names Python functions that are served beside the servers: "
        "`NAME: package.module`, `NAME: ./tools.py`, or a block of the keys below. The module is "
        "your own program and is run as it stands; its tools are those of the registries that it "
        "makes, else its public functions.",
        *_key_entries(FunctionModule, "functions.NAME."),
        "## HTTP APIs",
        "Each entry of `openapi` names an HTTP API by its OpenAPI document, whose operations are "
        "tools: `NAME: ./petstore.yaml`, `NAME: https://…/openapi.json`, or a block of the keys "
        "below. How to use them is in the [guide](../guides/openapi.md).",
        *_key_entries(HttpApi, "openapi.NAME."),
        "### Access tokens",
        "Keys of a block under `openapi.NAME.auth`, for OAuth 2's client credentials.",
        *_key_entries(ClientCredentials, "openapi.NAME.auth.SCHEME."),
        "## References",
        "In `command`, `args`, `env`, `cwd`, `url`, `headers` and `envFile` of servers, and in "
        "`file`, `url`, `base_url`, `auth`, `headers` and `variables` of APIs. What a reference "
        "stands for is never shown: not in a log, not in an error, not in `check`.",
        *(f"- `{form}`: {text}" for form, text in REFERENCES.items()),
        "## How to serve",
        "Keys of the block `serve`.",
        *_key_entries(ServeSettings, "serve."),
        "## Tokens",
        "Keys of each entry of `serve.tokens`. What they are for is in "
        "[Who may what](../guides/gateway-access.md).",
        *_key_entries(Token, "serve.tokens."),
        "## Access tokens of an issuer",
        "Keys of the block `serve.oauth`. What it is for is in "
        "[Who may what](../guides/gateway-access.md#oauth).",
        *_key_entries(OAuthSettings, "serve.oauth."),
        "## Grants",
        "Keys of each entry of `serve.oauth.grants`.",
        *_key_entries(Grant, "serve.oauth.grants."),
        "## Profiles",
        "Keys of each entry of `profiles`, whose name is up to 64 letters, digits, `-` and `_`. "
        "Beside them, `tools: tool_search:` holds [settings](settings.md) that win over the "
        f"file's own under that profile, but for {_listed_keys(NOT_THEIRS)}. What profiles are for "
        "is in [Who may what](../guides/gateway-access.md#profiles).",
        *_key_entries(ServedProfile, "profiles.NAME."),
        "## The proxy",
        "Keys of the block `proxy`, for `toolfold proxy` and `toolfold run`. Who may ask, how "
        "often and from where stands under `serve`, but for the tokens, which are its own. How to "
        "use it is in the [guide](../guides/proxy.md).",
        *_key_entries(ProxySettings, "proxy."),
        "## Upstreams",
        "Keys of each entry of `proxy.upstreams`.",
        *_key_entries(Upstream, "proxy.upstreams."),
    ]
    return _joined(lines)


def _server_entries() -> Iterator[str]:
    own: list[str] = []
    for key, item in declared(Server).items():
        if key not in EVERYBODYS_KEYS:
            own.append(key)
            continue
        also = f" Also: {_codes(item.also)}." if item.also else ""
        yield f"- `{key}`: {item.meaning}{also}"
    yield f"- `{ENV_FILE[0]}`: A file of `NAME=value` lines, for more variables."
    yield from _key_entries(Server, "mcpServers.NAME.", own)


def _key_entries(cls: Any, prefix: str, keys: Collection[str] | None = None) -> Iterator[str]:
    for key, item in declared(cls).items():
        if keys is not None and key not in keys:
            continue
        yield f"### `{prefix}{key}`"
        yield item.meaning
        if item.kind.type is not None:
            where = BLOCKS_AT[item.kind.type]
            yield f"Its keys are [{'here' if prefix == 'proxy.' else 'below'}](#{where})."
            continue
        yield f"- Takes: {_kind(item.kind)}"
        yield f"- Default: `{_default(item)}`"
        if item.also:
            yield f"- Also: {_codes(item.also)}"


def _client(client: ClientProgram) -> str:
    launch = Launch("/path/to/toolfold", ("serve", "--config", "/path/to/toolfold.yaml"), {})
    started = rendered(client.format, client.container, "toolfold", client.entry(launch))
    lines = [
        f"# {client.title}",
        NOTE,
        f"```sh\ntoolfold import\ntoolfold install {client.id}\n```",
        "The first takes the servers of all your clients over into toolfold's own file, the "
        f"second writes the entry below for {client.title}. With `--only` it also takes out the "
        "servers that are now behind toolfold; `--dry-run` shows what would change, `--undo` "
        f"takes the entry out again. Then {client.after}.",
        "| where | file |\n|---|---|",
        *_client_files(client),
        "## The entry to paste",
        f"```{_info(client)}\n{started}```",
        "`/path/to/toolfold` is what `which toolfold` prints (on Windows `where toolfold`), "
        "`/path/to/toolfold.yaml` the file with your servers; `toolfold install` fills in both. "
        "Write them out in full: a program that is started from the desktop searches few folders.",
    ]
    if client.http is not None:
        shared = client.http("http://127.0.0.1:8765/mcp")
        entry = rendered(client.format, client.container, "toolfold", shared)
        lines += [
            "## Over HTTP",
            "One gateway for several clients: start `toolfold serve --http 127.0.0.1:8765` and "
            "paste this instead.",
            f"```{_info(client)}\n{entry}```",
        ]
    if client.note:
        lines += ["## Good to know", client.note]
    return _joined(lines)


def _client_files(client: ClientProgram) -> Iterator[str]:
    titles: dict[Platform, str] = {"linux": "Linux", "macos": "macOS", "windows": "Windows"}
    for platform, title in titles.items():
        home = Path("%USERPROFILE%" if platform == "windows" else "~")
        machine = Machine(platform, home, Path(), {"APPDATA": "%APPDATA%"})
        path = client.files(machine)[0].as_posix()
        yield f"| {title} | `{path.replace('/', chr(92)) if platform == 'windows' else path}` |"
    if client.project_file is not None:
        yield f"| a project | `{client.project_file}` |"


def _info(client: ClientProgram) -> str:
    return "json" if client.format == "json" else "text"


# ---- the command line


def _cli() -> str:
    lines = [
        "# Command line",
        NOTE,
        "Data goes to standard output, everything else to standard error. Colour is for "
        "terminals only. `--json` prints one object: indented on a terminal, one line in a "
        "pipe. An error is one line that says what is wrong and one that says what to do.",
        _joined(
            [
                "| exit code | meaning |\n|---|---|",
                "| 0 | done; a search without hits included |",
                "| 1 | the operation failed: a tool is not there, `check` found an error |",
                "| 2 | a flag, a setting or a catalog cannot be used |",
            ]
        ).strip(),
        "## toolfold",
        *_help(main, _context(main, "toolfold", None)),
    ]
    for name, context, command in _commands():
        lines += [f"## toolfold {name}", *_help(command, context)]
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                part = command.get_command(context, inner)
                assert part is not None
                lines += [
                    f"### toolfold {name} {inner}",
                    *_help(part, _context(part, inner, context)),
                ]
        if name in JSON_KEYS:
            lines.append(f"With `--json`: {JSON_KEYS[name]}")
    return _joined(lines)


def _commands() -> Iterator[tuple[str, click.Context, click.Command]]:
    root = _context(main, "toolfold", None)
    for name in main.list_commands(root):
        command = main.get_command(root, name)
        assert command is not None
        yield name, _context(command, name, root), command


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return command.make_context(
        name, [], parent=parent, resilient_parsing=True, terminal_width=WIDTH
    )


def _help(command: click.Command, context: click.Context) -> Iterator[str]:
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    yield f"```text\n{text}\n```"


# ---- the library


def _api() -> str:
    errors = [name for name in toolfold.__all__ if name.endswith("Error")]
    grouped = {name for names in GROUPS.values() for name in names} | set(errors)
    groups = {**GROUPS, "Errors": errors}
    if others := [name for name in toolfold.__all__ if name not in grouped]:
        groups["Others"] = others
    lines = [
        "# Library",
        NOTE,
        "Every name in `toolfold.__all__`: this is what a version number promises to keep. "
        "Types are written as in the source. The other public modules follow, name by name; what "
        "stands on this page is for everybody, what does not is ours to move.",
    ]
    for title, names in groups.items():
        lines.append(f"## {title}")
        for name in names:
            lines += _entry(name, getattr(toolfold, name), "toolfold")
    seen: dict[int, str] = {}
    for module, names in public_names().items():
        if names:
            lines += [f"## {module}", _summary(importlib.import_module(module))]
        for name in names:
            value = getattr(importlib.import_module(module), name)
            first = seen.setdefault(id(value), f"{module}.{name}")
            if first == f"{module}.{name}":
                lines += _entry(name, value, module)
            else:
                lines += [f"### `{module}.{name}`", f"The same as `{first}`."]
    lines += [
        "## All modules",
        "What can be read and imported. Names that stand above are kept from version to version; "
        "the rest of these modules may change. A module whose name begins with `_` is nobody's "
        "business but ours.",
        "\n".join(picture.public_modules()),
    ]
    return _joined(lines)


def public_names() -> dict[str, list[str]]:
    """Return the public modules beside the top level, each with its public names."""
    return {
        module: list(getattr(importlib.import_module(module), "__all__", ()))
        if names is None
        else names
        for module, names in BESIDE.items()
    }


def _entry(name: str, value: Any, module: str) -> Iterator[str]:
    yield f"### `{name}`" if module == "toolfold" else f"### `{module}.{name}`"
    if value is Any or not callable(value) or get_origin(value) is not None:
        text, written = _constant(name, module)
        yield text if "{" in written or len(written) > WIDTH else f"{text} `{written}`"
    elif inspect.isclass(value) and issubclass(value, Exception):
        page = (REFERENCE / "errors.md").read_text("utf-8")
        link = f" See [Errors](errors.md#{name.lower()})." if f"\n## {name}\n" in page else ""
        yield f"{_summary(value)}{link}"
    elif value in KEYS_OF:
        yield f"{_summary(value)} Its fields are the keys of {KEYS_OF[value]}."
        yield from _members(value)
    elif inspect.isclass(value):
        yield _summary(value)
        if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
            yield from _fields(value)
        elif not getattr(value, "_is_protocol", False):
            yield _code(name, value)
        yield from _members(value)
    else:
        yield _summary(value)
        yield _code(name, value)
        yield from _arguments(value)


def _fields(cls: Any) -> Iterator[str]:
    texts = _attribute_texts(cls)
    if not dataclasses.is_dataclass(cls):
        for name, hint in inspect.get_annotations(cls).items():
            yield f"- `{name}: {getattr(hint, '__forward_arg__', hint)}`: {texts.get(name, '')}"
        return
    for item in dataclasses.fields(cls):
        if item.name.startswith("_"):
            continue
        default = item.default if item.init else dataclasses.MISSING
        plain = isinstance(default, str | int | float | tuple | None)
        shown = f" = {default!r}" if plain else ""
        text = texts.get(item.name)
        said = f": {text}" if text else ""
        yield f"- `{item.name}: {item.type}{shown}`{said}{'' if item.init else ' Computed.'}"


_LISTED = {
    *(name for names in GROUPS.values() for name in names),
    *(
        name
        for module, names in BESIDE.items()
        for name in (names or importlib.import_module(module).__all__)
    ),
}


def _members(cls: Any) -> Iterator[str]:
    own: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        # What a base has that is documented itself, is said there.
        is_ours = base.__module__.startswith("toolfold.")
        if base is cls or (is_ours and base.__name__ not in _LISTED):
            own |= {n: value for n, value in vars(base).items() if not n.startswith("_")}
    for name, value in own.items():
        if isinstance(value, property):
            returned = _return(value.fget)
            yield f"- property `{name}: {returned}`: {_summary(value)}"
        function = value.__func__ if isinstance(value, classmethod) else value
        if inspect.isfunction(function):
            yield f"- `{name}{_signature(function)}`: {_summary(function)}"


def _arguments(function: Any) -> Iterator[str]:
    parsed = docstring_parser.parse(inspect.getdoc(function) or "")
    for item in parsed.params:
        text = " ".join((item.description or "").split())
        yield f"- `{item.arg_name}`: {text}"
    for item in parsed.raises:
        text = " ".join((item.description or "").split())
        error = str(item.type_name)
        link = f"[`{error}`](errors.md#{error.lower()})"
        yield f"- raises {f'`{error}`' if hasattr(builtins, error) else link}: {text}"


def _code(name: str, value: Any) -> str:
    line = f"{name}{_signature(value)}"
    if len(line) > WIDTH:
        parameters = [_parameter(p) for p in inspect.signature(value).parameters.values()]
        star = next((i for i, p in enumerate(_parameters(value)) if p.kind is p.KEYWORD_ONLY), None)
        if star is not None:
            parameters.insert(star, "*")
        line = f"{name}(\n    " + ",\n    ".join(parameters) + f",\n) -> {_return(value)}"
    return f"```text\n{line}\n```"


def _parameters(value: Any) -> list[inspect.Parameter]:
    own = inspect.signature(value).parameters.values()
    return [parameter for parameter in own if parameter.name not in ("self", "cls")]


def _return(function: Any) -> str:
    return inspect.signature(function).return_annotation


def _parameter(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if inspect.isroutine(default):
        shown = f" = {default.__name__}"
    elif default is toolfold.EVERYTHING:
        shown = " = EVERYTHING"
    else:
        shown = "" if default is inspect.Parameter.empty else f" = {default!r}"
    star = {parameter.VAR_KEYWORD: "**", parameter.VAR_POSITIONAL: "*"}.get(parameter.kind, "")
    return f"{star}{parameter.name}: {parameter.annotation}{shown}"


def _signature(value: Any) -> str:
    shown: list[str] = []
    for parameter in _parameters(value):
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        shown.append(_parameter(parameter))
    returned = inspect.signature(value).return_annotation
    is_plain = returned is inspect.Signature.empty or inspect.isclass(value)
    arrow = "" if is_plain else f" -> {returned}"
    return f"({', '.join(shown)}){arrow}"


def _summary(value: Any) -> str:
    return (inspect.getdoc(value) or "").split("\n\n", 1)[0].replace("\n", " ")


def _attribute_texts(cls: Any) -> dict[str, str]:
    """Return the texts that stand under the fields of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    return dict(_documented(body.body))


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield the names that are assigned to, each with the text in the next line."""
    for statement, after in pairwise(body):
        if not isinstance(statement, ast.AnnAssign | ast.Assign) or not isinstance(after, ast.Expr):
            continue
        name = _target(statement)
        if name and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            yield name, " ".join(after.value.value.split())


def _constant(name: str, module: str) -> tuple[str, str]:
    """Return the text under a public constant, and its value as it is written."""
    body = ast.parse(inspect.getsource(importlib.import_module(module))).body
    texts = dict(_documented(body))
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            if any((alias.asname or alias.name) == name for alias in statement.names):
                return _constant(name, statement.module)
        elif isinstance(statement, ast.AnnAssign | ast.Assign) and _target(statement) == name:
            assert statement.value is not None
            return texts.get(name, ""), ast.unparse(statement.value).replace("'", '"')
    raise LookupError(name)


def _target(statement: ast.AnnAssign | ast.Assign) -> str | None:
    target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
    return target.id if isinstance(target, ast.Name) else None


# ---- texts


def _codes(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _joined(blocks: list[str]) -> str:
    """Join blocks with a blank line between them, rows of a list or a table without."""
    out: list[str] = []
    for block in blocks:
        if out and not (block[:2] in ("- ", "| ") and out[-1][:2] in ("- ", "| ")):
            out.append("")
        out.append(block)
    return "\n".join(out) + "\n"


def run(arguments: list[str]) -> int:
    """Write the pages, or compare them; return the exit code."""
    stale = [path for path, text in pages().items() if not _is(path, text)]
    if "--check" in arguments:
        sys.stderr.writelines(f"out of date: {path.name}\n" for path in stale)
        return 1 if stale else 0
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
