"""The gateway as an ASGI application: `/mcp` behind the door, and what is beside it.

Each profile has a path of its own below it, `/mcp/NAME`.

`/healthz` and `/readyz` say to everybody whether it stands and takes requests, `/metrics` names
all there is to those who may know it, and `/admin/VERB` is the admin's, where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from toolfold.serve.http.admin import admin_route
from toolfold.serve.http.conversations import ConversationDoor
from toolfold.serve.http.customs import MCP_PATH, Customs, McpCustoms
from toolfold.serve.http.events import ResumableSessions
from toolfold.serve.http.gateway_door import GatewayDoor
from toolfold.serve.http.guard import Guard
from toolfold.serve.mcp.downstream import make_server
from toolfold.serve.principals import local_principal

if TYPE_CHECKING:
    from toolfold.serve.control.control_socket import Verb
    from toolfold.serve.gateway import Gateway

__all__ = ["make_app"]


def make_app(
    gateway: Gateway,
    host: str,
    *,
    metrics: Callable[[], str] | None = None,
    refused: Callable[[str], None] = lambda reason: None,
    verbs: Mapping[str, Verb] | None = None,
) -> Guard:
    """Return the application.

    Args:
        gateway: The gateway, which somebody else starts and stops.
        host: The host that it is bound to.
        metrics: Returns the metrics in Prometheus' text form.
        refused: Told why a request was turned away, in one word.
        verbs: What the admin may ask and change.

    Raises:
        ConfigError: A token cannot be used, or none guards an address others reach.
    """
    settings = gateway.config.serve

    async def health(request: Request) -> Response:
        if gateway.calls.is_closing:
            return JSONResponse({"status": "stopping"}, status_code=503)
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        if gateway.calls.is_leaving or gateway.calls.is_closing:
            return JSONResponse({"status": "stopping"}, status_code=503)
        if not gateway.pool.first_start.may_be_seen:
            return JSONResponse({"status": "starting"}, status_code=503)
        return JSONResponse({"status": "ready"})

    async def measured(request: Request) -> Response:
        text = metrics() if metrics is not None else ""
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    server = make_server(gateway, local_principal(settings))
    sessions = _sessions(
        gateway,
        server,
        max_request_body_size=settings.body_limit,
        session_idle_timeout=settings.session_idle,
        max_sessions=settings.max_sessions,
        # The door in front checks hosts and origins, and knows more of them.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    inner = Starlette(
        routes=[
            Route(MCP_PATH, StreamableHTTPASGIApp(sessions)),
            Route(f"{MCP_PATH}/{{profile}}", StreamableHTTPASGIApp(sessions)),
            Route(Customs.health_path, health),
            Route(Customs.metrics_path, measured),
            Route(McpCustoms.ready_path, ready),
            Route(f"{McpCustoms.admin_path}{{verb}}", admin_route(verbs or {}), methods=["POST"]),
        ],
        lifespan=lambda app: sessions.run(),
    )
    door = ConversationDoor(
        inner,  # pyright: ignore[reportArgumentType]
        gateway,
        idle=settings.session_idle,
        each=settings.sessions_per_token,
        in_all=settings.max_sessions,
        refused=refused,
        secret=None if gateway.membership is None else gateway.membership.secret(),
    )
    guard = Guard.of(
        door,
        settings,
        host,
        refused=refused,
        is_closing=lambda: gateway.calls.is_closing,
        profiles=frozenset(profile.name for profile in gateway.config.profiles),
    )
    gateway.doors.append(GatewayDoor(gateway, guard, sessions, door, host))
    if gateway.roaming is not None:
        gateway.roaming.on_ended = guard.session_ended
        gateway.calls.on_closing = gateway.roaming.close_streams
    return guard


def _sessions(gateway: Gateway, server: Server[Any], **settings: Any) -> ResumableSessions:
    """Return what holds the sessions: by itself, or together with other replicas."""
    if gateway.membership is None:
        return ResumableSessions(server, **settings)
    from toolfold.serve.replica.roaming_sessions import RoamingSessions

    gateway.roaming = RoamingSessions(
        server,
        gateway,
        gateway.membership,
        each=gateway.config.serve.sessions_per_token,
        **settings,
    )
    return gateway.roaming
