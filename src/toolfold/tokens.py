"""How many tokens a text costs.

The gate needs an estimate, not a count: characters over four. Any function from a text
to a number takes its place, a real tokenizer for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from toolfold._json_values import compact
from toolfold.errors import ConfigError, MissingExtraError

__all__ = ["TokenCounter", "compact", "context_window", "estimate", "exact_counter"]

TokenCounter: TypeAlias = Callable[[str], int]
"""Counts or estimates the tokens of a text."""

# The windows that the makers document for these families, for callers who name a model and
# no window: for hosted models their API references, for open ones the model card and
# `max_position_embeddings` in the `config.json` beside the weights (Qwen/*, meta-llama/*,
# mistralai/*, google/gemma-*, microsoft/Phi-*, HuggingFaceTB/SmolLM*, ibm-granite/*,
# deepseek-ai/*, openai/gpt-oss-*, CohereLabs/*, zai-org/*, LiquidAI/*), without the
# stretching (YaRN) that a server must be told to do. Where a family has several, the least.
# The longest beginning wins, hyphens passed over; an unknown model has no known window.
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
    "gpt-oss": 131_072,
    "llama-2": 4_096,
    "llama-3": 8_192,
    "llama-3.1": 131_072,
    "llama-3.2": 131_072,
    "llama-3.3": 131_072,
    "llama-4": 1_048_576,
    "codellama": 16_384,
    "codellama-70b": 4_096,
    "tinyllama": 2_048,
    "hermes-3": 131_072,
    "mistral": 32_768,
    "mistral-7b-v0.1": 8_192,
    "mistral-7b-instruct-v0.1": 8_192,
    "mistral-large": 131_072,
    "mistral-nemo": 131_072,
    "mistral-small-3.1": 131_072,
    "mistral-small-3.2": 131_072,
    "ministral": 32_768,
    "mixtral": 32_768,
    "mixtral-8x22b": 65_536,
    "codestral": 32_768,
    "devstral": 131_072,
    "qwen1.5": 32_768,
    "qwen2": 32_768,
    "qwen2.5": 32_768,
    "qwen3": 32_768,
    "qwen3-4b-instruct-2507": 262_144,
    "qwen3-4b-thinking-2507": 262_144,
    "qwen3-30b-a3b-instruct-2507": 262_144,
    "qwen3-30b-a3b-thinking-2507": 262_144,
    "qwen3-235b-a22b-instruct-2507": 262_144,
    "qwen3-235b-a22b-thinking-2507": 262_144,
    "qwen3-coder": 262_144,
    "qwen3-next": 262_144,
    "qwen3.5": 262_144,
    "qwq": 32_768,
    "gemma": 8_192,
    "gemma-2": 8_192,
    "gemma-3": 131_072,
    "gemma-3-1b": 32_768,
    "gemma-3-270m": 32_768,
    "gemma-3n": 32_768,
    "gemma-4": 131_072,
    "phi-3": 4_096,
    "phi-3-mini-128k": 131_072,
    "phi-3-small-128k": 131_072,
    "phi-3-medium-128k": 131_072,
    "phi-3.5": 131_072,
    "phi-4": 16_384,
    "phi-4-mini": 131_072,
    "phi-4-reasoning": 32_768,
    "smollm": 2_048,
    "smollm2": 8_192,
    "smollm3": 65_536,
    "granite-3": 4_096,
    "granite-3.1": 131_072,
    "granite-3.2": 131_072,
    "granite-3.3": 131_072,
    "granite-4": 131_072,
    "deepseek-chat": 131_072,
    "deepseek-reasoner": 131_072,
    "deepseek-r1": 131_072,
    "deepseek-v2": 131_072,
    "deepseek-v2-lite": 32_768,
    "deepseek-v3": 131_072,
    "deepseek-coder": 16_384,
    "deepseek-coder-v2": 131_072,
    "deepseek-llm": 4_096,
    "command-r": 131_072,
    "glm-4": 32_768,
    "glm-4-9b-chat": 131_072,
    "glm-4.5": 131_072,
    "glm-4.6": 131_072,
    "lfm2": 32_768,
}
_JOINTS = re.compile(r"[-_ ]+")
_BEGINNINGS = {_JOINTS.sub("", name): window for name, window in _WINDOWS.items()}


def estimate(text: str) -> int:
    """Return the number of characters over four, rounded up."""
    return -(-len(text) // 4)


def exact_counter(encoding: str = "o200k_base") -> TokenCounter:
    """Return a counter that takes the place of characters over four, by `tiktoken`.

    It fetches an encoding's ranks once, and keeps them in the folder `TIKTOKEN_CACHE_DIR`.

    Raises:
        MissingExtraError: The `exact` extra is not installed.
        ConfigError: There is no such encoding, or its ranks cannot be had.
    """
    try:
        import tiktoken
    except ImportError:
        raise MissingExtraError("an exact token count", "exact") from None
    try:
        encoder = tiktoken.get_encoding(encoding)
    except ValueError:
        known = ", ".join(f"`{name}`" for name in tiktoken.list_encoding_names())
        raise ConfigError(f"there is no encoding `{encoding}`", hint=f"take {known}") from None
    except OSError as error:
        raise ConfigError(
            f"the ranks of `{encoding}` cannot be had: {error}",
            hint="tiktoken fetches them once: do so where there is a network, with "
            "TIKTOKEN_CACHE_DIR set to a folder, and take that folder along",
        ) from None
    return lambda text: len(encoder.encode(text, disallowed_special=()))


def context_window(model: str | None) -> int | None:
    """Return the context window of a model known by name, or None.

    A provider's prefix (`anthropic/`, `openai:`), a maker's (`Meta-`), a tag (`:7b`) and the
    folder of a file are passed over.
    """
    if model is None:
        return None
    last = model.replace("\\", "/").rsplit("/", 1)[-1].lower()
    for part in reversed(last.split(":")):
        name = _JOINTS.sub("", part.removeprefix("meta-"))
        known = [beginning for beginning in _BEGINNINGS if name.startswith(beginning)]
        if known:
            return _BEGINNINGS[max(known, key=len)]
    return None
