"""What tokens cost: a table that the user can edit. An unknown model has no cost, not a zero."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from toolfold.errors import ConfigError
from toolfold.tool import Json, is_array, is_mapping

__all__ = ["PRICES_FILE", "Price", "Prices", "load_prices"]

PRICES_FILE = Path(__file__).with_name("prices.toml")
"""The table that is used where none is given: example figures, to be checked."""

_KEYS = ("model", "input", "cached", "output")
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What a model's tokens cost, per million."""

    model: str
    """The model's name, or a pattern."""

    input: float
    output: float
    cached: float


@dataclass(frozen=True, slots=True)
class Prices:
    """A table of prices."""

    table: tuple[Price, ...] = ()

    def of(self, model: str) -> Price | None:
        """Return the price of a model, or None where the table does not say."""
        name = model.rsplit("/", 1)[-1].lower()
        return next((p for p in self.table if fnmatchcase(name, p.model.lower())), None)

    def cost(self, model: str, prompt: int, cached: int, completion: int) -> float | None:
        """Return what tokens cost; of those read, some came from the cache."""
        price = self.of(model)
        if price is None:
            return None
        spent = (prompt - cached) * price.input + cached * price.cached + completion * price.output
        return spent / _MILLION


def load_prices(file: str | Path | None = None) -> Prices:
    """Return the prices of a TOML file, by default of the bundled one.

    Raises:
        ConfigError: The file cannot be read or used; the error names the entry.
    """
    path = Path(file) if file is not None else PRICES_FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read `{path}`: {error.strerror}", hint="check the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"`{path}` is no TOML: {error}", hint="see the bundled table") from None
    entries: Json = data.get("price", [])
    if not is_array(entries) or set(data) - {"price"}:
        raise ConfigError(f"`{path}` holds no list `price`", hint="write each as [[price]]")
    return Prices(
        tuple(_price(entry, f"`{path}`, price {i}") for i, entry in enumerate(entries, 1))
    )


def _price(entry: Json, where: str) -> Price:
    if not is_mapping(entry):
        raise ConfigError(f"{where} is {entry!r}", hint="write it as [[price]]")
    unknown = sorted(set(entry) - set(_KEYS))
    if unknown:
        raise ConfigError(f"{where} has the unknown key {unknown[0]!r}", hint=f"use {_listed()}")
    model = entry.get("model")
    if not isinstance(model, str) or not model:
        raise ConfigError(f"{where} names no model", hint='write model = "name"')
    given = _number(entry, "input", where)
    return Price(
        model,
        given,
        _number(entry, "output", where),
        _number(entry, "cached", where) if "cached" in entry else given,
    )


def _number(entry: Mapping[str, Json], key: str, where: str) -> float:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ConfigError(
            f"{where}: `{key}` is {value!r}", hint="write the price of a million tokens"
        )
    return float(value)


def _listed() -> str:
    return ", ".join(_KEYS)
