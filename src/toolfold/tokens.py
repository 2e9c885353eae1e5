"""How many tokens a text costs.

The gate needs an estimate, not a count: characters over four. Any function from a text
to a number takes its place, a real tokenizer for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from toolfold._json_values import compact
from toolfold.errors import MissingExtraError

__all__ = ["TokenCounter", "compact", "context_window", "estimate", "exact_counter"]

TokenCounter: TypeAlias = Callable[[str], int]
"""Counts or estimates the tokens of a text."""

# The windows that the makers document for these families, for callers who name a model and
# no window. The longest prefix wins; an unknown model has no known window.
_WINDOWS: dict[str, int] = {
    "claude": 200_000,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-5": 400_000,
    "o1": 200_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "gemini": 1_048_576,
    "llama-3.1": 131_072,
    "llama-3.2": 131_072,
    "llama-3.3": 131_072,
    "mistral-large": 131_072,
    "qwen2.5": 32_768,
    "deepseek": 131_072,
}


def estimate(text: str) -> int:
    """Return the number of characters over four, rounded up."""
    return -(-len(text) // 4)


def exact_counter(encoding: str = "o200k_base") -> TokenCounter:
    """Return a counter that takes the place of characters over four, by `tiktoken`.

    Raises:
        MissingExtraError: The `exact` extra is not installed.
    """
    try:
        import tiktoken
    except ImportError:
        raise MissingExtraError("an exact token count", "exact") from None
    encoder = tiktoken.get_encoding(encoding)
    return lambda text: len(encoder.encode(text, disallowed_special=()))


def context_window(model: str | None) -> int | None:
    """Return the context window of a model known by name, or None.

    A provider's prefix (`anthropic/`, `openai:`) is passed over.
    """
    if model is None:
        return None
    name = model.replace(":", "/").rsplit("/", 1)[-1].lower()
    known = [prefix for prefix in _WINDOWS if name.startswith(prefix)]
    return _WINDOWS[max(known, key=len)] if known else None
