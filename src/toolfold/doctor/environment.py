"""The environment: keys of providers, by their presence alone, and addresses that lead astray."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from toolfold.doctor.diagnosis import Diagnosis
from toolfold.doctor.sockets import is_listening

__all__ = ["look_at_environment"]

_PART = "environment"
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
_ADDRESSES = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL")
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")


def look_at_environment(environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield what the environment has for models, and what stands in the way of reaching them."""
    for name in _KEYS:
        yield _key(name, environ.get(name, ""))
    for name in _ADDRESSES:
        if address := environ.get(name, ""):
            yield _address(name, address)
    proxies = [name for name in _PROXIES if environ.get(name)]
    bypass = f"{environ.get('NO_PROXY', '')},{environ.get('no_proxy', '')}"
    if proxies and not any(host in bypass for host in ("127.0.0.1", "localhost", "*")):
        fix = "export NO_PROXY=localhost,127.0.0.1"
        message = f"{proxies[0]} is set, and servers on this machine would be sought through it"
        yield Diagnosis(_PART, proxies[0], "warning", message, fix)


def _key(name: str, value: str) -> Diagnosis:
    if not value:
        return Diagnosis(_PART, name, "ok", "not set; servers of your own need none")
    if value != value.strip() or value[0] in "\"'":
        message = "has quotes or spaces around it, which no provider takes"
        return Diagnosis(_PART, name, "broken", message, f"set {name} again without them")
    return Diagnosis(_PART, name, "ok", "set")


def _address(name: str, value: str) -> Diagnosis:
    try:
        parts = urlsplit(value)
        place = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        place, is_address = "", False
    if not is_address:
        return Diagnosis(_PART, name, "broken", "is no address of a server", f"unset {name}")
    if is_listening(value) is False:
        message = f"leads to {place}, where nothing listens"
        return Diagnosis(_PART, name, "broken", message, f"unset {name}")
    return Diagnosis(_PART, name, "ok", place)
