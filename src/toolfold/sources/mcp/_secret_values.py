"""Which values of a server's entry are secrets.

Names tell (`GITHUB_TOKEN`, `Authorization`, `--api-key`), and so do values (a maker's
prefix, a long run of mixed letters and digits). Where it is not clear, it is a secret:
what follows is only that it is referred to instead of copied, and marked instead of shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import log2

from toolfold.redact import redacted

__all__ = ["is_plain_variable", "is_secret_argument", "is_secret_header", "is_secret_value"]

_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:key|keys|pat|pwd|pass|auth|dsn|jwt|bearer|sid|session|signature|webhook)\d*\Z"
    r"|api_?-?key|secret|token|passw|credential|cookie|private|connection_?-?string"
    r"|(?:database|db|redis|mongo|mongodb|postgres|postgresql|mysql|amqp)_?(?:url|uri)\Z",
    re.IGNORECASE,
)
_PLAIN_HEADERS = frozenset(
    "accept accept-encoding accept-language cache-control content-type host origin referer "
    "user-agent x-client x-client-name x-client-version".split()
)
_PLAIN_VARIABLES = re.compile(
    r"(?:HOME|USER|USERNAME|USERPROFILE|LOGNAME|PATH|PWD|SHELL|LANG|LC_\w+|TERM|TZ|TMPDIR|TEMP"
    r"|TMP|HOSTNAME|XDG_\w+|APPDATA|LOCALAPPDATA|PROGRAMFILES|SYSTEMROOT)\Z"
)
_RUN = re.compile(r"[A-Za-z0-9_+=-]{20,}")
_LEAST_BITS = 3.4


def is_secret_value(name: str, value: str) -> bool:
    """Whether the value of a variable, or of a flag, is a secret."""
    if not value or "${" in value:
        return False  # what is only referred to here is somewhere else
    return bool(_SECRET_NAME.search(name)) or _looks_secret(name, value)


def is_secret_header(name: str, value: str) -> bool:
    """Whether the value of a header is a secret."""
    if not value or "${" in value:
        return False
    return name.lower() not in _PLAIN_HEADERS or _looks_secret(name, value)


def is_secret_argument(arguments: Sequence[str], place: int) -> bool:
    """Whether an argument of a command is a secret, by itself or by the flag before it."""
    argument = arguments[place]
    if "${" in argument:
        return False
    flag, equals, value = argument.partition("=")
    if equals and flag.startswith("-"):
        return is_secret_value(flag, value)
    before = arguments[place - 1] if place else ""
    # Only a long flag has a name that tells; `-k` may be anything.
    named = before if before.startswith("--") and "=" not in before else ""
    if argument.startswith("-"):
        return _looks_secret("", argument)
    return is_secret_value(named, argument)


def is_plain_variable(name: str) -> bool:
    """Whether what an environment variable holds is no secret, whoever sees it."""
    return bool(_PLAIN_VARIABLES.match(name))


def _looks_secret(name: str, value: str) -> bool:
    if redacted({name: value}) != {name: value}:
        return True
    if value.startswith(("@", "/", "./", "~/")):
        return False  # a package or a path
    return any(_is_random(run) for run in _RUN.findall(value))


def _is_random(run: str) -> bool:
    """Whether a run of characters is more likely made by a machine than by a person."""
    if not (any(c.isdigit() for c in run) and any(c.isalpha() for c in run)):
        return False
    counts = Counter(run)
    bits = -sum(n / len(run) * log2(n / len(run)) for n in counts.values())
    return bits >= _LEAST_BITS and sum(c.isdigit() for c in run) >= 3
