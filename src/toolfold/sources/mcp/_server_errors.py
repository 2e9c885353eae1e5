"""What a call meets where its server is not there, and why signing in came to nothing."""

from __future__ import annotations

from toolfold import prompts
from toolfold.errors import ToolfoldError
from toolfold.sources.source import SourceError
from toolfold.tool import Tool

__all__ = ["ServerDownError", "SignInError"]


class ServerDownError(SourceError):
    """A server did not take a call, or died over it.

    Args:
        server: Its name.
        reason: Why, as a clause.
        lost: Whether the call had been sent, so that it may have had effects.
        retry_in: In how many seconds the server is tried again, infinity for never; None where
            it is being started again as things stand.
    """

    def __init__(
        self, server: str, reason: str, *, lost: bool, retry_in: float | None = None
    ) -> None:
        super().__init__(f"server {server!r} {reason}")
        self.server = server
        self.reason = reason
        self.lost = lost
        self.retry_in = retry_in

    def for_model(self, tool: Tool) -> str:
        """Return what the model reads as the result of its call."""
        return prompts.server_down(
            tool.shown_name, self.server, self.reason, lost=self.lost, retry_in=self.retry_in
        )


class SignInError(ToolfoldError):
    """Signing in came to nothing: somebody said no, or the browser came back with another's answer.

    Its text is the clause that follows the server's name.
    """
