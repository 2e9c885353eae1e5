"""Dates, times and ids in arguments: what is certainly none is refused, with an example."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import Answer, Invocation, Settings, Tool, fold


def call(form: str, value: object) -> Any:
    schema = {"type": "object", "properties": {"x": {"type": "string", "format": form}}}
    folded = fold([Tool("t", "", schema)], settings=Settings(enabled="on"))
    return folded.resolve("tool_call", {"name": "t", "arguments": {"x": value}})


@pytest.mark.parametrize(
    ("form", "value", "fault"),
    [
        ("date-time", "tomorrow at five", 'is not a date-time such as "2026-01-31T09:30:00Z"'),
        ("date-time", "2026-02-31T09:30:00Z", 'is not a date-time such as "2026-01-31T09:30:00Z"'),
        ("date-time", "2026-01-31T09:75:00Z", 'is not a date-time such as "2026-01-31T09:30:00Z"'),
        ("date-time", "", 'is not a date-time such as "2026-01-31T09:30:00Z"'),
        ("date", "2026-13-01", 'is not a date such as "2026-01-31"'),
        ("date", "31.01.2026", 'is not a date such as "2026-01-31"'),
        ("time", "noon", 'is not a time such as "09:30:00Z"'),
        ("time", "25:00", 'is not a time such as "09:30:00Z"'),
        ("time", "2026-01-31", 'is not a time such as "09:30:00Z"'),
        ("uuid", "my page", 'is not a uuid such as "123e4567-e89b-12d3-a456-426614174000"'),
        ("uuid", "123e4567", 'is not a uuid such as "123e4567-e89b-12d3-a456-426614174000"'),
    ],
)
def test_what_is_certainly_wrong_is_refused_with_an_example(
    form: str, value: str, fault: str
) -> None:
    answer = call(form, value)

    assert isinstance(answer, Answer)
    assert answer.text == f"t was not run. x: {fault}. Signature: t(x?: {form})"


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("date-time", "2026-01-01T10:00"),
        ("date-time", "2026-01-01 10:00:00"),
        ("date-time", "2026-01-01t10:00:00.123456789z"),
        ("date-time", "2026-01-01T10:00:00+0100"),
        ("date-time", "2026-01-01T10:00:00+01:00[Europe/Berlin]"),
        ("date-time", "2016-12-31T23:59:60Z"),
        ("date-time", "2026-01-01T24:00:00Z"),
        ("date-time", "2026-1-1 9:30 pm"),
        ("date-time", "2026/01/01"),
        ("date-time", "2026-W05-1"),
        ("date-time", "20260101T100000Z"),
        ("date-time", "1767261600"),
        ("date", "2026-01-01T00:00:00Z"),
        ("time", "9:30"),
        ("time", "T09:30"),
        ("time", "09:30:00.5+02:00"),
        ("time", "2026-01-01T10:00"),
        ("uuid", "123E4567-E89B-12D3-A456-426614174000"),
        ("uuid", "123e4567e89b12d3a456426614174000"),
        ("uuid", "{123e4567-e89b-12d3-a456-426614174000}"),
        ("uuid", "urn:uuid:123e4567-e89b-12d3-a456-426614174000"),
    ],
)
def test_what_a_server_may_take_passes_as_it_came(form: str, value: str) -> None:
    invocation = call(form, value)

    assert isinstance(invocation, Invocation)
    assert invocation.arguments == {"x": value}


@pytest.mark.parametrize(
    "form",
    ["email", "uri", "hostname", "ipv4", "ipv6", "regex", "duration", "json-pointer", "of my own"],
)
def test_other_formats_are_not_checked(form: str) -> None:
    assert isinstance(call(form, "\\(any thing"), Invocation)


def test_a_parameter_may_be_called_format() -> None:
    schema = {"type": "object", "properties": {"format": {"type": "string"}, "default": {
        "type": "string", "format": "email"}}}  # fmt: skip
    folded = fold([Tool("t", "", schema)], settings=Settings(enabled="on"))

    good = folded.resolve("t", {"format": "png", "default": "no mail"})
    bad = folded.resolve("t", {"format": ["png", "gif"]})

    assert isinstance(good, Invocation)
    assert isinstance(bad, Answer)


@given(st.datetimes() | st.dates())
def test_every_date_passes(moment: datetime | date) -> None:
    assert isinstance(call("date-time", moment.isoformat()), Invocation)
    assert isinstance(call("date", moment.isoformat()), Invocation)


@given(st.times(), st.uuids())
def test_every_time_and_id_passes(moment: time, name: UUID) -> None:
    assert isinstance(call("time", moment.isoformat()), Invocation)
    assert isinstance(call("uuid", str(name)), Invocation)


@given(st.sampled_from(["date-time", "date", "time", "uuid"]), st.text())
def test_any_text_is_judged(form: str, value: str) -> None:
    assert isinstance(call(form, value), Answer | Invocation)


def test_more_dates_than_can_be_read_at_once_pass_unchecked() -> None:
    schema = {"type": "array", "items": {"type": "string", "format": "date"}}
    tool = Tool("t", "", {"type": "object", "properties": {"x": schema}})
    folded = fold([tool], settings=Settings(enabled="on"))

    few = folded.resolve("t", {"x": ["2026-01-31"] * 1_000 + ["soon"]})
    many = folded.resolve("t", {"x": ["2026-01-31"] * 50_000 + ["soon"]})

    assert isinstance(few, Answer)
    assert "x[1000]: is not a date such as" in few.text
    assert isinstance(many, Invocation)
