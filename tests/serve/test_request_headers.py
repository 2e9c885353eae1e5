"""The headers of a request are read once, and anew where somebody took some away."""

from __future__ import annotations

from typing import Any

from toolfold.serve.http.request_headers import headers_of


def test_a_header_is_found_whatever_its_letters_as_often_as_it_stands_there() -> None:
    scope: dict[str, Any] = {"headers": [(b"Accept", b"a"), (b"accept", b"b"), (b"host", b"h")]}

    assert headers_of(scope, b"accept") == ["a", "b"]
    assert headers_of(scope, b"origin") == []


def test_a_header_that_was_taken_away_is_not_remembered() -> None:
    scope: dict[str, Any] = {"headers": [(b"authorization", b"Bearer secret")]}
    headers_of(scope, b"authorization")

    scope["headers"] = []

    assert headers_of(scope, b"authorization") == []
