"""What a model reads of calls that go to an HTTP API."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "PATH_LEADS_OUT",
    "api_answer_cut",
    "api_failed",
    "api_needs_credentials",
    "api_unreachable",
    "cannot_send",
    "done_without_content",
    "header_takes",
    "needs_base64",
    "no_token",
    "output_does_not_fit",
    "path_needs",
    "redirected",
]

PATH_LEADS_OUT = "a value of its path has a step `.` or `..`, which leads elsewhere"

_NEXT = {
    400: "Mend the arguments and call again.",
    404: "Check the ids in the arguments, or list what there is.",
    405: "The API does not offer this operation here.",
    409: "Look at the present state before you try again.",
    413: "Send less.",
    422: "Mend the arguments and call again.",
    429: "Wait before you call again.",
}


def path_needs(argument: str) -> str:
    """Why a call cannot be sent: its path lacks a value."""
    return f"`{argument}` is part of the path and must not be empty"


def header_takes(argument: str) -> str:
    """Why a call cannot be sent: a header's value has something in it that no header takes."""
    return f"`{argument}` goes into a header, which takes one line of plain ASCII"


def needs_base64(argument: str) -> str:
    """Why a call cannot be sent: a file is not in base64."""
    return f"`{argument}` is a file and must be given in base64"


def cannot_send(name: str, clause: str) -> str:
    """Return the answer to a call that was not sent."""
    return f"{name} was not called: {clause}."


def api_failed(name: str, status: int, reason: str, body: str, retry_after: str) -> str:
    """Return the answer to a call that an API refused or could not serve.

    Args:
        name: The tool's name.
        status: The HTTP status.
        reason: Its phrase.
        body: What the API said, bounded.
        retry_after: How long it wants to be left alone, where it says so.
    """
    said = f" The API says: {body}" if body else ""
    wait = f" It asks to wait {retry_after} seconds." if retry_after else ""
    step = _NEXT.get(status) or ("It may work later." if status >= 500 else "")
    return f"{name} failed with {status}{f' {reason}' if reason else ''}.{said}{wait}" + (
        f"\n{step}" if step else ""
    )


def api_needs_credentials(name: str, status: int, schemes: Sequence[str], source: str) -> str:
    """Foot of an answer to a call that lacked credentials, or whose credentials do not do."""
    if not schemes:
        return "The credentials do not allow it; only the user can change them."
    keys = " or ".join(f"`openapi.{source}.auth.{scheme}`" for scheme in schemes)
    return f"No credentials are configured for it: the user has to set {keys}."


def redirected(name: str, status: int, host: str) -> str:
    """Return the answer to a call that was sent elsewhere."""
    where = f" to {host}" if host else ""
    return f"{name} was redirected{where} ({status}), which is not followed. Tell the user."


def api_unreachable(name: str, reason: str, may_have_run: bool) -> str:
    """Return the answer to a call that got no answer."""
    effects = " It may have had effects." if may_have_run else ""
    return f"{name} got no answer: {reason}.{effects}"


def no_token(name: str, reason: str) -> str:
    """Return the answer to a call for which no access token could be had."""
    return f"{name} was not called: {reason}. Only the user can change how it signs in."


def done_without_content(status: int) -> str:
    """Return what stands for an answer without content."""
    return f"(Done: {status}, no content.)"


def api_answer_cut(read: int) -> str:
    """Foot of an answer that was too long to be read."""
    return f"(Cut: the answer has more than {read:,} bytes. Ask for less, or for a page.)"


def output_does_not_fit(name: str) -> str:
    """Return the answer where what an API said is not what its document promises."""
    return f"{name} answered, but not as its description promises, so the answer is withheld."
