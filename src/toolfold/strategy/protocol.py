"""What every strategy answers: how a catalog is shown, and how its tools are reached.

A strategy is a value without state. It decides what the model sees of the folded tools,
which of the bridge's tools it may call and what a search answers with; who asks brings the
catalog, the conversation and the settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from toolfold.catalog import Catalog
from toolfold.session import Session
from toolfold.settings import Settings
from toolfold.tokens import TokenCounter
from toolfold.tool import Json, Tool

__all__ = ["FoundForm", "ListChange", "Strategy"]

FoundForm: TypeAlias = Literal["text", "tool_reference", "tool_search_output", "tool_addition"]
"""How what a search found is said to a model: in words, as references to tools that the list
defers, as definitions in OpenAI's own item, or as definitions in a message behind the answer."""


class ListChange(NamedTuple):
    """What happens to the list of tools."""

    records: Mapping[str, Mapping[str, Json] | None]
    """By name: the parameters that a tool is shown with, or None where it leaves."""

    added: Sequence[Tool]
    """What comes in behind the others."""

    guidance: str
    """What to tell the model about it."""

    hidden: Sequence[str]
    """The names of the tools that are not shown in full."""

    left: int
    """How many tools leave their place in the list."""

    revealed: Sequence[Tool] = ()
    """Tools that left and come in again, behind everything else, in order of first reveal."""

    provided: Sequence[Json] = ()
    """Entries of the provider's own that come in behind `added`."""

    deferred: Sequence[Tool] = ()
    """Tools that left and come in again behind those, to be kept from the model by the provider."""


class Strategy(Protocol):
    """One way to show folded tools and to reach them."""

    @property
    def name(self) -> str:
        """The name under which the settings know it."""
        ...

    @property
    def ranker(self) -> str:
        """The ranker that `default` stands for."""
        ...

    @property
    def gate(self) -> Literal["tokens", "tools"]:
        """What opens the gate in `auto`: what the tools cost, or how many there are."""
        ...

    @property
    def answers(self) -> frozenset[str]:
        """Which of `prompts.BRIDGE_NAMES` are answered, listed or not, whatever they are called."""
        ...

    @property
    def reveals(self) -> bool:
        """Whether what a search finds changes the list of tools."""
        ...

    @property
    def hits_foot(self) -> str:
        """What stands below the hits of a search: how to go on."""
        ...

    @property
    def names_lead(self) -> str:
        """What stands before hits that are shown by name.

        Empty where none are: then every hit has its signature, and there are no companions.
        """
        ...

    @property
    def shows_definitions(self) -> bool:
        """Whether a hit is shown with its whole definition, where there is room."""
        ...

    @property
    def takes_one_need(self) -> bool:
        """Whether a query is one need, whatever stands in it."""
        ...

    @property
    def lists_names(self) -> bool:
        """Whether a blank query, and one in vain, are answered with the names there are."""
        ...

    @property
    def lists_call(self) -> bool:
        """Whether the list has a tool that runs others by name."""
        ...

    @property
    def found_form(self) -> FoundForm:
        """How what a search found is said to the model."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """What a request says in its headers, so that the provider takes the list."""
        ...

    def limit(self, asked: float | None, settings: Settings) -> int:
        """Return how many hits a need gets.

        Args:
            asked: What the model asked for, where that is a number of 1 or more.
            settings: How to fold.
        """
        ...

    def change(
        self,
        folded: Catalog,
        catalog: Catalog,
        session: Session,
        settings: Settings,
        count: TokenCounter,
    ) -> ListChange:
        """Return what happens to the list of tools.

        Args:
            folded: The tools that are folded; at least one.
            catalog: Every tool of the scope.
            session: The conversation so far.
            settings: How to fold.
            count: Counts tokens.
        """
        ...
