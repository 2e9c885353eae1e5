"""A client's request, read without being taken apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolfold.proxy.json_spans import (
    Edit,
    Element,
    JsonDocument,
    separator_of,
    spliced,
)
from toolfold.tool import Json, is_object

__all__ = ["ProxiedRequest"]


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """A body, and where its tools and the items of its conversation stand."""

    document: JsonDocument
    items: tuple[Element, ...]
    """The messages, or the items of `input`."""

    tools: tuple[Element, ...]
    items_key: str

    @classmethod
    def of(cls, body: bytes, items_key: str) -> ProxiedRequest:
        """Read a body.

        Args:
            body: The very bytes.
            items_key: What the dialect calls the conversation.

        Raises:
            UnreadableError: It is not a request that can be read for certain.
        """
        document = JsonDocument.of(body, ("tools", items_key))
        arrays = document.arrays
        return cls(document, arrays.get(items_key, ()), arrays.get("tools", ()), items_key)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.document.text

    @property
    def fields(self) -> dict[str, Json]:
        """What the body says, by key."""
        return {key: member.value for key, member in self.document.members.items()}

    @property
    def model(self) -> str:
        """The model that is asked for; empty where none is named."""
        model = self.document.get("model")
        return model if isinstance(model, str) else ""

    @property
    def is_streamed(self) -> bool:
        """Whether the client asks for a stream."""
        return self.document.get("stream") is True

    @property
    def has_conversation(self) -> bool:
        """Whether there is a conversation that items can be put behind."""
        if self.is_one_text:
            return True
        return bool(self.items) and all(is_object(item.value) for item in self.items)

    @property
    def is_one_text(self) -> bool:
        """Whether the conversation is one text of the user's, not a list."""
        return self.items_key == "input" and isinstance(self.document.get("input"), str)

    @property
    def separator(self) -> str:
        """What stands between two items of the conversation."""
        return separator_of(self.text, self.items, self.document.separator)

    def joined(self, items: Iterable[str]) -> str:
        """Return items as they stand beside each other in this client's writing."""
        return self.separator.join(items)

    def tools_edit(self, tools: Sequence[str]) -> Edit:
        """Return the edit that puts other tools in place of the client's."""
        member = self.document.members["tools"]
        return Edit(member.start, member.end, f"[{self.document.separator.join(tools)}]")

    def removal(self, first: int, end: int) -> Edit:
        """Return the edit that takes items out, not all of them."""
        if end < len(self.items):
            return Edit(self.items[first].start, self.items[end].start, "")
        return Edit(self.items[first - 1].end, self.items[end - 1].end, "")

    def written(self, edits: Iterable[Edit], behind: Sequence[str] = ()) -> bytes:
        """Return the body with parts of it replaced and items put behind the conversation."""
        edits = list(edits)
        if behind and self.is_one_text:
            said = self.document.members[self.items_key]
            first = f'{{"role":"user","content":{said.text(self.text)}}}'
            edits.append(Edit(said.start, said.end, f"[{self.joined((first, *behind))}]"))
        elif behind:
            end = self.items[-1].end
            more = self.separator + self.joined(behind)
            edits.append(Edit(end, end, more))
        return spliced(self.text, edits).encode("utf-8")
