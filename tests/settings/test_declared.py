"""One declaration for every setting, whichever block of a file it stands in."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfold import ConfigError, MemorySettings, Reranker, Settings
from toolfold.config import FunctionModule, Server, ServeSettings, Token
from toolfold.settings.check import check
from toolfold.settings.declared import check_fields, declared, flat, setting
from toolfold.settings.frozen import FrozenMapping

CLASSES = (Settings, Reranker, MemorySettings, ServeSettings, Token, Server, FunctionModule)


@dataclass(frozen=True, slots=True)
class Example:
    """A class as any other that declares settings."""

    mode: Literal["auto", "on", "off"] = setting("auto", "When.")
    kind: Literal["a", "b"] = setting("a", "Which.", false="b")
    count: int = setting(1, "How many.", low=1, high=9)
    share: float | None = setting(None, "How much.", low=0, high=1)
    names: tuple[str, ...] = setting((), "Whose.", key="who", also=("whom",))
    other: int = 3

    def __post_init__(self) -> None:
        check_fields(self, "example.")


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_setting_has_a_meaning_and_a_default_that_it_takes_itself(cls: Any) -> None:
    for key, item in declared(cls).items():
        assert item.meaning.endswith("."), key
        assert item.meaning[0].isupper() or item.meaning[0] == "`", key
        assert item.default is None or check(key, item.default, item.kind) == item.default, key


def test_a_type_says_what_a_setting_takes() -> None:
    assert {key: str(item.kind) for key, item in declared(Example).items()} == {
        "mode": "auto | on | off",
        "kind": "a | b",
        "count": "a whole number from 1 to 9",
        "share": "a number from 0 to 1",
        "who": "a list of names or patterns",
    }
    assert declared(Example)["who"].also == ("whom",)


def test_values_are_kept_as_the_settings_hold_them() -> None:
    made = Example(mode=True, kind=False, count=2.0, names=["x", "x"])  # type: ignore[arg-type]

    assert made == Example("on", "b", 2, None, ("x",))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mode": "maybe"}, "`example.mode` is 'maybe'"),
        ({"count": 10}, "`example.count` is 10"),
        ({"count": None}, "`example.count` is None"),
        ({"share": "much"}, "`example.share` is 'much'"),
    ],
)
def test_a_value_of_another_kind_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Example(**values)

    assert caught.value.message == message


def test_the_keys_of_an_inner_block_stand_behind_its_name() -> None:
    blocks = {"reranker": Reranker, "memory": MemorySettings}
    inner = {f"{name}.{item.name}" for name, block in blocks.items() for item in fields(block)}

    assert set(flat(Settings)) == {item.name for item in fields(Settings)} | inner


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 3), max_size=4))
def test_a_frozen_mapping_is_the_mapping_it_was_made_of(values: dict[str, int]) -> None:
    frozen = FrozenMapping(tuple(values.items()))

    assert frozen == values
    assert dict(frozen) == values
    assert frozen == FrozenMapping(tuple(values.items()))
    assert hash(frozen) == hash(FrozenMapping(tuple(values.items())))
    assert all(frozen[key] == value for key, value in values.items())
