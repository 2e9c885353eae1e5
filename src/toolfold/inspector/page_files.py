"""The page's own files, as they are sent.

The frame is one answer: its styles stand in it, allowed by their digest, so that a browser paints
it without asking for anything else. What the views are made of is asked for behind that paint.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import cache
from importlib.resources import files
from typing import NamedTuple

__all__ = ["PATHS", "PageFile", "page_file", "policy"]

_KINDS = {
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
_NAMES = (
    "icon.svg", "begin.js", "inspector.js", "dom.js", "page.js", "dialogs.js", "catalog.js",
    "treemap.js", "findings.js", "tool.js", "search.js", "fold.js", "conversations.js",
    "audit.js", "live.js", "trust.js",
)  # fmt: skip
_FILES = {"/": "index.html", **{f"/{name}": name for name in _NAMES}}
_STYLES = b"<style></style>"

PATHS = frozenset(_FILES)
"""Where they are."""


class PageFile(NamedTuple):
    """A file, and what a browser is to take it for."""

    kind: bytes
    body: bytes


@cache
def page_file(path: str) -> PageFile:
    """Return what is at one of the paths."""
    name = _FILES[path]
    body = _read(name)
    if name == "index.html":
        body = body.replace(_STYLES, b"<style>" + _read("inspector.css") + b"</style>", 1)
    return PageFile(_KINDS[name.rpartition(".")[2]], body)


@cache
def policy() -> bytes:
    """Return what the page may do: run its own files, look as it does, ask its own server."""
    styles = b64encode(hashlib.sha256(_read("inspector.css")).digest())
    return (
        b"default-src 'none'; script-src 'self'; style-src 'sha256-" + styles + b"'; "
        b"connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _read(name: str) -> bytes:
    # A browser reads every end of a line as one sign, and so must the digest.
    return (files("toolfold.inspector") / "static" / name).read_bytes().replace(b"\r\n", b"\n")
