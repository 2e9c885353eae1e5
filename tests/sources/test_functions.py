"""`toolfold.sources.tool_from_function`: what a function's signature says to a model."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import inspect
import pathlib
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import pytest
import typing_extensions
from pydantic import BaseModel, Field

from toolfold import Answer, Invocation, Settings, Tool, fold
from toolfold.errors import InvalidToolError
from toolfold.sources import bind, tool_from_function

UserId = NewType("UserId", int)
Number = TypeVar("Number", int, float)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclasses.dataclass
class Trip:
    start: datetime.date
    nights: int = 1
    code: str = dataclasses.field(init=False, default="")


class Guest(TypedDict):
    name: str
    born: NotRequired[datetime.date]


class Note(TypedDict):
    text: str


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Connection:
    """Stands for what no JSON value becomes."""


def schema_of(hint: Any) -> dict[str, Any]:
    def take(value: Any) -> None: ...

    take.__annotations__ = {"value": hint}
    parameters = tool_from_function(take).parameters
    return parameters["properties"]["value"]


def refused(function: Any) -> tuple[str, str | None]:
    with pytest.raises(InvalidToolError) as caught:
        tool_from_function(function)
    return str(caught.value), caught.value.hint


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Any, {}),
        (object, {}),
        (str, {"type": "string"}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (datetime.timedelta, {"type": "string", "format": "duration"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (pathlib.Path, {"type": "string", "format": "path"}),
        (Decimal, {"anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}]}),
        (Colour, {"enum": ["red", "blue"]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Literal[Colour.RED], {"enum": ["red"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (UserId, {"type": "integer"}),
        (Number, {"anyOf": [{"type": "integer"}, {"type": "number"}]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Iterable[int], {"type": "array", "items": {"type": "integer"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "items": False,
            },
        ),
        (
            Point,
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                "required": ["x"],
            },
        ),
        (
            Trip,
            {
                "type": "object",
                "properties": {
                    "start": {"type": "string", "format": "date"},
                    "nights": {"type": "integer"},
                },
                "required": ["start"],
            },
        ),
        (
            Guest,
            {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "born": {"type": "string", "format": "date"},
                },
                "required": ["name"],
            },
        ),
        (
            typing_extensions.TypedDict("Extended", {"day": datetime.date}),
            {
                "type": "object",
                "properties": {"day": {"type": "string", "format": "date"}},
                "required": ["day"],
            },
        ),
        (Annotated[int, "How many"], {"description": "How many", "type": "integer"}),
        (Annotated[int, Field(ge=1)], {"type": "integer", "minimum": 1}),
    ],
)
def test_a_type_is_written_as_json_schema(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


def test_a_models_definitions_stand_at_the_root_wherever_the_model_stands() -> None:
    def plant(trees: list[Tree], by_name: dict[str, Tree | None]) -> None:
        """Plant trees."""

    parameters = tool_from_function(plant).parameters

    assert parameters["properties"]["trees"]["items"] == {"$ref": "#/$defs/Tree"}
    assert list(parameters["$defs"]) == ["Tree"]
    folded = fold([plant], settings=Settings(enabled="on"))
    good = {"trees": [{"name": "a", "children": [{"name": "b"}]}], "by_name": {}}
    call = folded.resolve("plant", good)
    assert isinstance(call, Invocation) and call.arguments == good
    answer = folded.resolve("plant", {**good, "trees": [{}]})
    assert isinstance(answer, Answer) and "trees[0]: missing argument 'name'" in answer.text


def test_two_models_of_one_name_keep_their_own_definitions() -> None:
    def first() -> type[BaseModel]:
        class Inner(BaseModel):
            a: int

        class Outer(BaseModel):
            inner: Inner

        Outer.model_rebuild(_types_namespace={"Inner": Inner})
        return Outer

    def second() -> type[BaseModel]:
        class Inner(BaseModel):
            b: str

        class Outer(BaseModel):
            inner: Inner

        Outer.model_rebuild(_types_namespace={"Inner": Inner})
        return Outer

    def take(x: Any, y: Any) -> None: ...

    take.__annotations__ = {"x": first(), "y": second()}
    parameters = tool_from_function(take).parameters

    assert parameters["properties"]["x"]["properties"]["inner"] == {"$ref": "#/$defs/Inner"}
    assert parameters["properties"]["y"]["properties"]["inner"] == {"$ref": "#/$defs/Inner_2"}
    assert list(parameters["$defs"]["Inner"]["properties"]) == ["a"]
    assert list(parameters["$defs"]["Inner_2"]["properties"]) == ["b"]


def test_a_default_is_shown_as_the_json_that_means_it() -> None:
    def take(
        day: datetime.date = datetime.date(2026, 1, 31),
        colour: Colour = Colour.BLUE,
        path: pathlib.PurePosixPath = pathlib.PurePosixPath("notes"),  # noqa: B008
        price: Decimal = Decimal("1.50"),
        stay: datetime.timedelta = datetime.timedelta(days=1),
        pause: datetime.timedelta = datetime.timedelta(milliseconds=100),
        trip: Trip | None = None,
        nights: tuple[int, ...] = (1, 2),
    ) -> None: ...

    properties = tool_from_function(take).parameters["properties"]

    defaults = {name: schema.get("default") for name, schema in properties.items()}
    assert defaults == {
        "day": "2026-01-31",
        "colour": "blue",
        "path": "notes",
        "price": "1.50",
        "stay": "PT86400S",
        "pause": "PT0.1S",
        "trip": None,
        "nights": [1, 2],
    }
    assert "default" not in properties["trip"]
    del defaults["trip"]
    bound = bind(take, defaults)
    assert bound.arguments == {
        name: parameter.default
        for name, parameter in inspect.signature(take).parameters.items()
        if name != "trip"
    }


def test_methods_partials_decorated_functions_and_callable_objects_are_read_by_what_runs() -> None:
    class Calendar:
        """A calendar."""

        def free(self, day: datetime.date) -> bool:
            """Whether a day is free."""
            return True

        async def __call__(self, day: datetime.date) -> None: ...

    def book(hotel: Connection, day: datetime.date, nights: int = 1) -> None:
        """Book nights."""

    @functools.wraps(book)
    def logged(*args: Any, **kwargs: Any) -> None: ...

    made = [
        tool_from_function(Calendar().free),
        tool_from_function(Calendar()),
        tool_from_function(functools.partial(book, Connection(), nights=2)),
        tool_from_function(functools.partial(logged, Connection())),
    ]

    assert [tool.name for tool in made] == ["free", "Calendar", "book", "book"]
    assert [tool.description for tool in made] == [
        "Whether a day is free.",
        "A calendar.",
        "Book nights.",
        "Book nights.",
    ]
    for tool in made:
        assert tool.source == __name__
        assert tool.parameters["properties"]["day"] == {"type": "string", "format": "date"}
        day = bind(tool, {"day": "2026-01-31"}).arguments["day"]
        assert day == datetime.date(2026, 1, 31)
    assert made[2].parameters["properties"]["nights"] == {"type": "integer", "default": 2}


def test_a_parameter_with_a_default_that_no_json_becomes_is_left_to_the_program() -> None:
    def fetch(path: str, connection: Connection = Connection()) -> None: ...  # noqa: B008

    assert tool_from_function(fetch).parameters == {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    }


def test_a_parameter_that_no_json_becomes_is_refused_with_its_type() -> None:
    def fetch(connection: Connection) -> None: ...

    def wait(until: list[Connection]) -> None: ...

    assert refused(fetch) == (
        f"the parameter 'connection' of 'fetch' has the type `{Connection.__module__}.Connection`, "
        "which cannot be read from JSON",
        "give it a default, so that models leave it alone, or take a dataclass, a pydantic model "
        "or a type of JSON",
    )
    assert "cannot be read from JSON" in refused(wait)[0]


def test_a_type_that_json_cannot_say_whole_is_refused_with_the_reason() -> None:
    class Corner(enum.Enum):
        LOW = (0, 0)

    def mark(corner: Any) -> None: ...

    def make(kind: type[int]) -> None: ...

    mark.__annotations__ = {"corner": Corner}
    message, hint = refused(mark)

    assert message.endswith("cannot be read from JSON: its members have values that are not JSON")
    assert hint == "mend the type, or give the parameter a default, so that models leave it alone"
    assert "`type[int]`" in refused(make)[0]


def test_a_name_that_is_not_there_is_told_with_its_parameter_and_spoils_no_other() -> None:
    def save(number: int, thing: Missing) -> None: ...  # type: ignore[name-defined] # noqa: F821

    def load(day: datetime.date) -> Missing: ...  # type: ignore[name-defined] # noqa: F821

    assert refused(save) == (
        "the parameter 'thing' of 'save' has the type 'Missing', which cannot be resolved: "
        "name 'Missing' is not defined",
        "import or define it where the function's module can see it when it runs",
    )
    loaded = tool_from_function(load).parameters["properties"]
    assert loaded == {"day": {"type": "string", "format": "date"}}


def test_a_field_as_a_default_is_refused_with_where_it_belongs() -> None:
    def take(count: int = Field(1, ge=1)) -> None: ...

    assert refused(take) == (
        "the default of the parameter 'count' of 'take' is a pydantic field",
        "put it in the type, as `Annotated[int, Field(ge=1)] = 1`",
    )


def test_an_error_in_a_list_names_the_place() -> None:
    def fetch(connection: Connection) -> None: ...

    with pytest.raises(InvalidToolError, match=r"tool 2: the parameter 'connection' of 'fetch'"):
        fold([Tool("t"), fetch])


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_functions_of_plain_types_never_import_pydantic() -> None:
    said = python(
        """
        import sys
        from typing import Annotated, Any, Literal, TypedDict
        from toolfold import fold
        from toolfold.sources import bind
        class Note(TypedDict):
            text: str
        def f(a: int, b: list[str] | None = None, c: Annotated[dict[str, float], "C"] = {},
              d: Literal["x"] = "x", e: Any = 1, g=2, *, h: list[Note] = []):
            "Do."
        fold([f, {"name": "a"}])
        print(bind(f, {"a": 1, "h": [{"text": "t"}]}).arguments, "pydantic" in sys.modules)
        """
    )

    assert said == "{'a': 1, 'h': [{'text': 't'}]} False"


WITHOUT = """
    import sys
    sys.modules["pydantic"] = None
    import datetime
    from typing import Annotated
    from toolfold import fold
    from toolfold.errors import InvalidToolError
    from toolfold.runtime import Registry
"""


def test_without_pydantic_a_type_that_needs_it_is_refused_at_registration_with_the_fix() -> None:
    said = python(
        WITHOUT
        + """
    def book(nights: int, day: datetime.date | None = None):
        "Book."
    def plain(nights: int):
        "Plain."
    registry = Registry()
    registry.tool(plain)
    try:
        registry.tool(book)
    except InvalidToolError as error:
        print(error, error.hint, len(registry), sep="\\n")
    """
    )

    assert said.splitlines() == [
        "the parameter 'day' of 'book' has the type `datetime.date | None`, and pydantic is "
        "needed to read it from JSON",
        "install it with `pip install 'toolfold[types]'`",
        "1",
    ]


def test_what_is_read_of_a_function_is_kept_no_longer_than_the_function() -> None:
    import gc
    import weakref

    def make() -> Iterator[Any]:
        def take(day: datetime.date) -> None: ...

        bind(tool_from_function(take), {"day": "2026-01-31"})
        yield weakref.ref(take)

    [gone] = list(make())
    gc.collect()

    assert gone() is None
