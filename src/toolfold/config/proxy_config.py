"""The proxy's configuration, from one file: the blocks `proxy`, `serve` and `tools`.

Who may ask, how often and from where is said as for the gateway, under `serve`; the tokens
alone are the proxy's own, since they let their owner spend what an upstream costs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from toolfold.config.gateway_config import find_config, read_serve, refuse_tokens, user_config
from toolfold.config.proxy_settings import ProxySettings, Upstream
from toolfold.config.references import ReferenceProblem, References
from toolfold.config.serve_settings import ServeSettings
from toolfold.errors import ConfigError
from toolfold.settings import Settings, load_settings
from toolfold.settings.block import read_block
from toolfold.settings.declared import declared
from toolfold.settings.file import OWN_FILE, Place, read_top, settings_block
from toolfold.settings.load import PLACES, refuse_unnamed, settings_in
from toolfold.settings.words_file import with_words_beside

__all__ = ["ProxyConfig", "load_proxy"]


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """All that the proxy is told."""

    proxy: ProxySettings = field(default_factory=ProxySettings)
    serve: ServeSettings = field(default_factory=ServeSettings)
    settings: Settings = field(default_factory=Settings)
    """How to fold."""

    keys: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The keys of upstreams that have one, by the upstream's name."""

    path: Path | None = None
    """The file, where there is one."""

    @property
    def door(self) -> ServeSettings:
        """Who may ask, how often and how much."""
        return replace(self.serve, tokens=self.proxy.tokens, body_limit=self.proxy.body_limit)

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port to listen at."""
        return listen_address(self.proxy.listen)


def load_proxy(
    path: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    upstream: str | None = None,
    listen: str | None = None,
    needs_upstream: bool = True,
    **overrides: Any,
) -> ProxyConfig:
    """Return the proxy's configuration.

    Args:
        path: The file; without it, the one that the gateway would read. A folder's file that
            has a `proxy` block must be named: it says where keys are sent.
        environ: The environment; the process's own by default.
        upstream: The address of the one upstream, in place of the file's.
        listen: Where to listen, in place of the file's.
        needs_upstream: Whether it is an error that nobody names an upstream.
        overrides: Settings of `tools.tool_search` that win over the file's.

    Raises:
        ConfigError: The file cannot be read, a key is unknown or a value cannot be used.
    """
    environ = os.environ if environ is None else environ
    chosen = find_config(path, environ)
    if chosen is None:
        config = ProxyConfig(settings=load_settings(environ=environ, **overrides))
    else:
        is_named = bool(path or environ.get("TOOLFOLD_CONFIG"))
        config = _read(chosen, environ, overrides, is_named=is_named)
    proxy = config.proxy
    if upstream is not None:
        proxy = replace(proxy, upstreams=(Upstream(name="upstream", url=upstream),))
        config = replace(config, keys={})
    if listen is not None:
        proxy = replace(proxy, listen=listen)
    if not proxy.upstreams and needs_upstream:
        raise ConfigError(
            "no upstream is named",
            hint="give --upstream URL, as http://127.0.0.1:11434, or `upstreams` under `proxy` in "
            "the configuration",
        )
    listen_address(proxy.listen)
    return replace(config, proxy=proxy)


def listen_address(text: str) -> tuple[str, int]:
    """Return the host and the port of an address; a bare port is on this machine.

    Raises:
        ConfigError: It is none.
    """
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError(
            f"the proxy is to listen at {text!r}", hint="write HOST:PORT, as 127.0.0.1:8788"
        )
    return host, int(port)


def _read(
    chosen: Path, environ: Mapping[str, str], overrides: Mapping[str, Any], *, is_named: bool
) -> ProxyConfig:
    places = {
        **dict.fromkeys(declared(ServeSettings), "serve"),
        **dict.fromkeys(declared(ProxySettings), "proxy"),
        **PLACES,
    }
    file = read_top(chosen, places)
    block = settings_block(chosen, file)
    if not is_named and chosen == Path(OWN_FILE):
        for key, what in (("proxy", "says where requests go"), ("serve", "says how to serve")):
            if key in file.blocks and file.blocks[key].node.value:
                raise ConfigError(
                    f"this folder's file {what}{file.blocks[key].where}",
                    hint=f"give `--config {OWN_FILE}` if you trust it",
                )
        if block is not None:
            refuse_unnamed(block)
    serve = read_serve(file.blocks["serve"]) if "serve" in file.blocks else ServeSettings()
    proxy = _proxy(file.blocks["proxy"]) if "proxy" in file.blocks else ProxySettings()
    # The variables that hold tokens may be named like settings and are none.
    others = {*serve.token_variables, *(token.env for token in proxy.tokens)}
    variables = {key: value for key, value in environ.items() if key not in others}
    references = References.of(chosen, environ, is_users=chosen == user_config())
    return ProxyConfig(
        proxy,
        serve,
        with_words_beside(settings_in(block, variables, **overrides), chosen),
        {each.name: _key(each, references) for each in proxy.upstreams if each.key},
        chosen,
    )


def _proxy(block: Place) -> ProxySettings:
    refuse_tokens(block, "proxy")
    return read_block(ProxySettings, block, "proxy.")


def _key(upstream: Upstream, references: References) -> str:
    where = f"`proxy.upstreams.{upstream.name}.key`"
    try:
        key = references.resolve(upstream.key).text.strip()
    except ReferenceProblem as problem:
        raise ConfigError(f"{where} {problem}", hint=problem.hint) from None
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigError(f"{where} leads to no key", hint="check what the reference stands for")
    return key
