"""How arguments are written into requests: every style of every place, as OpenAPI has it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.apis import document, operation, sent
from toolfold.sources.openapi._styles import in_path, pairs_of

LIST = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}


def in_place(place: str, value: Any, **how: Any) -> str:
    """Return what a parameter `color` of a place is written as."""
    path = "/x/{color}" if place == "path" else "/x"
    parameter = {"name": "color", "in": place, "required": place == "path", "schema": {}, **how}
    asked = sent(document({path: {"get": operation(parameter)}}), {"color": value})
    match place:
        case "path":
            return asked.target.removeprefix("/v1/x/")
        case "query":
            return asked.target.removeprefix("/v1/x").removeprefix("?")
        case "header":
            return asked.headers["color"]
        case _:
            return asked.headers["cookie"]


@pytest.mark.parametrize(
    ("place", "style", "explode", "value", "written"),
    [
        ("path", "simple", False, "blue", "blue"),
        ("path", "simple", False, LIST, "blue,black,brown"),
        ("path", "simple", True, LIST, "blue,black,brown"),
        ("path", "simple", False, OBJECT, "R,100,G,200,B,150"),
        ("path", "simple", True, OBJECT, "R=100,G=200,B=150"),
        ("path", "label", False, "blue", ".blue"),
        ("path", "label", False, LIST, ".blue,black,brown"),
        ("path", "label", True, LIST, ".blue.black.brown"),
        ("path", "label", False, OBJECT, ".R,100,G,200,B,150"),
        ("path", "label", True, OBJECT, ".R=100.G=200.B=150"),
        ("path", "matrix", False, "blue", ";color=blue"),
        ("path", "matrix", False, LIST, ";color=blue,black,brown"),
        ("path", "matrix", True, LIST, ";color=blue;color=black;color=brown"),
        ("path", "matrix", False, OBJECT, ";color=R,100,G,200,B,150"),
        ("path", "matrix", True, OBJECT, ";R=100;G=200;B=150"),
        ("query", "form", True, "blue", "color=blue"),
        ("query", "form", True, LIST, "color=blue&color=black&color=brown"),
        ("query", "form", False, LIST, "color=blue,black,brown"),
        ("query", "form", True, OBJECT, "R=100&G=200&B=150"),
        ("query", "form", False, OBJECT, "color=R,100,G,200,B,150"),
        ("query", "spaceDelimited", False, LIST, "color=blue%20black%20brown"),
        ("query", "pipeDelimited", False, LIST, "color=blue%7Cblack%7Cbrown"),
        ("query", "pipeDelimited", True, LIST, "color=blue&color=black&color=brown"),
        ("query", "deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
        ("query", "deepObject", True, {"a": {"b": [1]}}, "color%5Ba%5D%5Bb%5D%5B0%5D=1"),
        ("header", "simple", False, LIST, "blue,black,brown"),
        ("header", "simple", True, OBJECT, "R=100,G=200,B=150"),
        ("cookie", "form", False, LIST, "color=blue,black,brown"),
        ("cookie", "form", True, 7, "color=7"),
    ],
)
def test_each_style_is_written_as_the_specification_shows_it(
    place: str, style: str, explode: bool, value: Any, written: str
) -> None:
    assert in_place(place, value, style=style, explode=explode) == written


def test_without_a_style_each_place_has_its_own() -> None:
    assert in_place("path", LIST) == "blue,black,brown"
    assert in_place("query", LIST) == "color=blue&color=black&color=brown"
    assert in_place("header", LIST) == "blue,black,brown"


def test_true_and_numbers_are_written_as_in_json_and_null_is_left_out() -> None:
    assert in_place("query", True) == "color=true"
    assert in_place("query", 1.5) == "color=1.5"
    assert in_place("query", None) == ""
    assert in_place("query", []) == ""


def test_what_means_something_in_an_address_is_encoded() -> None:
    assert in_place("path", "a/b?c#d&e=f%") == "a%2Fb%3Fc%23d%26e%3Df%25"
    assert in_place("query", "a&b=c#d e+f") == "color=a%26b%3Dc%23d%20e%2Bf"
    assert in_place("query", ["a,b", "c"], explode=False) == "color=a%2Cb,c"


def test_reserved_characters_stay_where_the_document_allows_them() -> None:
    written = in_place("query", "http://a/b?c=d&e#f", allowReserved=True)

    assert written == "color=http://a/b?c=d%26e%23f"


def test_a_parameter_with_content_is_written_as_json() -> None:
    how = {"content": {"application/json": {"schema": {"type": "object"}}}}

    assert in_place("query", {"a": [1]}, **how) == "color=%7B%22a%22%3A%5B1%5D%7D"


texts = st.text(max_size=20)


@given(name=st.text(min_size=1, max_size=9), value=texts | st.lists(texts, min_size=1, max_size=4))
def test_what_a_query_holds_is_read_back_as_it_was(name: str, value: str | list[str]) -> None:
    text = "&".join(f"{n}={v}" for n, v in pairs_of(name, value, "form", True))

    read = parse_qsl(urlsplit(f"http://x/?{text}").query, keep_blank_values=True)
    assert read == [(name, each) for each in ([value] if isinstance(value, str) else value)]


@given(value=texts)
def test_no_value_of_a_path_has_a_second_segment(value: str) -> None:
    written = in_path("a", value, "simple", False)

    assert set(written).isdisjoint("/?#\\ \r\n")
    assert unquote(written) == value
