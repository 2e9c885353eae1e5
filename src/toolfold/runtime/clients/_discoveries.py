"""What searches found, as the request at hand has to say it.

A transcript keeps what a search said and which tools it found. Where the provider defers
tools itself, that is said in its own form; where the conversation has moved to another, it
is said anew.
"""

from __future__ import annotations

from toolfold import prompts
from toolfold.answer import Answer
from toolfold.runtime.messages import ResultMessage
from toolfold.runtime.model import Request
from toolfold.strategy import FoundForm

__all__ = ["discovery", "found_form", "is_search"]


def found_form(request: Request) -> FoundForm:
    """Return the form in which a request says what was found."""
    return "text" if request.folded is None else request.folded.found_form


def is_search(request: Request, name: str) -> bool:
    """Whether a name that a model called is that of our search."""
    folded = request.folded
    return folded is not None and folded.bridge.role(name) == prompts.TOOL_SEARCH


def discovery(request: Request, message: ResultMessage) -> Answer | None:
    """Return what a search found, to be said in the request's form; None for other results."""
    if request.folded is None or message.found is None or not is_search(request, message.name):
        return None
    return request.folded.replayed(message.text, message.found, message.note)
