"""A page as a browser without pictures and scripts would see it."""

from __future__ import annotations

from html.parser import HTMLParser

_EMPTY = ("meta", "br", "hr", "wbr")


class HtmlPage(HTMLParser):
    """What a page holds: its links, what it loads or runs, its texts, and unclosed tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.texts: list[tuple[str, str]] = []
        """Each piece of text, with the tag it stands in."""

        self.policy = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a":
            self.links.append(given.get("href") or "")
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given.get("content") or ""
        self.ids += [given["id"] or ""] if "id" in given else []
        self.loads += [str(given[key]) for key in ("src", "srcset") if key in given]
        self.loads += [key for key in given if key.startswith("on") or key == "style"]
        if tag in ("link", "script", "img", "iframe", "object", "embed", "form", "base"):
            self.loads.append(tag)
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open and self.open[-1] != "style":
            self.texts.append((self.open[-1], data.replace("\u00a0", " ").strip()))

    @property
    def words(self) -> str:
        """All of its texts, in order."""
        return " ".join(data for _, data in self.texts)

    def within(self, tag: str) -> list[str]:
        """The texts that stand directly in elements of a kind."""
        return [data for where, data in self.texts if where == tag]
