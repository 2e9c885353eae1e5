"""What a model wrote, read: the needs of a query, and the names that texts mean.

A query may hold several needs, a text may be a name in quotes, and a name may hold the very
sign that parts needs. Nothing is searched here.
"""

from __future__ import annotations

import re

from toolfold._bounds import one_line
from toolfold.catalog import Catalog
from toolfold.tool import Json, Tool, is_array

__all__ = ["WRAPPING", "is_literal", "limit_of", "names_of", "needs_of", "tool_named"]

WRAPPING = "\"'`“”‘’ \t\n"
"""What may stand around a name and is not part of it."""

_QUERY_LIMIT = 2_000
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W_A-Za-z]+")


def tool_named(catalog: Catalog, text: str) -> Tool | None:
    """Return the tool that a text names, quoted or not."""
    bare = text.strip()
    inner = bare[1:-1] if len(bare) > 2 and bare[0] in WRAPPING and bare[-1] in WRAPPING else ""
    forms = dict.fromkeys((text, inner, text.strip(WRAPPING)))
    return next((tool for form in forms if form and (tool := catalog.meant(form))), None)


def is_literal(text: str, tool: Tool) -> bool:
    """Whether a text that names a tool can mean nothing else: it is quoted, or no plain word.

    `create_issue` is such a text; `search` is not, nor is "create issue", unless that is
    the name to the letter.
    """
    bare = text.strip()
    inner = bare.strip(WRAPPING)
    if inner != bare:
        return True
    is_name = not any(map(str.isspace, bare)) or bare in (tool.name, tool.bare_name)
    return is_name and len(_WORDS.findall(bare)) > 1


def needs_of(query: Json, catalog: Catalog, *, together: bool) -> list[str]:
    """Return the needs of a query: a text with `|` between them, or a list of texts.

    Args:
        query: What the model sent.
        catalog: The tools whose names may hold a `|` themselves.
        together: Whether all is one need, to be searched in one go.
    """
    if is_array(query):
        texts = [item for item in query if isinstance(item, str)]
    elif not isinstance(query, str):
        return []
    elif tool_named(catalog, query):
        return [query]
    elif "|" not in query:
        return [need] if (need := one_line(query, _QUERY_LIMIT)) else []
    else:
        texts = query[: 4 * _QUERY_LIMIT].split("|")
    if together:
        texts = [" ".join(texts)]
    needs = (t if tool_named(catalog, t) else one_line(t, _QUERY_LIMIT) for t in texts)
    return list(dict.fromkeys(need for need in needs if need))


def names_of(names: Json, catalog: Catalog) -> list[str]:
    """Return the names that a model wrote: a list of them, or a text with signs between them."""
    if isinstance(names, str):
        names = [names] if tool_named(catalog, names) else re.split(r"[,|\n]", names)
    if not is_array(names):
        return []
    texts = [name for name in names if isinstance(name, str)]
    return list(dict.fromkeys(text for text in texts if text.strip(WRAPPING)))


def limit_of(limit: Json) -> float | None:
    """Return the limit that a model wrote as a number of 1 or more; None where it is none."""
    if isinstance(limit, str):
        limit = int(limit) if limit.strip().isdecimal() and len(limit) < 10 else None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 1:
        return None
    return limit
