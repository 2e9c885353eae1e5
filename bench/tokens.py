"""Exact token counts by o200k_base, without a network.

`tiktoken` fetches its ranks on first use. The `litellm` package carries them in one of its folders
under the very names that tiktoken's cache uses, so pointing `TIKTOKEN_CACHE_DIR` there is enough.
litellm is looked up and never imported: its import takes seconds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

__all__ = ["exact_counter", "why_not_exact"]

# The SHA-1 of the address that tiktoken loads o200k_base from: its file name in a cache.
_O200K = "fb374d419588a4632f3f557e76b4b70aebbca790"


def why_not_exact() -> str | None:
    """Return why there is no exact counter here, or None where there is one."""
    if find_spec("tiktoken") is None:
        return "no exact token counts: tiktoken is not installed"
    if _ranks() is None:
        return (
            "no exact token counts: the o200k_base ranks are not on this machine; install "
            "litellm, which carries them, or point TIKTOKEN_CACHE_DIR at a folder that does"
        )
    return None


def exact_counter() -> Callable[[str], int] | None:
    """Return a function that counts a text's tokens, or None, with the reason on stderr."""
    reason = why_not_exact()
    ranks = _ranks()
    if reason or ranks is None:
        sys.stderr.write(f"{reason}\n")
        return None
    import tiktoken

    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(ranks)
    try:
        encoding = tiktoken.get_encoding("o200k_base")
    finally:
        # Left set, a download of other ranks would be written into litellm's folder.
        del os.environ["TIKTOKEN_CACHE_DIR"]
        if before is not None:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
    # Text that looks like a control token is counted as the plain text it is.
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def _ranks() -> Path | None:
    """Return the folder that holds the ranks: the cache that is set, else litellm's."""
    named = os.environ.get("TIKTOKEN_CACHE_DIR")
    litellm = find_spec("litellm")
    places = (litellm.submodule_search_locations if litellm else None) or ()
    folders = [Path(named)] if named else []
    folders += [Path(place) / "litellm_core_utils" / "tokenizers" for place in places]
    return next((folder for folder in folders if (folder / _O200K).is_file()), None)
