"""One server's entry, in the words of any client, put into ours.

Clients agree on `command`, `args` and `env` and on little else: an address is `url`,
`serverUrl`, `httpUrl` or `uri`, an entry is `disabled` or not `enabled`, a command is a
text, a list or a block. Keys that mean the same become one; nothing is resolved here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from toolfold.settings.declared import declared
from toolfold.sources.mcp.server import Server
from toolfold.tool import Json, is_array, is_object

__all__ = ["ENV_FILE", "OUR_KEYS", "ServerEntry", "plain"]

ENV_FILE = ("envFile", "env_file")
"""The key that names a file of more variables; it goes into a server's `env`."""

OUR_KEYS: tuple[str, ...] = (*declared(Server), "envFile")
"""The keys that we write in an entry."""

_SAME = {key: (key, *item.also) for key, item in declared(Server).items()} | {"env_file": ENV_FILE}
_UNDERSTOOD = frozenset("enabled env_vars env_keys env_http_headers bearer_token_env_var".split())
_ELSEWHERE = _UNDERSTOOD | frozenset(
    "name title description display_name icon icons version source sourcePath bundled "
    "alwaysAllow autoApprove trust default_tools_approval_mode alwaysLoad alwaysLoadTools required "
    "isActive disabledFunctions supports_parallel_tool_calls sampling "
    "auth authProviderType oauth_resource oauthPublicClient oauthScopes scopes "
    "headersHelper targetAudience targetServiceAccount "
    "gallery dev sandbox sandboxEnabled watchPaths settings metadata remoteConfigured "
    "extensionName startup_timeout_ms networkTimeout connect_timeout tcp startup_readiness "
    "tool_input_schema_max_bytes omit_tools_from environment_id http_headers_helper".split()
)
"""What other clients write in an entry, to themselves."""

_OAUTH = {
    "oauth_client_id": ("client_id", "clientId"),
    "oauth_client_secret": ("client_secret", "clientSecret"),
    "oauth_port": ("callback_port", "callbackPort", "port"),
    "oauth_scopes": ("scopes", "scope"),
    "oauth_issuer": ("issuer",),
    "oauth_grant": ("grant",),
    "oauth_client_auth": ("client_auth",),
}
"""What a block `oauth` may hold, and what we call it."""

_SECRET_VARIABLE = "client_secret_env"
"""The variable that holds the client's secret; the same as `client_secret: ${NAME}`."""

OAUTH_KEYS: tuple[str, ...] = (
    *("enabled", _SECRET_VARIABLE),
    *(name for names in _OAUTH.values() for name in names),
)
"""The keys of a block `oauth`."""

_OAUTH_ELSEWHERE = frozenset(
    "audience audiences resource redirectUri redirectUrl redirect_uri "
    "authorizationUrl tokenUrl registrationUrl authServerMetadataUrl tokenParamName".split()
)
"""What other clients write in one."""

_TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "sse": "sse",
    "remote": None,
}


class ServerEntry(NamedTuple):
    """An entry in our words."""

    values: dict[str, Json]
    keys: dict[str, str]
    """Under which key each value was written."""

    unknown: tuple[str, ...]
    """Keys that nobody knows."""

    unknown_oauth: tuple[str, ...] = ()
    """Those of its block `oauth`."""

    def written(self, key: str) -> str:
        """Return the key as it was written."""
        return self.keys.get(key, key)


