"""The gateway's configuration, from one file.

The file is YAML or JSON with up to six blocks: `mcpServers` (or VS Code's `servers`),
`functions`, `openapi`, `serve`, `profiles` and `tools: tool_search:`. So everybody's `mcp.json`
is one as it stands, and a `toolfold.yaml` may hold all of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from toolfold.config.api_entries import ReadApis, read_apis
from toolfold.config.function_entries import read_functions
from toolfold.config.references import References
from toolfold.config.serve_settings import ServeSettings
from toolfold.config.served_profiles import (
    ServedProfile,
    check_limits,
    profile_named,
    read_profiles,
)
from toolfold.config.server_reader import Read, read_servers
from toolfold.errors import ConfigError
from toolfold.scope import EVERYTHING, Scope
from toolfold.settings import Settings, load_settings
from toolfold.settings.block import read_block
from toolfold.settings.declared import declared
from toolfold.settings.file import OWN_FILE, Place, Top, read_top, settings_block
from toolfold.settings.load import PLACES, refuse_unnamed, settings_in
from toolfold.settings.model import StrategyName
from toolfold.settings.words_file import with_words_beside
from toolfold.sources.function_modules import FunctionModule
from toolfold.sources.mcp.server import Server
from toolfold.sources.openapi.http_api import HttpApi

__all__ = ["GatewayConfig", "find_config", "load_gateway", "missing_hint", "user_config"]

_BLOCKS = ("mcpServers", "servers")
_TOKEN_ITSELF = ("token", "value", "secret", "bearer", "key")


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """All that the gateway is told."""

    servers: tuple[Server, ...] = ()
    """The servers, in the file's order; those that are disabled are left out."""

    serve: ServeSettings = field(default_factory=ServeSettings)
    settings: Settings = field(default_factory=Settings)
    """How to fold."""

    path: Path | None = None
    """The file, where there is one."""

    disabled: tuple[str, ...] = ()
    """The names of the servers that are left out."""

    notes: tuple[str, ...] = ()
    """What a person may want to know of a file that can be used all the same."""

    functions: tuple[FunctionModule, ...] = ()
    """The modules of Python functions beside the servers; none of them is imported yet."""

    apis: tuple[HttpApi, ...] = ()
    """The HTTP APIs beside the servers; no document of theirs is read yet."""

    profiles: tuple[ServedProfile, ...] = ()
    """The named parts of the gateway, each under a path of its own."""

    chosen: ServedProfile | None = None
    """The profile that all of it is under, where one was chosen."""

    @property
    def all_profiles(self) -> tuple[ServedProfile, ...]:
        """The profiles that count: those with a path of their own, or the one that was chosen."""
        return self.profiles if self.chosen is None else (*self.profiles, self.chosen)

    @property
    def scope(self) -> Scope:
        """The tools that exist for anybody at all: those of the profile that was chosen."""
        return EVERYTHING if self.chosen is None else self.chosen.scope

    @property
    def has_tools(self) -> bool:
        """Whether it names anything that tools come from."""
        return bool(self.servers or self.functions or self.apis)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of servers and APIs that must never be shown, for a `Redactor`."""
        return tuple(secret for each in (*self.servers, *self.apis) for secret in each.secrets)

    @property
    def folding(self) -> Settings:
        """How the gateway folds: the settings, with the strategy that counts."""
        return self._folding_by(self.settings)

    def folding_under(self, profile: ServedProfile) -> Settings:
        """Return how the gateway folds under a profile."""
        return self._folding_by(profile.settings)

    def _folding_by(self, settings: Settings) -> Settings:
        strategy = self.serve.mode or _without_provider(settings)
        return settings if strategy == settings.strategy else replace(settings, strategy=strategy)

    def profile(self, name: str) -> ServedProfile | None:
        """Return the profile of a name, if there is one."""
        return next((profile for profile in self.profiles if profile.name == name), None)

    def under(self, name: str | None) -> GatewayConfig:
        """Return what is left of it under one profile, for who asks nothing else.

        Args:
            name: The profile; None leaves all as it is.

        Raises:
            ConfigError: There is no such profile.
        """
        if name is None:
            return self
        chosen = profile_named(self.profiles, name)
        wanted = chosen.servers
        serve = replace(
            self.serve,
            read_only=self.serve.read_only or chosen.read_only,
            context_length=chosen.context_length or self.serve.context_length,
        )
        return replace(
            self,
            servers=tuple(s for s in self.servers if wanted is None or s.name in wanted),
            functions=tuple(f for f in self.functions if wanted is None or f.name in wanted),
            apis=tuple(api for api in self.apis if wanted is None or api.name in wanted),
            serve=serve,
            settings=chosen.settings,
            profiles=(),
            chosen=chosen,
        )


def load_gateway(
    path: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    strict: bool = True,
    **overrides: Any,
) -> GatewayConfig:
    """Return the gateway's configuration.

    Args:
        path: The file. Without it, `TOOLFOLD_CONFIG`, then `toolfold.yaml` in the working
            directory, then the one in the user's configuration folder; without any of
            them, the configuration is empty. A folder's file that names servers,
            functions or APIs, says how to serve, or where anything is sent or written, must be
            named: whoever wrote the folder chose that, not whoever looks into it.
        environ: The environment; the process's own by default.
        strict: Whether a server that cannot be used is an error. Otherwise it comes with
            its `problem`, and the others are not touched by it.
        overrides: Settings of `tools.tool_search` that win over the file's and the
            environment's. None stands for one that is not given.

    Raises:
        ConfigError: The file cannot be read, a key of ours is unknown or a value cannot
            be used. The error names the key, the value, the line and the fix.
    """
    environ = os.environ if environ is None else environ
    chosen = find_config(path, environ)
    if chosen is None:
        return GatewayConfig(settings=load_settings(environ=environ, **overrides))
    file = read_top(chosen, {**dict.fromkeys(declared(ServeSettings), "serve"), **PLACES})
    top = file.blocks
    if not (path or environ.get("TOOLFOLD_CONFIG")) and chosen == Path(OWN_FILE):
        _refuse_unasked(top)
        if (block := settings_block(chosen, file)) is not None:
            refuse_unnamed(block)
    serve = read_serve(top["serve"]) if "serve" in top else ServeSettings()
    # The variables that hold tokens may be named like settings and are none.
    others = set(serve.token_variables)
    variables = {key: value for key, value in environ.items() if key not in others}
    own_block = settings_block(chosen, file)
    settings = settings_in(own_block, variables, **overrides)
    settings = with_words_beside(settings, chosen)
    strategy = overrides.get("strategy")
    if strategy is not None:
        serve = replace(serve, mode=None)
    references = References.of(chosen, environ, is_users=chosen == user_config())
    found = _servers(file, references, strict=strict)
    functions = _functions(top, chosen.absolute().parent)
    http = _apis(top, references, chosen.absolute().parent, strict=strict)
    names = {*(server.name for server in found.servers), *found.disabled}
    for entry in functions:
        if entry.name in names:
            raise ConfigError(
                f"`functions.{entry.name}` has the name of a server{top['functions'].where}",
                hint="give it a name of its own",
            )
    names |= {entry.name for entry in functions}
    for api in http.apis:
        if api.name in names:
            raise ConfigError(
                f"`openapi.{api.name}` has a name that is taken{top['openapi'].where}",
                hint="give it one that no server and no functions have",
            )
    notes = (*found.notes, *_strategy_notes(serve, settings, asked=strategy is not None))
    disabled = (*found.disabled, *http.disabled)
    profiles: tuple[ServedProfile, ...] = ()
    if "profiles" in top and top["profiles"].node.value:
        names |= {*(api.name for api in http.apis), *http.disabled}
        profiles = read_profiles(top["profiles"], own_block, variables, names, **overrides)
    check_limits(serve, profiles)
    return GatewayConfig(
        found.servers, serve, settings, chosen, disabled, notes, functions, http.apis, profiles
    )


def find_config(
    path: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None
) -> Path | None:
    """Return the file that is read, or None where there is none."""
    environ = os.environ if environ is None else environ
    named = path or environ.get("TOOLFOLD_CONFIG")
    if named:
        return Path(named).expanduser()
    return next((p for p in (Path(OWN_FILE), user_config()) if p.is_file()), None)


_UNASKED = {
    **dict.fromkeys(_BLOCKS, "names servers to start"),
    "functions": "names Python functions to load",
    "openapi": "names HTTP APIs to call",
    "serve": "says how to serve",
    "profiles": "says how to serve",
}


def _refuse_unasked(top: Mapping[str, Place]) -> None:
    for key, what in _UNASKED.items():
        if key in top and top[key].node.value:
            raise ConfigError(
                f"this folder's file {what}{top[key].where}",
                hint=f"give `--config {OWN_FILE}` if you trust it",
            )


def missing_hint() -> str:
    """Return what to do where no configuration names servers."""
    if Path(".mcp.json").is_file():
        # Its servers are started by whoever reads it, so it is not read unasked.
        return "give `--config .mcp.json` for the servers of this folder, or run `toolfold import`"
    return "run `toolfold import` to find yours, or give --config FILE with `mcpServers`"


def user_config() -> Path:
    """Return where the user's own configuration is, or would be."""
    import platformdirs

    return platformdirs.user_config_path("toolfold", appauthor=False) / OWN_FILE


