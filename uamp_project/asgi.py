"""The ASGI application: HTTP goes to Django, sockets to their apps, lifespan to the process."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

from channels.routing import ProtocolTypeRouter, URLRouter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from uamp_project.edge.transports import Receive, Scope, Send

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "uamp_project.settings")

from uamp_project.servers.django_handler import LoopHandler

http_application = LoopHandler()

# These imports read the settings, which uamp_project.servers.django_handler has set up.
from django.conf import settings  # noqa: E402
from django.urls import re_path  # noqa: E402

from federation_app.routing import websocket_urlpatterns as envelope_urlpatterns  # noqa: E402
from federation_app.rpc.server import EnvelopeServer  # noqa: E402
from gateway_app.routing import websocket_urlpatterns as foreign_urlpatterns  # noqa: E402
from sessions_app import database, lifespan  # noqa: E402
from sessions_app.routing import websocket_urlpatterns  # noqa: E402
from telemetry import spans  # noqa: E402
from uamp_project import languages  # noqa: E402
from uamp_project.database_clock import warn_of_clock  # noqa: E402
from uamp_project.edge import bundle_copies  # noqa: E402
from uamp_project.edge.application import Edge  # noqa: E402
from uamp_project.edge.cross_origin import CrossOrigin  # noqa: E402
from uamp_project.servers.uvicorn_shutdown import GracefulShutdown  # noqa: E402

GRPC_SECONDS = 2.0
"""How long gRPC calls may keep running when the process shuts down."""
_grpc_servers: Final[list[EnvelopeServer]] = []


async def lifespan_application(
    scope: dict[str, Any],  # noqa: ARG001 the ASGI signature
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Start the process with the server, and drain and stop it with the server."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await startup()
            GracefulShutdown(lifespan.drain).take_signals()
            await send({"type": "lifespan.startup.complete"})
        else:
            await shutdown()
            await send({"type": "lifespan.shutdown.complete"})
            return


async def startup() -> None:
    """Start the process, with a gRPC server if the settings give it an address.

    Called by servers without the lifespan protocol; raises ImproperlyConfigured, and RuntimeError
    if the address is taken.
    """
    # Before the first page: its bundles may be requested from another process.
    await asyncio.to_thread(bundle_copies.refresh_copies)
    await lifespan.startup()
    process = lifespan.start()
    process.spawn(bundle_copies.refresh_daily(), name="bundles")
    process.spawn(database.run(warn_of_clock), name="clock")
    if settings.UAMP_GRPC_ADDRESS:
        server = EnvelopeServer(settings.UAMP_GRPC_ADDRESS)
        await server.start()
        _grpc_servers.append(server)


async def shutdown() -> None:
    """Stop what `startup` has started."""
    while _grpc_servers:
        await _grpc_servers.pop().stop(GRPC_SECONDS)
    await lifespan.shutdown()


async def _refuse(
    scope: dict[str, Any],  # noqa: ARG001 the ASGI signature
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Refuse a WebSocket at an unknown path."""
    await receive()
    await send({"type": "websocket.close", "code": 4404})


not_found: Any = _refuse  # an ASGI application, where Django's types expect a view


languages.load()
if settings.OTEL_EXPORTER_OTLP_ENDPOINT:
    spans.configure(settings.OTEL_SERVICE_NAME)

_edge = CrossOrigin(
    Edge(
        ProtocolTypeRouter(
            {
                "http": http_application,
                "websocket": URLRouter(
                    [
                        *envelope_urlpatterns,
                        *foreign_urlpatterns,
                        *websocket_urlpatterns,
                        re_path("", not_found),
                    ]
                ),
                "lifespan": lifespan_application,
            }
        )
    )
)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve a connection; the first one starts the process on servers without lifespan."""
    if scope["type"] != "lifespan":
        lifespan.start()
    await _edge(scope, receive, send)
