"""Long conversations: what was found long ago shrinks to a line.

A search's answer is read once and would then be paid for on every turn. Within a budget
the newest answers stay as they were; older ones shrink to one line that names what they
found, and where even the lines would take half the budget, the oldest leave. The tools
stay callable: a name is all that a call needs.

`compacted` is a pure function of the transcript. It shrinks in steps: nothing until the
budget is full, then enough to make it half empty. So between two steps the prompt only
grows at its end, and the provider's cache holds for all that came before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from toolfold import prompts
from toolfold.runtime.messages import Message, ModelMessage, ResultMessage, UserMessage
from toolfold.tokens import TokenCounter, estimate

__all__ = ["compacted"]

_NAMES_AT_MOST = 8


def compacted(
    messages: Sequence[Message],
    *,
    discovery_tokens: int,
    result_tokens: int | None = None,
    count: TokenCounter = estimate,
) -> list[Message]:
    """Return a transcript as it is sent.

    Args:
        messages: The transcript.
        discovery_tokens: The budget of what searches and describes answered.
        result_tokens: The budget of what tools returned; None for no limit.
        count: Counts the tokens of a text.
    """
    sent = _shrunk(messages, discovery_tokens, _discovery, count)
    if result_tokens is not None:
        sent = _shrunk(sent, result_tokens, _result, count)
    return sent


_Texts = tuple[str, str]
"""The text of a message that counts against the budget, and the line that stands for it."""


def _shrunk(
    messages: Sequence[Message],
    budget: int,
    texts_of: Callable[[Message], _Texts | None],
    count: TokenCounter,
) -> list[Message]:
    sent = list(messages)
    whole: deque[tuple[int, int, str]] = deque()  # place, tokens, the line that will stand for it
    lines: deque[tuple[int, int]] = deque()  # place, tokens
    for place, message in enumerate(messages):
        # What the model said stays, and is half of all messages.
        texts = None if isinstance(message, ModelMessage) else texts_of(message)
        if texts is None:
            continue
        whole.append((place, count(texts[0]), texts[1]))
        if _tokens(whole) + _tokens(lines) <= budget:
            continue
        # The newest stays whole even where it fills the budget alone: it is not read yet.
        while len(whole) > 1 and _tokens(whole) + _tokens(lines) > budget // 2:
            oldest, _, line = whole.popleft()
            sent[oldest] = _with(sent[oldest], line)
            lines.append((oldest, count(line)))
        if _tokens(lines) > budget // 2:
            while _tokens(lines) > budget // 4:
                oldest, _ = lines.popleft()
                sent[oldest] = _with(sent[oldest], prompts.LEFT_OUT)
    return sent


def _tokens(entries: Iterable[tuple[int, int] | tuple[int, int, str]]) -> int:
    return sum(entry[1] for entry in entries)


def _with(message: Message, text: str) -> Message:
    if isinstance(message, UserMessage):
        return replace(message, note="")
    return replace(message, text=text)


def _discovery(message: Message) -> _Texts | None:
    if isinstance(message, UserMessage) and message.text and message.note:
        return message.note, ""
    if not isinstance(message, ResultMessage) or message.found is None:
        return None
    return _where_shorter(message.text, prompts.found_earlier(message.found, _NAMES_AT_MOST))


def _result(message: Message) -> _Texts | None:
    if not isinstance(message, ResultMessage) or message.found is not None:
        return None
    return _where_shorter(message.text, prompts.result_earlier(len(message.text)))


def _where_shorter(text: str, line: str) -> _Texts | None:
    return (text, line) if len(line) < len(text) else None
