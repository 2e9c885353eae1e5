"""everruns' generic `tool_search`, written anew from what its documentation says it does.

everruns is a service in Rust without a package to install, so the scheme stands here: a term of
the query counts 3 where the name holds it, else 1 where the description does, inside words too;
a query that is a name counts 100 more; what has less than half of the best score is dropped;
eight tools at most. The answer is JSON with the whole definitions of what was found; where
nothing is, with all names there are.

Two layers are timed: `search`, the ranking alone, and `bridge`, with the answer written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from protocol import Found, Tool, serve, timed

_IN_NAME = 3
_IN_DESCRIPTION = 1
_IS_NAME = 100
_AT_MOST = 8
_PUNCTUATION = "\"'`.,;:!?()[]{}<>|"


def load(tools: Sequence[Tool], limit: int) -> Callable[[str], Found]:
    """Return the scheme over the tools."""
    texts = [(tool["name"].lower(), (tool.get("description") or "").lower()) for tool in tools]

    def ranked(query: str) -> list[Tool]:
        whole = query.strip().strip(_PUNCTUATION).lower()
        terms = [term for word in whole.split() if (term := word.strip(_PUNCTUATION))]
        scores = [_score(terms, whole, name, description) for name, description in texts]
        # Half of the best, rounded up; nothing is found by no term.
        least = max(-(-max(scores, default=0) // 2), 1)
        places = [place for place, score in enumerate(scores) if score >= least]
        places.sort(key=lambda place: -scores[place])
        return [tools[place] for place in places[: min(limit, _AT_MOST)]]

    def search(query: str) -> Found:
        found, search_ms = timed(lambda: ranked(query))
        text, writing_ms = timed(lambda: _answer(found, tools))
        times = {"search": search_ms, "bridge": search_ms + writing_ms}
        names = [tool["name"] for tool in found]
        return Found(names, times, len(text), names)

    return search


def _score(terms: Sequence[str], whole: str, name: str, description: str) -> int:
    score = _IS_NAME if whole == name else 0
    for term in terms:
        if term in name:
            score += _IN_NAME
        elif term in description:
            score += _IN_DESCRIPTION
    return score


def _answer(found: Sequence[Tool], tools: Sequence[Tool]) -> str:
    names = [tool["name"] for tool in found]
    answer: dict[str, Any] = {
        "tools": [
            {key: tool.get(key) for key in ("name", "description", "parameters")} for tool in found
        ]
    }
    if found:
        answer["loaded"] = names
    else:
        answer["message"] = "No tools matched the query."
        answer["available_tools"] = [tool["name"] for tool in tools]
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    serve(load)
