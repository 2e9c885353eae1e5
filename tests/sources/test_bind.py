"""`toolfold.sources.bind`: a model's JSON becomes what a function's signature says."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import datetime
import enum
import json
import pathlib
import uuid
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field

from toolfold import Settings, Tool, fold
from toolfold.runtime import Batch, Call, Registry, ResultMessage
from toolfold.sources import bind, tool_from_function


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Point(NamedTuple):
    x: int
    day: datetime.date = datetime.date(2026, 1, 1)


@dataclasses.dataclass(frozen=True)
class Trip:
    start: datetime.date
    picture: bytes = b""
    stops: tuple[Point, ...] = ()

    def __post_init__(self) -> None:
        if self.start.year < 1900:
            raise ValueError("nobody travels then")


class Guest(TypedDict):
    name: str
    born: NotRequired[datetime.date]


class Tree(BaseModel):
    height: Decimal
    children: list[Tree] = []


def taking(hint: Any) -> Any:
    def take(value: Any) -> None: ...

    take.__annotations__ = {"value": hint}
    return take


def bound(hint: Any, value: Any) -> Any:
    checked = bind(taking(hint), {"value": value})
    assert checked.faults == ()
    return checked.arguments["value"]


def faults(hint: Any, value: Any) -> list[str]:
    return [f"{path}: {message}" for path, message in bind(taking(hint), {"value": value}).faults]


DAY = datetime.date(2026, 1, 31)


@pytest.mark.parametrize(
    ("hint", "value", "python"),
    [
        (datetime.date, "2026-01-31", DAY),
        (datetime.time, "12:30", datetime.time(12, 30)),
        (datetime.timedelta, "PT90M", datetime.timedelta(minutes=90)),
        (bytes, "aGk=", b"hi"),
        (pathlib.Path, "a/b", pathlib.Path("a/b")),
        (Decimal, "1.10", Decimal("1.10")),
        (Decimal, 2.5, Decimal("2.5")),
        (Colour, 2, Colour.BLUE),
        (Literal[Colour.RED, "none"], "red", Colour.RED),
        (Literal[Colour.RED, "none"], "none", "none"),
        (Optional[datetime.date], None, None),  # noqa: UP045
        (datetime.date | int, 3, 3),
        (set[datetime.date], ["2026-01-31"], {DAY}),
        (tuple[int, datetime.date], [1, "2026-01-31"], (1, DAY)),
        (Iterable[datetime.date], ["2026-01-31"], [DAY]),
        (dict[datetime.date, int], {"2026-01-31": 1}, {DAY: 1}),
        (Point, {"x": 1}, Point(1)),
        (Guest, {"name": "Ada", "born": "2026-01-31"}, {"name": "Ada", "born": DAY}),
        (list[Guest], [{"name": "Ada"}], [{"name": "Ada"}]),
        (
            dict[str, list[Trip]],
            {"a": [{"start": "2026-01-31", "picture": "aGk=", "stops": [{"x": 1}]}]},
            {"a": [Trip(DAY, b"hi", (Point(1),))]},
        ),
        (
            Tree,
            {"height": 1, "children": [{"height": "2"}]},
            Tree(height=Decimal(1), children=[Tree(height=Decimal(2))]),
        ),
        (Annotated[str, AfterValidator(str.upper)], "a", "A"),
    ],
)
def test_json_becomes_what_the_signature_says(hint: Any, value: Any, python: Any) -> None:
    made = bound(hint, value)

    assert made == python
    assert type(made) is type(python)


@pytest.mark.parametrize("hint", [Any, int, float, list[int], dict[str, Any], str | None, object])
def test_a_plain_value_is_passed_on_as_the_very_same(hint: Any) -> None:
    value = [10**30, "x"]

    assert bound(hint, value) is value


def test_what_has_no_annotation_or_no_parameter_stays_as_it_is() -> None:
    def take(a, **more):  # type: ignore[no-untyped-def]
        ...

    given = {"a": [1], "b": {"c": 2}}

    assert bind(take, given).arguments == given
    assert bind(Tool("t"), given).arguments == given


def test_a_value_that_a_hook_already_made_is_kept() -> None:
    assert bound(datetime.date, DAY) == DAY
    assert bound(list[Trip], [Trip(DAY)]) == [Trip(DAY)]


def test_what_cannot_be_made_is_told_by_place_and_rule_without_the_value() -> None:
    assert faults(datetime.date, "tomorrow hunter2") == [
        "value: should be a valid date or datetime, invalid character in year"
    ]
    assert faults(list[Trip], [{"start": "2026-01-31"}, {"picture": "aGk="}]) == [
        "value[1]: missing argument 'start'"
    ]
    assert faults(Trip, {"start": "1066-01-01"}) == ["value: nobody travels then"]
    assert faults(dict[str, Tree | None], {"a": {"height": "high"}}) == [
        "value.a.height: should be a valid decimal"
    ]
    assert faults(Annotated[int, Field(ge=1)], 0) == ["value: should be greater than or equal to 1"]


def test_faults_are_few_and_short_and_hold_no_secret() -> None:
    def leak(value: str) -> str:
        raise ValueError(f"bad key sk-ant-api03-{'a' * 80} in\n{value * 100}")

    said = faults(list[Annotated[str, AfterValidator(leak)]], ["x"] * 50)

    assert len(said) == 5
    assert all(len(line) < 300 and "\n" not in line and "a" * 80 not in line for line in said)


def run(registry: Registry, name: str, **arguments: object) -> ResultMessage:
    async def main() -> ResultMessage:
        folded = fold(registry.tools(), settings=Settings(enabled="off"))
        batch = Batch([Call(name, json.dumps(arguments), "1")], folded, registry)
        await asyncio.wait_for(batch.run(), 5)
        return batch.results[0]

    return asyncio.run(main())


def test_functions_of_a_registry_run_with_their_types() -> None:
    registry = Registry()

    @registry.tool
    def weekday(day: datetime.date) -> str:
        """Name the day of the week."""
        return f"{day:%A}"

    @registry.tool
    async def later(day: datetime.date, by: datetime.timedelta) -> datetime.date:
        """Move a day."""
        return day + by

    assert run(registry, "weekday", day="2026-01-31").text == "Saturday"
    assert run(registry, "later", day="2026-01-31", by="P1D").text == '"2026-02-01"'


def test_a_value_that_does_not_convert_is_an_answer_that_the_model_can_act_on() -> None:
    registry = Registry()
    ran: list[object] = []

    @registry.tool
    def weekday(day: datetime.date) -> None:
        """Name the day of the week."""
        ran.append(day)

    @registry.tool
    async def weekday_later(day: datetime.date) -> None:
        """Name the day of the week, later."""
        ran.append(day)

    for name in ("weekday", "weekday_later"):
        result = run(registry, name, day="Friday")

        assert result.is_error
        assert result.text == (
            f"{name} was not run. day: should be a valid date or datetime, input is too short. "
            f"Signature: {name}(day: date)"
        )
    assert ran == []


LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers(-(2**53), 2**53)),
    (bool, st.booleans()),
    (bytes, st.binary(max_size=8)),
    (datetime.date, st.dates()),
    (datetime.datetime, st.datetimes(timezones=st.none() | st.just(datetime.UTC))),
    (datetime.timedelta, st.timedeltas(datetime.timedelta(0), datetime.timedelta(days=9999))),
    (uuid.UUID, st.uuids()),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=2)),
    (pathlib.PurePosixPath, st.from_regex(r"[a-z]{1,5}(/[a-z]{1,5})?", fullmatch=True)
     .map(pathlib.PurePosixPath)),
    (Colour, st.sampled_from(Colour)),
    (Literal["a", 3], st.sampled_from(["a", 3])),
    (Point, st.builds(Point, st.integers(0, 9), st.dates())),
    (Trip, st.builds(Trip, st.dates(datetime.date(1900, 1, 1)), st.binary(max_size=4))),
    (Tree, st.builds(Tree, height=st.decimals(0, 9, places=1))),
]  # fmt: skip


@st.composite
def annotated_types(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """A type, and the values of it."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(LEAVES))
    hint, values = draw(annotated_types(depth - 1))
    few = st.lists(values, max_size=3)
    return draw(
        st.sampled_from(
            [
                (list[hint], few),
                (tuple[hint, ...], few.map(tuple)),
                (tuple[hint, int], st.tuples(values, st.integers(0, 9))),
                (dict[str, hint], st.dictionaries(st.text(max_size=3), values, max_size=3)),
                (hint | None, values | st.none()),
                (Annotated[hint, "A value."], values),
            ]
        )
    )