def plain(raw: Mapping[str, Json]) -> ServerEntry:
    """Return an entry in our words. Keys of other clients that mean nothing here are left out."""
    values: dict[str, Json] = {}
    keys: dict[str, str] = {}
    for own, names in _SAME.items():
        found = next((name for name in names if raw.get(name) is not None), None)
        if found is not None:
            values[own], keys[own] = raw[found], found
    if raw.get("enabled") is False:
        values["disabled"], keys["disabled"] = True, "enabled"
    _split_command(values, keys)
    _name_transport(raw, values, keys)
    _add_variables(raw, values)
    _settle_tools(values, keys)
    _settle_oauth(values, keys)
    known = {name for names in _SAME.values() for name in names} | _ELSEWHERE
    oauth = raw.get("oauth")
    strange = [key for key in (oauth if is_object(oauth) else ()) if key not in OAUTH_KEYS]
    return ServerEntry(
        values,
        keys,
        tuple(key for key in raw if key not in known),
        tuple(key for key in strange if key not in _OAUTH_ELSEWHERE),
    )


def _split_command(values: dict[str, Json], keys: dict[str, str]) -> None:
    command = values.get("command")
    if is_array(command) and command:
        values["command"] = command[0]
        values["args"] = [*command[1:], *values.get("args", [])]
        keys.setdefault("args", keys["command"])
    elif is_object(command) and isinstance(command.get("path"), str):
        values["command"] = command["path"]
        for key in ("args", "env"):
            if command.get(key) is not None:
                values.setdefault(key, command[key])
                keys.setdefault(key, keys["command"])


def _name_transport(raw: Mapping[str, Json], values: dict[str, Json], keys: dict[str, str]) -> None:
    given = values.get("type")
    if given is None and "httpUrl" in raw and keys.get("url") == "httpUrl":
        values["type"] = "http"
    elif isinstance(given, str) and given.lower() in _TRANSPORTS:
        transport = _TRANSPORTS[given.lower()]
        values["type"] = transport
        if transport is None:
            del values["type"], keys["type"]


def _add_variables(raw: Mapping[str, Json], values: dict[str, Json]) -> None:
    """Write variables that other clients name by keys of their own as references."""
    headers: dict[str, Json] = {}
    by_variable = raw.get("env_http_headers")
    if is_object(by_variable):
        headers |= {name: f"${{{variable}}}" for name, variable in by_variable.items()}
    bearer = raw.get("bearer_token_env_var")
    if isinstance(bearer, str) and bearer:
        headers["Authorization"] = f"Bearer ${{{bearer}}}"
    if headers:
        own = values.get("headers")
        values["headers"] = {**headers, **(own if is_object(own) else {})}
    # The first may be set or not; the second are in a keyring that only the client opens.
    passed: dict[str, Json] = {}
    for key, form in (("env_vars", "${{{}:-}}"), ("env_keys", "${{{}}}")):
        names = raw.get(key)
        for name in names if is_array(names) else ():
            if isinstance(name, str):
                passed[name] = form.format(name)
    if passed:
        own = values.get("env")
        values["env"] = {**passed, **(own if is_object(own) else {})}


def _settle_tools(values: dict[str, Json], keys: dict[str, str]) -> None:
    # Elsewhere an empty list of tools means all of them; ours means what it says.
    if keys.get("allow") not in (None, "allow") and values["allow"] == []:
        del values["allow"], keys["allow"]


def _settle_oauth(values: dict[str, Json], keys: dict[str, str]) -> None:
    """Write what stands in a block `oauth` under keys of its own."""
    oauth = values.get("oauth")
    if is_object(oauth):
        values["oauth"] = oauth.get("enabled") is not False
        for own, names in _OAUTH.items():
            found = next((oauth[name] for name in names if oauth.get(name) is not None), None)
            if found is not None:
                values.setdefault(own, found)
                keys.setdefault(own, "oauth")
        variable = oauth.get(_SECRET_VARIABLE)
        if isinstance(variable, str) and variable:
            values.setdefault("oauth_client_secret", f"${{{variable}}}")
            keys.setdefault("oauth_client_secret", "oauth")
    elif oauth is None and values.get("oauth_client_id") is not None:
        values["oauth"], keys["oauth"] = True, keys["oauth_client_id"]
    scopes = values.get("oauth_scopes")
    if isinstance(scopes, str):  # as in OAuth itself
        values["oauth_scopes"] = scopes.split()
