"""What a request asks to be done, and what a tool does: their verbs, by kind.

`get`, `list` and `show` are one kind, `delete` and `remove` another. Siblings that differ in
nothing but the verb are told apart by it, whichever word of the kind was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolfold.search._text import query_words, raw_words

__all__ = ["KINDS", "kind_of_name", "kinds_asked"]

_KINDS = (
    # To read. A question asks for something that is there.
    """get list read search find show fetch view query describe check count look lookup retrieve
    display see tell what which who when where how inspect browse monitor explain explore
    download export summarize""",
    "create add new make insert register generate build provision draft compose",
    "update edit modify change set rename patch adjust configure replace increase decrease",
    "delete remove cancel destroy drop clear erase revoke uninstall purge unsubscribe",
    "run execute start launch trigger invoke deploy begin resume restart enable activate",
    "stop pause disable kill terminate end halt suspend deactivate",
    "send post publish share email notify reply forward message tweet submit",
    "convert translate transform encode decode format parse",
    "calculate estimate determine measure evaluate predict solve simulate",
    "upload import attach save",
    "move copy transfer migrate clone duplicate",
    "book reserve order buy purchase pay",
    "merge approve accept review assign invite",
    "play listen stream",
)

_KIND_OF = {verb: kind for kind, verbs in enumerate(_KINDS, 1) for verb in verbs.split()}
KINDS = len(_KINDS)
"""How many kinds there are; they are numbered from 1 on."""

_OPENED = re.compile(
    r"\bopen (?:up )?(?:an?|another|new) (?:(?!existing|old|open|closed)[\w-]+ ){0,2}?"
    r"(?:pull request|merge request|pr|mr|issue|ticket|case|bug|incident|account|discussion|thread"
    r"|topic|dispute|claim|poll)\b",
    re.IGNORECASE,
)
"""What is opened by being made. A file is opened to be read, and open issues are there already."""

_LAST = frozenset(
    "add create delete describe edit find get insert list remove search set show update".split()
)


def kinds_asked(needs: Iterable[str]) -> frozenset[int]:
    """Return the kinds of what is asked for: of the first verb of each need."""
    found = map(_kind_asked, needs)
    return frozenset(kind for kind in found if kind)


def _kind_asked(need: str) -> int:
    opened = _OPENED.search(need)
    # A verb before it says what is asked for: "list who may open a pull request".
    before = _first_kind(need[: opened.start()]) if opened else 0
    return _KIND_OF["create"] if opened and not before else _first_kind(need)


def kind_of_name(name: str) -> int:
    """Return the kind of what a tool does, by its name; 0 where that tells none.

    Most names begin with the verb (`list_vaults`); some end with it (`vault_list`).
    """
    words = list(raw_words(name))
    last = _KIND_OF[words[-1]] if words and words[-1] in _LAST else 0
    return last or _first_kind(name)


def _first_kind(text: str) -> int:
    return next((kind for word in query_words(text) if (kind := _KIND_OF.get(word))), 0)
