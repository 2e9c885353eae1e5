"""What a gateway serves beside its servers: functions, and HTTP APIs under approvals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolfold.serve.trust.trusted_api import TrustedApi
from toolfold.sources.merged import Sources
from toolfold.sources.openapi import OpenAPISource
from toolfold.sources.source import Source

if TYPE_CHECKING:
    from toolfold.serve.trust.verdicts import Trust

__all__ = ["OtherSources"]


class OtherSources(Sources):
    """The sources beside the servers.

    Args:
        sources: The sources, in the order in which their tools appear.
        trust: Which operations of APIs wait for a person's approval; None where none does.

    Raises:
        ConfigError: Two have one name.
    """

    def __init__(self, sources: Sequence[Source], trust: Trust | None) -> None:
        super().__init__(
            TrustedApi(source, trust)
            if trust is not None and isinstance(source, OpenAPISource)
            else source
            for source in sources
        )
        self._by_name = {source.name: source for source in self.all}
        self._apis = [source for source in self.all if isinstance(source, TrustedApi)]

    def judge_again(self, trust: Trust) -> None:
        """Judge the operations of those APIs anew of which a person has approved something."""
        for api in self._apis:
            if trust.is_stale(api.name):
                api.judge_again()

    @property
    def waiting(self) -> int:
        """How many operations wait for a person."""
        return sum(api.waiting for api in self._apis)

    def waiting_of(self, name: str) -> int:
        """Return how many operations of a source wait for a person."""
        return sum(api.waiting for api in self._apis if api.name == name)

    def cause(self, name: str) -> str | None:
        """Return why a source cannot be asked now; None where it can be."""
        away = self._by_name[name].absence()
        return None if away is None else away.cause or "it is still starting"
