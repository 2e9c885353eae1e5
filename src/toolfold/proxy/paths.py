"""What a request's path says: the dialect, a token, and where it goes at an upstream."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from toolfold.proxy.exchange import ProxyDialect

__all__ = [
    "TITLES",
    "Asked",
    "asked",
    "is_sound",
    "is_without_tools",
    "joined",
    "shown_path",
    "without_token",
]

TITLES: dict[ProxyDialect, str] = {
    "openai-chat": "OpenAI chat completions",
    "openai-responses": "OpenAI Responses",
    "anthropic-messages": "Anthropic Messages",
}
"""What people call the dialects."""

_PATHS: tuple[tuple[re.Pattern[str], ProxyDialect, bool], ...] = (
    (re.compile(r"/(?:.*/)?chat/completions/?\Z"), "openai-chat", False),
    (re.compile(r"/(?:.*/)?responses/?\Z"), "openai-responses", False),
    # A thread of OpenAI's has `/v1/threads/ID/messages`.
    (re.compile(r"(?:.*/v\d[\w.]*)?/messages/?\Z"), "anthropic-messages", False),
    (re.compile(r"(?:.*/v\d[\w.]*)?/messages/count_tokens/?\Z"), "anthropic-messages", True),
)
_TOKEN = re.compile(r"(?:/t/([^/?]*)(?=[/?]|\Z))+")
_WITHOUT_TOOLS = re.compile(
    r"/(?:.*/)?(?:embeddings|moderations|rerank|tokenize|detokenize|files|audio/\w+|images/\w+)/?\Z"
)
_DECODED_AT_MOST = 3
_VERSION = re.compile(r"/v\d[\w.]*\Z")


class Asked(NamedTuple):
    """What a request asks for."""

    dialect: ProxyDialect
    counts: bool
    """Whether it asks how many tokens a request has, and not for an answer."""


def asked(method: str, path: str) -> Asked | None:
    """Return what is asked for; None where it is nothing that is folded."""
    if method != "POST":
        return None
    found = (Asked(name, counts) for known, name, counts in _PATHS if known.match(path))
    return next(found, None)


def without_token(path: str) -> tuple[str, str]:
    """Return a path without the token that it begins with, and that token.

    Where there are several, all are taken off: none goes up.
    """
    found = _TOKEN.match(path)
    return (path[found.end() :] or "/", found[1]) if found else (path, "")


def is_without_tools(path: str) -> bool:
    """Whether what is sent there has no tools in it, as far as is known."""
    return _WITHOUT_TOOLS.match(path) is not None


def shown_path(path: str) -> str:
    """Return a path as it may be written down."""
    rest, token = without_token(_decoded(path))
    return f"/t/…{rest}" if token else path


def is_sound(path: str) -> bool:
    """Whether a path stays below an upstream's base URL, whoever reads it, and holds no token.

    Args:
        path: A path as it came, without the token that it began with.
    """
    plain = _decoded(path)
    steps = plain.replace("\\", "/").split("/")
    is_written = path.startswith("/") and path.isascii() and path.isprintable()
    is_below = "#" not in path and not {".", ".."}.intersection(steps)
    return is_written and is_below and not without_token(plain)[1]


def _decoded(path: str) -> str:
    """Return a path as whoever reads it most often takes it."""
    for _ in range(_DECODED_AT_MOST):
        if (plain := unquote(path, "latin-1")) == path:
            break
        path = plain
    return path


def joined(base: str, path: str) -> str:
    """Return the path at an upstream of a request.

    Base URLs are written with and without their `/v1`, by people and by clients: it is taken
    once.

    Args:
        base: The path of the upstream's base URL, without a slash at its end.
        path: The request's path.
    """
    version = _VERSION.search(base)
    if version and (path == version[0] or path.startswith(f"{version[0]}/")):
        path = path[len(version[0]) :]
    return f"{base}{path}" or "/"
