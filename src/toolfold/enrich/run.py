"""Words for a whole catalog: who is asked about, so many at once, and what it came to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from toolfold.enrich.answer import names_of
from toolfold.enrich.author import Author, AuthorAnswer
from toolfold.enrich.words_file import WordsFile
from toolfold.errors import ToolfoldError
from toolfold.runtime.model import ModelError, Usage
from toolfold.search._tool_words import ToolWords, WordsEntry, content_digest
from toolfold.tool import Tool

__all__ = ["EnrichProgress", "EnrichReport", "enrich", "to_write"]

FAILURES_AT_MOST = 3
"""Requests that may fail one after the other before the rest is not asked any more."""

EnrichProgress = Callable[[Tool, Usage], None]
"""Told of each tool that was asked about, and of all tokens so far."""


@dataclass(slots=True)
class EnrichReport:
    """What was done."""

    asked: int = 0
    written: list[str] = field(default_factory=list[str])
    """The tools that words were written for."""
    unusable: list[str] = field(default_factory=list[str])
    """The tools for which no answer could be used."""
    failed: list[str] = field(default_factory=list[str])
    """The tools whose request failed."""
    refused: int = 0
    """Texts of answers that were left out."""
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    error: ModelError | None = None
    """What ended it early, if something did."""


def to_write(tools: Iterable[Tool], words: ToolWords, *, again: bool = False) -> list[Tool]:
    """Return the tools that have no words, or stale ones; with `again`, all. Each name once."""
    distinct = {tool.name: tool for tool in tools}
    return [tool for tool in distinct.values() if again or words.entry(tool) is None]


async def enrich(
    todo: Sequence[Tool],
    every: Iterable[Tool],
    author: Author,
    file: WordsFile,
    *,
    concurrency: int = 1,
    progress: EnrichProgress = lambda tool, usage: None,
) -> EnrichReport:
    """Ask for the words of tools and keep them, one request a tool.

    Args:
        todo: The tools to ask about.
        every: All tools of the catalog.
        author: Who writes.
        file: Where the words are kept, as they come.
        concurrency: How many requests are under way at once.
        progress: Told of each tool.

    Raises:
        ConfigError: The file cannot be written.
    """
    report = EnrichReport()
    names = names_of(every)
    waiting = iter(todo)
    in_a_row = 0

    async def work() -> None:
        nonlocal in_a_row
        for tool in waiting:
            if report.error is not None:
                return
            report.asked += 1
            try:
                written = await author.write(tool, names)
            except ModelError as error:
                report.failed.append(tool.name)
                in_a_row += 1
                # Where nothing ever worked, nothing will: the address or the key is wrong.
                if in_a_row >= FAILURES_AT_MOST or not report.calls:
                    report.error = error
                continue
            in_a_row = 0
            _keep(tool, written, file, report)
            progress(tool, report.usage)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(todo))):
                group.create_task(work())
    except* ToolfoldError as errors:
        raise _first(errors) from None
    return report


def _keep(tool: Tool, written: AuthorAnswer, file: WordsFile, report: EnrichReport) -> None:
    report.calls += written.calls
    report.usage += written.usage
    if written.words is None:
        report.unusable.append(tool.name)
        return
    found = written.words
    report.refused += found.refused
    file.add(WordsEntry(tool.name, content_digest(tool), found.requests, found.words))
    report.written.append(tool.name)


def _first(errors: BaseExceptionGroup[ToolfoldError]) -> ToolfoldError:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    assert isinstance(error, ToolfoldError)
    return error
