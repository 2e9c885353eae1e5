"""Exact counts of tokens: what the extra `exact` needs, and what is said where it lacks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolfold import ConfigError, exact_counter


def test_ranks_that_cannot_be_fetched_are_an_error_that_says_how_to_bring_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("tiktoken")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")

    with pytest.raises(ConfigError) as raised:
        exact_counter("p50k_base")

    assert raised.value.message.startswith("the ranks of `p50k_base` cannot be had: ")
    assert raised.value.hint == (
        "tiktoken fetches them once: do so where there is a network, with TIKTOKEN_CACHE_DIR "
        "set to a folder, and take that folder along"
    )


def test_an_encoding_that_does_not_exist_is_answered_with_those_that_do() -> None:
    pytest.importorskip("tiktoken")

    with pytest.raises(ConfigError) as raised:
        exact_counter("o300k")

    assert raised.value.message == "there is no encoding `o300k`"
    assert raised.value.hint is not None
    assert "`o200k_base`" in raised.value.hint
