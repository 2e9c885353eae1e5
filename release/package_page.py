"""The README as the package page shows it: its links absolute, or plain text.

A package index has only the README: what it links to beside itself stands in the repository.
With the repository's address such a link leads to the file as it was at that version, and a
picture comes from there. Without an address a link would lead to a page of the index that
does not exist, so its text stays and the link goes, and a picture goes altogether. Links with
an address of their own, links inside the page, and code are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["package_page", "repository"]

_LABEL = "repository"
"""Which entry of `[project.urls]` is the address, whatever its case."""

_CODE_OR_LINK = re.compile(
    r"(?P<code>^```.*?^```$|`[^`\n]+`)"
    r"|(?P<picture>!?)\[(?P<text>[^\[\]]*)\]\((?![a-z]+:|#)(?P<target>[^)\s]+)\)",
    re.DOTALL | re.MULTILINE,
)


def repository(urls: Mapping[str, str]) -> str | None:
    """Return the repository's address among a project's addresses, or None."""
    for label, address in urls.items():
        if label.lower() == _LABEL:
            return address.rstrip("/")
    return None


def package_page(readme: str, address: str | None, version: str) -> str:
    """Return the README for the package page.

    Args:
        readme: The text in the repository.
        address: The repository's address, without a slash at its end; None where there is none.
        version: The package's version, whose tag the links lead to.
    """

    def rewritten(match: re.Match[str]) -> str:
        if match["code"]:
            return match[0]
        if address is None:
            return "" if match["picture"] else match["text"]
        kind = "raw" if match["picture"] else "blob"
        target = f"{address}/{kind}/v{version}/{match['target']}"
        return f"{match['picture']}[{match['text']}]({target})"

    return _CODE_OR_LINK.sub(rewritten, readme)