def _servers(file: Top, references: References, *, strict: bool) -> Read:
    top = file.blocks
    given = [key for key in _BLOCKS if key in top and top[key].node.value]
    if len(given) > 1:
        raise ConfigError(
            f"both `mcpServers` and `servers` stand{top['servers'].where}",
            hint="put all servers under `mcpServers`",
        )
    if not given:
        return Read((), (), ())
    return read_servers(top[given[0]], references, strict=strict, key=given[0], is_own=file.is_own)


def _functions(top: Mapping[str, Place], folder: Path) -> tuple[FunctionModule, ...]:
    block = top.get("functions")
    return read_functions(block, folder) if block is not None and block.node.value else ()


def _apis(
    top: Mapping[str, Place], references: References, folder: Path, *, strict: bool
) -> ReadApis:
    block = top.get("openapi")
    if block is None or not block.node.value:
        return ReadApis((), ())
    return read_apis(block, references, folder, strict=strict)


def _without_provider(settings: Settings) -> StrategyName:
    """Return the strategy for clients whose provider is not known: the bridge, if one is needed."""
    name = settings.strategy
    return "bridge" if name in ("auto", "native", "hosted") else name


def _strategy_notes(serve: ServeSettings, settings: Settings, *, asked: bool) -> list[str]:
    """Say which strategy counts, where somebody may expect another."""
    mode, strategy = serve.mode, _without_provider(settings)
    if mode is not None:
        wins = "" if mode == strategy else f" and wins over `strategy: {strategy}`"
        return [
            f"`serve.mode: {mode}` is still understood{wins}; write `strategy: {mode}` under "
            "`tools: tool_search:` in its place"
        ]
    if strategy == "stub" and not asked:
        return ["`strategy: stub` is obeyed: clients list every tool, without parameters at first"]
    if settings.strategy not in ("auto", strategy):
        return [
            f"`strategy: {settings.strategy}` is for who speaks to a model's provider: clients of "
            "the gateway get the bridge"
        ]
    return []


def read_serve(block: Place) -> ServeSettings:
    """Return what stands under `serve`.

    Raises:
        ConfigError: A key is unknown, or a value cannot be used.
    """
    refuse_tokens(block, "serve")
    serve = read_block(ServeSettings, block, "serve.")
    oauth = block.pairs("`serve`").get("oauth")
    if oauth is not None and serve.oauth is None:
        # Whoever wrote the key means to let nobody in without a token.
        raise ConfigError(f"`serve.oauth` is empty{oauth.where}", hint="give it an `issuer`")
    return serve


def refuse_tokens(block: Place, name: str) -> None:
    """Refuse tokens that stand in a file themselves.

    Args:
        block: The block that has a list `tokens`.
        name: Its name.

    Raises:
        ConfigError: One does.
    """
    tokens = block.pairs(f"`{name}`").get("tokens")
    for token in tokens.items if tokens is not None else ():
        for key, place in token.pairs(f"`{name}.tokens`").items():
            if key in _TOKEN_ITSELF:
                raise ConfigError(
                    f"a token itself stands under `{name}.tokens`{place.where}",
                    hint="put it into an environment variable and name that: `env: NAME`",
                )
