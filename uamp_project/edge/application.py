"""Checks on every request and socket before routing.

- `addresses`: the address under which a request is counted, with X-Forwarded-For from known
  proxies only.
- `rates.KINDS["requests"]`: how many requests an address may send, signed in or not, and
  `rates.KINDS["documents"]`: how many of them for public documents.
- `addresses.LACKS_SCHEME`: whether the proxy names the scheme, without which Django would redirect
  every request to itself.
- `bodies`: the size of request bodies, by their declared length and while they arrive.
- `transports`: disconnecting clients that read or send nothing.
- `observed`: the id in the log, the metrics and the spans.

A refusal has the format of the route that it replaces (`refusals`).
"""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import TYPE_CHECKING, Final

from agents_app.rest.problems import is_out_of_space
from sessions_app.access import rates
from uamp_project.edge import refusals
from uamp_project.edge.addresses import LACKS_SCHEME, client_address
from uamp_project.edge.bodies import RequestBody, declared_length
from uamp_project.edge.observed import ObservedRequest, observed_socket
from uamp_project.edge.transports import Transport

if TYPE_CHECKING:
    from django.http import HttpResponse

    from uamp_project.edge.transports import Application, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

# Probes and static files are not counted.
UNCOUNTED: Final = ("/healthz", "/readyz", "/static/")
# Same for everyone, answered without looking at a caller (agent cards are not). They are counted
# here, because a refusal by a view costs as much as the document.
DOCUMENTS: Final = re.compile(
    r"/(?:log-tree/|api/schema|docs/problems|schemas/"
    r"|(?:agents/[^/]+/)?(?:did\.json|\.well-known/(?!agent(?:-card)?\.json)))"
)
CLOSE_TOO_MANY: Final = 4429
_ADDRESS_QUOTA: Final = "uamp.address_quota"


class Edge:
    """Wraps the routing application."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._application(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = Transport.of(send)
        address = client_address(scope, transport)
        with ObservedRequest(scope) as request:
            response = _Response(scope, transport.watched(send), request)
            await self._answer(scope, receive, transport, address, response)

    async def _answer(
        self,
        scope: Scope,
        receive: Receive,
        transport: Transport,
        address: str,
        response: _Response,
    ) -> None:
        body = RequestBody(receive, transport, scope["path"], rates.visitors(address))
        if refused := await _refused(scope, address):
            await response.replace(refused, body)
            return
        try:
            if declared_length(scope) > body.limit:
                await response.replace(refusals.body_too_large(scope["path"], body.limit), body)
                return
            await self._application(scope, body.receive, response.send)
        except OSError as error:
            if response.started or not is_out_of_space(error):
                raise
            logger.exception("there is no space for a request of %s", scope["path"])
            await response.replace(refusals.no_space(scope["path"]), body)
        finally:
            body.release()
        if body.refusal is not None and not response.started:
            await response.replace(body.refusal(scope["path"]), body)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = Transport.of(send)
        address = client_address(scope, transport)
        _warn_of_plain(send)
        if refused := await _refused(scope, address):
            await receive()
            await _reject(scope, send, refused)
            return
        with observed_socket(scope):
            await self._application(scope, receive, transport.watched(send))


@cache
def _warn(protocol: str) -> None:
    logger.warning(
        "%s waits endlessly for unfinished messages;"
        " see docs/deployment.md#several-processes-and-machines",
        protocol,
    )


@cache
def _warn_of_proxy() -> None:
    logger.warning(
        "requests are refused, because the proxy does not send X-Forwarded-Proto;"
        " see 'Proxies' in docs/deployment.md"
    )


def _warn_of_plain(send: Send) -> None:
    """Warn once if uvicorn runs without the protocols of `servers.uvicorn_protocols`."""
    protocol = type(getattr(send, "__self__", None))
    if protocol.__module__.startswith("uvicorn."):
        _warn(f"{protocol.__module__}.{protocol.__qualname__}")


async def _refused(scope: Scope, address: str) -> HttpResponse | None:
    """Return the refusal of a request above its address's quota, or of its proxy; or None."""
    if scope["path"].startswith(UNCOUNTED):
        return None
    # Metrics are read from each process, not through the proxy.
    if scope.get(LACKS_SCHEME) and scope["path"] != "/metrics":
        _warn_of_proxy()
        return refusals.no_scheme(scope["path"])
    visitors = rates.visitors(address)
    quota = await rates.limiter().take("requests", visitors)
    if quota.allowed and DOCUMENTS.match(scope["path"]):
        quota = await rates.limiter().take("documents", visitors)
    if quota.allowed:
        scope[_ADDRESS_QUOTA] = quota
        return None
    rates.note(scope, quota)
    return refusals.too_many_requests(scope["path"], quota)


async def _reject(scope: Scope, send: Send, refused: HttpResponse) -> None:
    """Refuse a handshake, by HTTP if the server can, otherwise by closing before accepting."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": CLOSE_TOO_MANY})
        return
    start, body = refusals.messages(refused, [])
    await send({**start, "type": "websocket.http.response.start"})
    await send({**body, "type": "websocket.http.response.body"})


class _Response:
    """The response to one request, on its way to the server."""

    def __init__(self, scope: Scope, send: Send, request: ObservedRequest) -> None:
        self.started = False
        self._request = request
        self._scope = scope
        self._send = send

    async def send(self, message: Message) -> None:
        """Send a message of the application, adding the quota to its headers."""
        if message["type"] == "http.response.start":
            self.started = True
            # ASGI and HTTP/3 require names in lower case; Django sends them as they were set.
            headers = [(name.lower(), value) for name, value in message.get("headers", ())]
            # A request that is refused before its caller is known counts for its address alone.
            address_quota = self._scope.get(_ADDRESS_QUOTA)
            quota: rates.Quota | None = self._scope.get(rates.SCOPE_KEY, address_quota)
            if quota is not None:
                headers += [(k.lower().encode(), v.encode()) for k, v in quota.headers()]
            headers += self._request.answered(message["status"], headers)
            message = {**message, "headers": headers}
        await self._send(message)

    async def replace(self, refused: HttpResponse, body: RequestBody) -> None:
        """Send a refusal and then close, so that a client that is still sending can read it."""
        start, content = refusals.messages(refused, [(b"connection", b"close")])
        await self.send(start)
        await self.send({**content, "more_body": True})
        await body.discard()
        await self.send({"type": "http.response.body", "body": b""})
