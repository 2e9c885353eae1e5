"""A catalog looked over in the background, as `toolfold check` does, with how far it is.

Of thousands of tools it takes seconds, and more to search for each of them. So it runs in a
thread of its own and gives way to whoever searches; the page asks how far it is.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from threading import Lock, Thread
from typing import Any

from toolfold._checkup import Finding, check_tools
from toolfold._retrievability import Retrievability, retrievability
from toolfold.bridge import Bridge
from toolfold.catalog import Catalog
from toolfold.settings import Settings

__all__ = ["Checkup", "finding_value"]

AT_ONCE = 500
"""Up to how many tools each is searched for unasked."""

_FINDINGS_AT_MOST = 500
_HARD_AT_MOST = 500
_BREATH = 0.0005
"""Seconds that are left to others after each tool, so that a search in between is not held up."""

_log = logging.getLogger(__name__)


class Checkup:
    """Looks a catalog over, once.

    Args:
        catalog: The tools.
        settings: How they are searched.
    """

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        # Every tool can be folded and no floor hides one: the question is what a search ranks.
        self._settings = replace(settings, enabled="on", relevance_floor=0.0)
        self._lock = Lock()
        self._begun: set[str] = set()
        self._findings: tuple[Finding, ...] | None = None
        self._hard: tuple[Retrievability, ...] | None = None
        self._searched = 0
        self._error: str | None = None

    def view(self, *, retrieval: bool) -> dict[str, Any]:
        """Return what is known by now; what is not is looked for from now on.

        Args:
            retrieval: Whether each tool is to be searched for, however many there are.
        """
        self._begin("findings", self._look)
        if retrieval or len(self._catalog) <= AT_ONCE:
            self._begin("retrieval", self._search)
        findings, hard = self._findings, self._hard
        return {
            "tools": len(self._catalog),
            "error": self._error,
            "findings": None
            if findings is None
            else [finding_value(each) for each in findings[:_FINDINGS_AT_MOST]],
            "more": max(len(findings or ()) - _FINDINGS_AT_MOST, 0),
            "searching": "retrieval" in self._begun and hard is None and self._error is None,
            "searched": self._searched,
            "hard_to_find": None
            if hard is None
            else [each._asdict() for each in hard[:_HARD_AT_MOST]],
            "hard_more": max(len(hard or ()) - _HARD_AT_MOST, 0),
        }

    def of(self, name: str) -> list[dict[str, Any]]:
        """Return what would hurt of one tool, as far as it is known."""
        self._begin("findings", self._look)
        return [finding_value(each) for each in self._findings or () if name in each.tools]

    def _begin(self, what: str, work: Any) -> None:
        with self._lock:
            if what in self._begun:
                return
            self._begun.add(what)
        Thread(target=self._run, args=(work,), name=f"checkup-{what}", daemon=True).start()

    def _run(self, work: Any) -> None:
        try:
            work()
        except Exception:
            # A stranger's tool must not leave the page waiting for ever.
            _log.exception("the catalog could not be looked over")
            self._error = "it could not be looked over to the end; the terminal says why"

    def _look(self) -> None:
        self._findings = tuple(check_tools(self._catalog.tools))

    def _search(self) -> None:
        bridge = Bridge.over(self._catalog, self._settings)

        def searched() -> None:
            self._searched += 1
            time.sleep(_BREATH)

        found = retrievability(bridge.catalog.tools, bridge.search, progress=searched)
        self._hard = tuple(each for each in found if not each.is_found)


def finding_value(finding: Finding) -> dict[str, Any]:
    """Return a finding as the page reads it."""
    return {**finding._asdict(), "tools": list(finding.tools)}