def as_json(value: Any) -> Any:
    """Write a value as a model would."""
    match value:
        case enum.Enum():
            return value.value
        case bytes():
            return base64.b64encode(value).decode()
        case datetime.date():
            return value.isoformat()
        case datetime.timedelta():
            return f"P{value.days}DT{value.seconds}.{value.microseconds:06}S"
        case Point():
            return {name: as_json(item) for name, item in value._asdict().items()}
        case Trip() | Tree():
            fields = {"start", "picture", "height"} & vars(value).keys()
            return {name: as_json(getattr(value, name)) for name in fields}
        case list() | tuple():
            return [as_json(item) for item in value]
        case dict():
            return {name: as_json(item) for name, item in value.items()}
        case uuid.UUID() | Decimal() | pathlib.PurePath():
            return str(value)
        case _:
            return value


@given(annotated_types(), st.data())
def test_a_value_comes_back_from_its_json_and_its_json_fits_the_schema(
    annotated: tuple[Any, st.SearchStrategy[Any]], data: st.DataObject
) -> None:
    hint, values = annotated
    value = data.draw(values)
    function = taking(hint)
    wire = as_json(value)

    jsonschema_rs.validate(dict(tool_from_function(function).parameters), {"value": wire})
    assert bind(function, {"value": wire}).arguments == {"value": value}
