"""`service uamp.v1.Agent` as a client (envelope §7)."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, Any, Final, Self

import grpc

from agents_app.outbound.look_ups import look_up_async
from agents_app.outbound.rules import Unreachable, check_addresses
from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.limits import load
from federation_app.peers.connections import roots
from federation_app.remote_agents.answers import PeerRefusal, refusal_of
from federation_app.remote_agents.transports.connection import (
    RECORD_BYTES,
    ConnectionLost,
    RecordConnection,
)
from federation_app.rpc import agent_pb2
from federation_app.rpc.agent_pb2_grpc import AgentStub

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from agents_app.outbound.rules import Target

CONNECT_SECONDS: Final = 10.0
ERROR_KEY: Final = "uamp-error-bin"
_FIELDS_BYTES: Final = 1024


class GrpcPeerConnection(RecordConnection):
    """A call of `Stream`, on its own channel."""

    _channel: Any = None
    _stub: Any
    _call: Any = None

    async def __aenter__(self) -> Self:
        """See PeerConnection."""
        self._channel = await _channel(self.question.target)
        self._stub = AgentStub(self._channel)
        return self

    async def __aexit__(self, *raised: object) -> None:
        """See PeerConnection."""
        if self._call is not None:
            self._call.cancel()
        await self._channel.close()

    async def send(self, record: bytes) -> None:
        """See RecordConnection."""
        if self._call is None:
            self._call = self._stub.Stream()
        try:
            await _result(self._call.write(agent_pb2.Record(json=record)), self.question.silent)
        except asyncio.InvalidStateError as error:
            raise ConnectionLost from error
        except grpc.aio.AioRpcError as error:
            raise _refused(error) from error

    async def receive(self) -> bytes:
        """See PeerConnection."""
        try:
            record = await _result(self._call.read(), self.question.silent)
        except grpc.aio.AioRpcError as error:
            raise _refused(error) from error
        if record is grpc.aio.EOF:
            raise ConnectionLost
        return bytes(record.json)

    async def tell(self, raw: bytes) -> None:
        """See PeerConnection."""
        try:
            sending = self._stub.Send(agent_pb2.EnvelopeRecord(envelope=raw))
            await _result(sending, self.question.silent)
        except grpc.aio.AioRpcError as error:
            raise _refused(error) from error


async def _result(call: Awaitable[Any], seconds: float) -> Any:
    """Return the result of a grpc call; raises TimeoutError after `seconds` of silence.

    The call runs in its own task: if the awaiting task were cancelled, grpc would take that as the
    end of the call, and the task would continue.
    """
    task = asyncio.ensure_future(call)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        raise TimeoutError
    return task.result()


async def _channel(target: Target) -> Any:
    """Return a channel to a permitted address; raises ConnectionLost."""
    try:
        addresses = await look_up_async(target.host, target.port, CONNECT_SECONDS)
        address = ipaddress.ip_address(check_addresses(target, addresses)[0])
    except Unreachable as error:
        raise ConnectionLost from error
    is_v6 = address.version == 6  # noqa: PLR2004 the IP version
    place = f"ipv6:[{address}]:{target.port}" if is_v6 else f"ipv4:{address}:{target.port}"
    options = [
        # The name in the certificate, since the channel connects to an address.
        ("grpc.ssl_target_name_override", target.host),
        ("grpc.default_authority", target.host),
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),
        # A connection shared between channels would outlive them.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", RECORD_BYTES + _FIELDS_BYTES),
    ]
    if target.url.scheme == "http":
        return grpc.aio.insecure_channel(place, options=options)
    credentials = grpc.ssl_channel_credentials(roots().encode())
    return grpc.aio.secure_channel(place, credentials, options=options)


def _refused(error: grpc.aio.AioRpcError) -> PeerRefusal | ConnectionLost:
    """Return the error in the metadata at the end of a call, or ConnectionLost without one."""
    for key, value in error.trailing_metadata() or ():
        if key == ERROR_KEY:
            try:
                return refusal_of(load(value))
            except EnvelopeError:
                break
    return ConnectionLost()
