"""The control socket's verbs over HTTP: `POST /admin/VERB`, its arguments as a JSON object.

The door in front has checked host, page and the admin's token. Answers are those of the
socket: `{"toolfold": 1, "ok": true, "result": …}`, or the error, with a status to match.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response

from toolfold.serve.control.control_socket import Verb, answered
from toolfold.serve.control.messages import ControlError, read_arguments, refusal_line
from toolfold.serve.observe.changes import ASKED_BY
from toolfold.serve.principals import ADMIN

__all__ = ["admin_route"]

_STATUS = {
    "bad_request": 400, "unknown_verb": 404, "unknown_server": 404, "failed": 500,
}  # fmt: skip


def admin_route(verbs: Mapping[str, Verb]) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers the admin.

    Args:
        verbs: What can be asked, by name.
    """

    async def asked(request: Request) -> Response:
        code: str | None = None
        ASKED_BY.set(ADMIN.name)
        try:
            arguments = read_arguments(await request.body())
        except ControlError as error:
            line, code = refusal_line(error), error.code
        else:
            line, code = await answered(verbs, request.path_params["verb"], arguments)
        status = 200 if code is None else _STATUS.get(code, 409)
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        return Response(line, status, headers, media_type="application/json")

    return asked
