"""Everything toolfold raises on purpose.

    ToolfoldError
    ├── ConfigError          the settings cannot be used; nothing was folded
    ├── CatalogError         a list of tools cannot be read
    │   ├── InvalidToolError     one entry of it is not a tool
    │   └── NameClashError       two tools want one name
    ├── UnknownToolError     no tool of that name exists for this caller
    └── MissingExtraError    an optional part of toolfold is not installed

A model's mistake is none of these: `resolve` answers it with a text. Every error has
the clause that says what is wrong in `message` and, in `hint`, what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "CatalogError",
    "ConfigError",
    "InvalidToolError",
    "MissingExtraError",
    "NameClashError",
    "ToolfoldError",
    "UnknownToolError",
]


class ToolfoldError(Exception):
    """Base of every error that toolfold raises on purpose.

    Args:
        message: What went wrong, as one lower-case clause without a full stop.
        hint: What to do about it, as a clause. The CLI prints it on its own line.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(ToolfoldError):
    """The settings cannot be used. Its text is the clause and the hint in one."""

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class CatalogError(ToolfoldError):
    """A list of tools cannot be read."""


class InvalidToolError(CatalogError):
    """One entry of a list is not a tool.

    Args:
        message: What is wrong with it.
        hint: What to do about it.
        place: Its place in the list, from 1, where it is known.
    """

    def __init__(self, message: str, *, hint: str | None = None, place: int | None = None) -> None:
        super().__init__(f"tool {place}: {message}" if place else message, hint=hint)
        self.reason = message
        self.place = place


class NameClashError(CatalogError):
    """Two tools want the same name.

    Args:
        name: The name both want.
        owners: Where each of the two comes from.
        hint: What to do about it.
        where: The file and its lines, where it is one.
    """

    def __init__(
        self,
        name: str,
        owners: tuple[str, str],
        *,
        hint: str | None = None,
        where: str | None = None,
    ) -> None:
        place = f"{where}: " if where else ""
        super().__init__(
            f"{place}two tools are named {name!r}: one from {owners[0]}, one from {owners[1]}",
            hint=hint or "rename one of them, or leave one out with a scope",
        )
        self.name = name
        self.owners = owners


class UnknownToolError(ToolfoldError):
    """No tool of that name exists for this caller.

    A tool outside the caller's scope raises this too, with the same words: whether a
    hidden tool exists is not something a caller may learn from an error.

    Args:
        name: The name that was asked for.
        near: Names of the scope that resemble it, closest first.
    """

    def __init__(self, name: str, *, near: Sequence[str] = ()) -> None:
        hint = f"did you mean {near[0]!r}?" if near else "list the tools to see their names"
        super().__init__(f"no tool named {name!r}", hint=hint)
        self.name = name
        self.near = tuple(near)


class MissingExtraError(ToolfoldError):
    """An optional part of toolfold is not installed. Its text is the clause and the hint in one.

    Args:
        what: What needs it, as the start of a sentence.
        extra: The extra to install.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the `{extra}` extra",
            hint=f"install it with `pip install 'toolfold[{extra}]'`",
        )
        self.extra = extra

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}"
