"""A model that writes words for tools, asked about one tool at a time."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from toolfold import prompts
from toolfold.enrich.answer import AnsweredWords, answered_words
from toolfold.runtime.messages import ModelMessage, UserMessage
from toolfold.runtime.model import Model, Reply, Request, Usage
from toolfold.tokens import estimate
from toolfold.tool import Tool

__all__ = ["Author", "AuthorAnswer", "Estimate", "estimated"]

REQUESTS, WORDS = 8, 8
"""How many requests and synonyms are asked for."""

ATTEMPTS = 2
"""How often a tool is asked about where an answer cannot be used."""

_REQUEST_TOKENS, _WORD_TOKENS, _FRAME_TOKENS = 14, 4, 20
_REPLY_SHARE = 3
"""How much longer than expected a reply may be before it is cut off."""

_AGAIN = "That cannot be read. Answer with the JSON object alone."


class AuthorAnswer(NamedTuple):
    """What asking about one tool came to."""

    words: AnsweredWords | None
    """None where no answer could be used."""
    usage: Usage
    calls: int


class Estimate(NamedTuple):
    """What asking is expected to take, in tokens."""

    calls: int
    prompt: int
    completion: int


@dataclass(frozen=True, slots=True)
class Author:
    """Asks a model for the words of a tool."""

    model: Model
    requests: int = REQUESTS
    words: int = WORDS

    async def write(self, tool: Tool, names: Set[str]) -> AuthorAnswer:
        """Return what the model wrote for a tool.

        Args:
            tool: The tool.
            names: The names of all tools, which no words may consist of.

        Raises:
            ModelError: The model cannot be reached, or refuses.
        """
        asked = UserMessage(prompts.authoring_request(tool, self.requests, self.words))
        messages: list[UserMessage | ModelMessage] = [asked]
        usage, calls = Usage(), 0
        for _ in range(ATTEMPTS):
            reply = await self._reply(messages)
            calls += 1
            usage += reply.usage
            found = answered_words(
                reply.message.text, names, requests=self.requests, words=self.words
            )
            if found is not None:
                return AuthorAnswer(found, usage, calls)
            messages = [asked, ModelMessage(reply.message.text or "…"), UserMessage(_AGAIN)]
        return AuthorAnswer(None, usage, calls)

    async def _reply(self, messages: Sequence[UserMessage | ModelMessage]) -> Reply:
        request = Request(
            messages,
            system=prompts.AUTHORING,
            max_tokens=_REPLY_SHARE * _written_tokens(self.requests, self.words),
        )
        reply: Reply | None = None
        async for piece in self.model.stream(request):
            if isinstance(piece, Reply):
                reply = piece
        return reply or Reply(ModelMessage())


def estimated(tools: Sequence[Tool], requests: int = REQUESTS, words: int = WORDS) -> Estimate:
    """Return what asking about some tools is expected to take."""
    system = estimate(prompts.AUTHORING)
    prompt = sum(
        system + estimate(prompts.authoring_request(tool, requests, words)) for tool in tools
    )
    return Estimate(len(tools), prompt, len(tools) * _written_tokens(requests, words))


def _written_tokens(requests: int, words: int) -> int:
    return _FRAME_TOKENS + requests * _REQUEST_TOKENS + words * _WORD_TOKENS
