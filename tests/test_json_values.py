"""`toolfold._json_values`: one value, one text, whichever of two encoders writes it."""

from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Catalog, Tool, fold
from toolfold._json_values import (
    Json,
    NotJsonError,
    canonical,
    compact,
    compact_bytes,
    copied,
    fast_bytes,
    parse,
    parse_strict,
    sendable,
)

HALF = "\ud800"
HUGE = 2**80

_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**90), 2**90)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.just(HALF)
)
VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=4)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@given(VALUES)
def test_what_is_written_is_read_back_as_it_was(value: Json) -> None:
    assert parse(compact_bytes(value)) == value
    assert parse(canonical(value)) == value
    assert parse(compact(value)) == value


@given(OBJECTS)
def test_a_copy_is_equal_and_its_own(value: dict[str, Json]) -> None:
    made = copied(value)
    made["more"] = 1

    assert copied(value) == value
    assert "more" not in value


@given(st.dictionaries(st.text(max_size=6), VALUES, min_size=2, max_size=4))
def test_the_canonical_text_knows_no_order_and_the_compact_one_does(value: dict[str, Json]) -> None:
    turned = dict(reversed(value.items()))

    assert canonical(turned) == canonical(value)
    assert list(parse(compact(turned))) == list(turned)


@given(VALUES)
def test_what_is_sent_is_taken_by_the_strictest_parser(value: Json) -> None:
    read = parse_strict(sendable(value))

    assert compact(read) == compact(parse_strict(sendable(read)))


@pytest.mark.parametrize(
    ("value", "text", "data", "sent"),
    [
        ([HUGE], f"[{HUGE}]", f"[{HUGE}]", f"[{HUGE}]"),
        ([HALF], f'["{HALF}"]', r'["\ud800"]', '["\ufffd"]'),
        ([math.nan, -math.inf, 1.5], "[null,null,1.5]", "[null,null,1.5]", "[null,null,1.5]"),
        ([math.nan, HUGE, (math.inf,)], f"[null,{HUGE},[null]]", *[f"[null,{HUGE},[null]]"] * 2),
        (MappingProxyType({"ä": {}}), '{"ä":{}}', '{"\\u00e4":{}}', '{"ä":{}}'),
        ({"a": MappingProxyType({})}, '{"a":{}}', '{"a":{}}', '{"a":{}}'),
    ],
)
def test_what_the_quick_encoder_refuses_is_written_all_the_same(
    value: Json, text: str, data: str, sent: str
) -> None:
    assert compact(value) == text
    assert compact_bytes(value) == canonical(value) == data.encode()
    assert sendable(value) == sent.encode()


def test_what_is_not_quick_has_no_quick_text() -> None:
    assert fast_bytes({"b": [1], "a": "ä"}) == '{"b":[1],"a":"ä"}'.encode()
    for value in ([HUGE], [HALF], nested(400), object(), {1: 2}):
        assert fast_bytes(value) is None


def test_deep_nesting_is_written_and_read_as_far_as_python_goes() -> None:
    assert parse(compact(nested(400))) == nested(400)
    for write in (compact, compact_bytes, canonical, sendable):
        with pytest.raises(NotJsonError) as caught:
            write(nested(20_000))
        assert str(caught.value) == "nests too deep to be read"
    with pytest.raises(RecursionError):
        parse("[" * 100_000 + "]" * 100_000)


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"a": object()}, "Object of type object is not JSON serializable"),
        ([{1}], "Object of type set is not JSON serializable"),
        (circle(), "Circular reference detected"),
        ({(1, 2): 3}, "keys must be str, int, float, bool or None, not tuple"),
    ],
)
def test_what_is_not_json_is_an_error_that_says_what(value: Json, reason: str) -> None:
    for write in (compact, compact_bytes, canonical, sendable):
        with pytest.raises(NotJsonError) as caught:
            write(value)
        assert str(caught.value) == f"holds something that is not JSON: {reason}"
        assert caught.value.hint == "give plain dicts, lists, strings, numbers, booleans and None"


def test_reading_takes_what_python_writes_and_strict_reading_does_not() -> None:
    assert math.isnan(parse("NaN"))
    assert parse(r'"\ud800"') == HALF
    assert parse(str(HUGE)) == parse(str(HUGE).encode()) == HUGE
    for text in ("NaN", r'"\ud800"', "1e999", "[1,]", ""):
        with pytest.raises(json.JSONDecodeError):
            parse_strict(text)
    for text in ("[1,]", "", "{"):
        with pytest.raises(json.JSONDecodeError):
            parse(text)


def test_a_great_integer_in_a_schema_stays_one_in_every_door() -> None:
    record: dict[str, Any] = {"name": "count", "parameters": {"type": "object", "maximum": HUGE}}

    (made,) = Catalog.read([record])

    assert made.parameters["maximum"] == HUGE
    assert isinstance(made.parameters["maximum"], int)
    assert made == Tool("count", "", record["parameters"])
    assert json.loads(json.dumps(fold([record]).tools)) == [record]
