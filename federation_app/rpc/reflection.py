"""Server reflection: strangers read the proto of these services, and build clients from it.

The grpcio-reflection library answers. It implements v1alpha, whose messages v1 shares. The time of
a call, the number and size of its requests and the number of open calls are bounded. The descriptor
pool contains only these services, so nothing else that the process has loaded can be looked up.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import grpc
from django.conf import settings
from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import aio

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.rpc import agent_pb2, calls
from sessions_app.access import rates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CALL_SECONDS: Final = 30.0
CALL_REQUESTS: Final = 64
REQUEST_BYTES: Final = 2048
CALLS_PER_ADDRESS: Final = 4
CALLS: Final = 32
"""Open calls of one process."""
AGENT_SERVICE: Final = "uamp.v1.Agent"
REFLECTION_SERVICES: Final = (
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
)

reflections: Final = calls.OpenCalls()


class ReflectionService:
    """The reflection service in both versions."""

    def __init__(self) -> None:
        self._answers = aio.ReflectionServicer((AGENT_SERVICE, *REFLECTION_SERVICES), pool=_pool())

    def add_to(self, server: grpc.aio.Server) -> None:
        """Register both versions; requests arrive as bytes, measured before they are parsed."""
        handler: Any = grpc.stream_stream_rpc_method_handler(
            self.serve,
            response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
        )
        methods = {"ServerReflectionInfo": handler}
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(name, methods) for name in REFLECTION_SERVICES]
        )

    async def serve(self, _requests: object, context: Any) -> None:
        """Answer the requests of one call."""
        await calls.refuse_unready(context)
        visitors = rates.visitors(calls.client_address(context))
        limit = settings.UAMP_CONNECTIONS_PER_ADDRESS
        async with (
            calls.streams.enter(context, visitors, per_address=limit),
            reflections.enter(context, visitors, per_address=CALLS_PER_ADDRESS, total=CALLS),
        ):
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    await self._answer(context, visitors)
            except TimeoutError:
                message = f"A reflection call may last at most {CALL_SECONDS:.0f} seconds."
                await calls.end(context, grpc.StatusCode.DEADLINE_EXCEEDED, message)
            except EnvelopeError as error:
                await calls.refuse(context, error)

    async def _answer(self, context: Any, visitors: str) -> None:
        requests = _requests(context, visitors)
        async for response in self._answers.ServerReflectionInfo(requests, context):
            await context.write(response)


async def _requests(context: Any, visitors: str) -> AsyncIterator[Any]:
    """Yield the requests of a call; raises EnvelopeError at a limit, and for malformed ones."""
    count = 0
    while (raw := await context.read()) is not grpc.aio.EOF:
        count += 1
        if count > CALL_REQUESTS:
            raise EnvelopeError(
                EnvelopeCode.RATE_LIMITED,
                f"A reflection call may contain at most {CALL_REQUESTS} requests.",
            )
        if len(raw) > REQUEST_BYTES:
            raise EnvelopeError(
                EnvelopeCode.TOO_LARGE, f"A request may have at most {REQUEST_BYTES} bytes."
            )
        quota = await rates.limiter().take("documents", visitors)
        if not quota.allowed:
            raise EnvelopeError(
                EnvelopeCode.RATE_LIMITED,
                "Your address has requested too many documents.",
                retry_after=quota.retry_after,
            )
        try:
            request = reflection_pb2.ServerReflectionRequest.FromString(raw)
        except DecodeError as error:
            raise malformed("This is not a reflection request.") from error
        yield request


def _pool() -> DescriptorPool:
    """Return the descriptors that strangers may read."""
    pool = DescriptorPool()
    pool.AddSerializedFile(agent_pb2.DESCRIPTOR.serialized_pb)
    alpha = FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(alpha)
    pool.Add(alpha)
    # v1 differs only in the name of its package.
    text = text_format.MessageToString(alpha).replace("v1alpha", "v1")
    pool.Add(text_format.Parse(text, FileDescriptorProto()))
    return pool
