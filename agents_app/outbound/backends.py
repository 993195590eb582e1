"""Connections of httpcore2's asynchronous clients to one target.

As in `agents_app.outbound.guard`, the name is looked up for each connection, and connections are
made only to addresses that the rules allow.
"""

from collections.abc import Callable, Iterable, Sequence

import httpcore2

from agents_app.outbound.look_ups import look_up_async
from agents_app.outbound.rules import Target, Unreachable, check_addresses

CONNECT_SECONDS = 10.0


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the addresses of one target once they have been checked.

    `on_unreachable` receives the reason if no connection can be made.
    """

    def __init__(
        self, target: Target, *, on_unreachable: Callable[[str], object] = lambda _reason: None
    ) -> None:
        self._target = target
        self._on_unreachable = on_unreachable
        self._sockets = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 the signature of httpcore2
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that accepts."""
        seconds = CONNECT_SECONDS if timeout is None else timeout
        try:
            addresses = await self._addresses(host, port, seconds)
        except Unreachable as error:
            self._on_unreachable(error.reason)
            raise httpcore2.ConnectError(error.reason) from error
        refused: Exception | None = None
        for address in addresses:
            try:
                return await self._sockets.connect_tcp(
                    address, port, seconds / len(addresses), local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                refused = error
        self._on_unreachable(f"no address of {host} accepted a connection")
        raise httpcore2.ConnectError("no address accepted a connection") from refused

    async def _addresses(self, host: str, port: int, seconds: float) -> Sequence[str]:
        if (host.rstrip("."), port) != (self._target.host, self._target.port):
            raise Unreachable(f"{host}:{port} is not {self._target.place}")
        addresses = await look_up_async(host, port, seconds)
        return check_addresses(self._target, addresses)
