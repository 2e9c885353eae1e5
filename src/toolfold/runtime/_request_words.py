"""What a person asks for in a message: the words of the request, without what came along.

Clients put reminders and their surroundings into the user's messages, between tags; people
paste logs and code. A search ahead of the model is for the words alone, and for none where the
message asks for nothing: thanks, small talk, a question about the last answer.
"""

from __future__ import annotations

import re

from toolfold.search import telling_words

__all__ = ["asks_nothing", "request_words"]

_READ_AT_MOST = 20_000
"""How many characters are read at each end of a message: whoever asks does so there."""

_WHOLE_AT_MOST = 1_200
"""Up to so many characters, a message is its request."""

_PARAGRAPH_AT_MOST = 600
_LINE_AT_MOST = 400

_TAG = re.compile(r"<([A-Za-z][\w:.-]{0,60})(?:\s[^<>]{0,500})?>")
_ASKED_IN = frozenset({"user_query", "user_request", "userrequest", "user_message", "task"})
"""Tags in which clients put the user's own words."""

_UNCLOSED_AT_MOST = 50
"""So many tags that nothing closes are no tags: the rest of the text is as it is."""

_FENCE = "```"
_WORDY = re.compile(r"[^\W\d_]|[ ,.;:!?'’()-]")
_WORDY_SHARE = 0.9
"""Which part of a text its letters and plain marks are, at least, where somebody wrote it."""

_IDLE_WORDS = frozenset(
    """
    thanks thank thx ty cheers great perfect nice cool good awesome excellent lovely fine right
    correct exactly wonderful ok okay yes yep yeah nope sure hello hi hey morning afternoon
    evening night day weekend bye goodbye later welcome sorry well done work works worked lol haha
    wow hmm hm never mind forget go ahead continue proceed move leave today now bit wrong why mean
    meant thought think
    another one ones other others first second third last next many much more less again same both
    two three here thing things
    danke merci beaucoup gracias grazie obrigado bitte gut bien das war alles por que
    """.split()
)
"""Words of courtesy and words that only point: alone they name a tool by chance, if at all."""

_POINTS_BACK = re.compile(
    r"(?:(?:so|and|but|well|ok|okay|hm+|wait)\b,?\s+)*(?:"
    r"why\W*$|why (?:not|did|do|would|that|this|those|these)\b|why (?:is|was) (?:that|this|it)\b"
    r"|how come\b|are you sure\b|do you mean\b|what do you mean\b|what did you\b|what was that\b"
    r"|what (?:does|do|is|was) (?:that|this|it|those|these|the (?:first|second|third|last))\b"
    r"|(?:is|was|are|were) (?:that|this|it|those|these|they)\b|did (?:that|this|it|you)\b"
    r"|does (?:that|this|it)\b|which (?:one|of (?:those|these|them|the two))\b"
    r"|how many (?:were there|(?:of )?(?:those|these|them))\b|when was that\b"
    r"|(?:(?:can|could|would) you )?(?:please )?(?:explain|repeat|rephrase|shorten|say) "
    r"(?:that|this|it|the (?:first|second|third|last))\b"
    r"|make (?:that|this|it) (?:shorter|longer|simpler|clearer)\b"
    r"|(?:and )?the other (?:one|two)\W*$)",
    re.IGNORECASE,
)
_ABOUT_ANSWER = re.compile(r"\byour (?:last |previous )?(?:answer|reply|message)\b", re.IGNORECASE)


def request_words(text: str) -> str:
    """Return the words of a message in which something is asked for; empty where there are none.

    Of a long one these are its beginning and its end, where they are written and not pasted.
    """
    if len(text) > 2 * _READ_AT_MOST:
        text = f"{text[:_READ_AT_MOST]}\n\n{text[-_READ_AT_MOST:]}"
    text = _outside_fences(_outside_tags(text)).strip()
    if len(text) <= _WHOLE_AT_MOST:
        return text
    paragraphs = [part.strip() for part in re.split(r"\n[ \t\r]*\n", text) if part.strip()]
    first, last = paragraphs[0], paragraphs[-1]
    begins = first if len(first) <= _PARAGRAPH_AT_MOST else first.partition("\n")[0]
    ends = last if len(last) <= _PARAGRAPH_AT_MOST else last.rpartition("\n")[2]
    # One long line may be a sentence that goes on: how it begins says what it is about.
    pieces = (begins[:_PARAGRAPH_AT_MOST], "" if len(ends) > _LINE_AT_MOST else ends)
    return "\n".join(dict.fromkeys(piece for piece in pieces if _is_written(piece)))


def asks_nothing(words: str, *, is_later: bool) -> bool:
    """Whether a message asks for nothing that a tool would be needed for.

    Args:
        words: The words of the message.
        is_later: Whether the model has said something before, which they may be about.
    """
    if _IDLE_WORDS.issuperset(telling_words(words)):
        return True
    return is_later and bool(_POINTS_BACK.match(words.lstrip()) or _ABOUT_ANSWER.search(words))


def _outside_tags(text: str) -> str:
    """Return a text without what stands between tags, but for a client's tags of a request."""
    kept: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while len(unclosed) < _UNCLOSED_AT_MOST and (tag := _TAG.search(text, at)) is not None:
        name = tag[1]
        end = -1 if name in unclosed else text.find(f"</{name}>", tag.end())
        if end < 0:
            unclosed.add(name)
            kept.append(text[at : tag.end()])
            at = tag.end()
            continue
        if name.lower() in _ASKED_IN:
            return _outside_tags(text[tag.end() : end])
        kept.append(text[at : tag.start()])
        at = end + len(name) + 3
    kept.append(text[at:])
    return "".join(kept)


def _outside_fences(text: str) -> str:
    """Return a text without its fenced code; a fence that is not closed goes to the end."""
    return "\n".join(text.split(_FENCE)[::2]) if _FENCE in text else text


def _is_written(text: str) -> bool:
    return bool(text) and len(_WORDY.findall(text)) >= _WORDY_SHARE * len(text)
