"""Korean, read in English word by word.

Korean puts blanks between groups of words: a noun with its particles, a verb with its
endings. A group is read from its beginning; what follows a known word and is none itself
is particle or ending, and says nothing about a tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolfold.search._longest import LongestWords

__all__ = ["HAS_HANGUL", "Korean"]

HAS_HANGUL = re.compile("[\uac00-\ud7a3]")
"""Finds a Korean syllable."""

_GROUP = re.compile("[\uac00-\ud7a3]+")
_TAIL_AT_MOST = 8
_PARTICLES = """
    은 는 이 가 을 를 의 에 에서 에게 에게서 한테 한테서 께 께서 으로 로
    으로서 로서 부터 까지 와 과 랑 이랑 하고 도 만 마다 보다 처럼 이나 나 들
    님 씨 라는 이라는 라고 이라고 란 이란 인 이고 이며 이면 야 이야 요 예요
    이에요 입니다 인가요 조차 마저 대로 만큼 쪽 째
"""
_ENDINGS = """
    해 해줘 해주세요 하는 하기 하여 하면 한 할 했 됐 된 될 되는 줘 주세요 줄래
    어 아 어줘 아줘 어주세요 아주세요 고 며 면 기 게 지 자 다 니 던 는지 은지
    는데 은데 려고 러 도록 서 어서 아서 았 었 습니다 습니까 나요 까 까요 을까
    을까요 싶어 싶어요
"""


def _run_of(listed: str) -> str:
    longest_first = sorted(listed.split(), key=lambda own: (-len(own), own))
    return f"(?:{'|'.join(longest_first)}){{1,4}}"


_TAIL = re.compile(_run_of(f"{_PARTICLES} {_ENDINGS}"))
_NAME = re.compile(f"(..+?)(?:{_run_of(_PARTICLES)})?")


class Korean:
    """The Korean words of the list.

    Args:
        meanings: The words in English; of a verb, the beginnings of its forms.
    """

    def __init__(self, meanings: Mapping[str, str]) -> None:
        self._meanings = meanings
        self._longest = LongestWords(meanings)

    def translated(self, text: str) -> str | None:
        """Return a text with the words that are known in English; None where none is."""
        out: list[str] = []
        end = 0
        is_read = False
        for group in _GROUP.finditer(text):
            before = text[end : group.start()]
            words, is_known = self._group(group[0], before[-1:])
            is_read = is_read or is_known
            out += (before, " ", words, " ")
            end = group.end()
        return "".join([*out, text[end:]]) if is_read else None

    def _group(self, group: str, before: str) -> tuple[str, bool]:
        """Return a group in English, and whether a word of it says something.

        Args:
            group: Syllables without a blank.
            before: The letter before them, or nothing.
        """
        if before.isalpha() and _is_tail(group, 0):
            return "", False
        found: list[str] = []
        start = 0
        name = ""
        while start < len(group):
            size = self._size_at(group, start, is_inside=bool(name))
            if size:
                found.append(self._meanings[group[start : start + size]])
                start += size
                if _is_tail(group, start):
                    break
            else:
                # After a known word it is an ending, before one the rest of a name.
                name += "" if found else group[start]
                start += 1
        if not found:
            named = _NAME.fullmatch(name)
            return named[1] if named else name, False
        return " ".join([name, *found]).strip(), any(found)

    def _size_at(self, group: str, start: int, *, is_inside: bool) -> int:
        """Return how long the longest known word at a place is, or 0.

        One syllable alone is a word only where one may begin, with nothing but particles
        and endings behind it.
        """
        size = self._longest.size_at(group, start)
        if size:
            return size
        is_word = not is_inside and group[start] in self._meanings
        return int(is_word and (start + 1 == len(group) or _is_tail(group, start + 1)))


def _is_tail(group: str, start: int) -> bool:
    return len(group) - start <= _TAIL_AT_MOST and bool(_TAIL.fullmatch(group, start))
