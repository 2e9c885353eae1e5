"""The model that a command talks to: its options, its key, its client."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args
from urllib.parse import urlsplit

import click

from toolfold.errors import ConfigError

if TYPE_CHECKING:
    from toolfold.runtime.clients.http_model import HttpModel

__all__ = ["Api", "model_options", "open_model"]

Api = Literal["openai", "openai-responses", "anthropic"]
F = TypeVar("F", bound=Callable[..., Any])


def model_options(function: F) -> F:
    """Add `--model`, `--base-url`, `--api` and `--api-key-env`."""
    key = click.option(
        "--api-key-env", metavar="NAME",
        help="The environment variable with the key  [default: OPENAI_API_KEY, ANTHROPIC_API_KEY]",
    )  # fmt: skip
    api = click.option(
        "--api", type=click.Choice(get_args(Api)), default="openai", show_default=True,
        help="How it is spoken to: chat completions, Responses, or Messages",
    )  # fmt: skip
    url = click.option(
        "--base-url", metavar="URL", help="Where it is served, such as a server of yours"
    )
    model = click.option("--model", metavar="NAME", help="The model to ask")
    return model(url(api(key(function))))


def open_model(
    name: str | None, base_url: str | None, api: Api, key: str | None, *, instead: str
) -> HttpModel:
    """Return the client of a model.

    Args:
        name: The model.
        base_url: Where it is served; None for its maker.
        api: How it is spoken to.
        key: The environment variable with the key, where one is named.
        instead: The command that needs no model.

    Raises:
        ConfigError: No model is named, or there is no key.
    """
    if name is None:
        raise ConfigError(
            "no model is named",
            hint="give --model NAME, with --base-url URL for a server of your own; "
            f"`{instead}` needs no model",
        )
    from toolfold.runtime.clients import Anthropic, OpenAIChat, OpenAIResponses

    clients: dict[Api, type[OpenAIChat | OpenAIResponses | Anthropic]] = {
        "openai": OpenAIChat,
        "openai-responses": OpenAIResponses,
        "anthropic": Anthropic,
    }
    client = clients[api]
    where: dict[str, Any] = {} if base_url is None else {"base_url": base_url}
    return client(name, api_key=_key(base_url, client.api.key_variable, key, instead), **where)


def _key(base_url: str | None, usual: str, named: str | None, instead: str) -> str:
    """Return the key to send: none to a server on this machine, unless one is named for it."""
    key = os.environ.get(named or usual, "")
    if named is not None and not key:
        raise ConfigError(
            f"the environment variable `{named}` is not set",
            hint="set it, or leave out --api-key-env where no key is needed",
        )
    if base_url is None and not key:
        raise ConfigError(
            f"there is no key: the environment variable `{usual}` is not set",
            hint="set it, name another with --api-key-env, or give --base-url for a server of "
            f"your own; `{instead}` needs no model",
        )
    if named is None and base_url is not None:
        try:
            host = urlsplit(base_url).hostname or ""
        except ValueError:
            return ""  # the client says what is wrong with it
        if host == "localhost" or host == "::1" or host.startswith("127."):
            return ""
    return key
