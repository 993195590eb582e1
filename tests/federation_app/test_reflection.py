"""Server reflection over gRPC: what strangers learn from it, and where it ends."""

from __future__ import annotations

import json
import queue
import socket
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import grpc
import h2.connection
import h2.events
import h2.settings
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from grpc_reflection.v1alpha.reflection_pb2 import (
    ExtensionRequest,
    ServerReflectionRequest,
    ServerReflectionResponse,
)

from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.rpc import reflection
from federation_app.rpc.calls import streams
from tests.client import wait_until
from tests.federation_app.peer import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.descriptor import ServiceDescriptor

    from tests.federation_app.peer import ForeignPeer

pytestmark = pytest.mark.django_db(transaction=True)
SECONDS = 60
AGENT = "uamp.v1.Agent"
VERSIONS = ("v1", "v1alpha")
LIST = ServerReflectionRequest(list_services="*").SerializeToString()


@pytest.fixture
def channel(rpc_place: str) -> Iterator[grpc.Channel]:
    """Return a channel to a gRPC server in the process of the running server."""
    with grpc.insecure_channel(rpc_place) as channel:
        yield channel
    wait_until(lambda: not streams.total and not reflection.reflections.total)


class ReflectionCall:
    """A call whose requests a test sends one by one, as bytes."""

    def __init__(
        self, channel: grpc.Channel, version: str = "v1", *, client: str = "203.0.113.1"
    ) -> None:
        method: Any = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            response_deserializer=ServerReflectionResponse.FromString,
        )
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.details = ""
        metadata = [("x-forwarded-for", client)]
        self._responses = method(iter(self._requests.get, None), timeout=SECONDS, metadata=metadata)

    def ask(self, request: bytes = LIST, **members: Any) -> Any:
        """Send a request, and return its response."""
        self.send(ServerReflectionRequest(**members).SerializeToString() if members else request)
        return next(self._responses)

    def send(self, request: bytes) -> None:
        """Send a request."""
        self._requests.put(request)

    def end(self) -> None:
        """Send no more, and read to the end."""
        self._requests.put(None)
        assert list(self._responses) == []

    def refusal(self) -> tuple[str, str | None]:
        """Return the status of a refused call, and the code of its error."""
        with pytest.raises(grpc.RpcError) as raised:
            for _ in self._responses:
                pass
        self._requests.put(None)
        error: Any = raised.value
        self.details = error.details()
        metadata = dict(error.trailing_metadata())
        return error.code().name, json.loads(metadata.get("uamp-error-bin", b"{}")).get("code")


def read_service(channel: grpc.Channel, version: str) -> ServiceDescriptor:
    """Return the service as a stranger knows it: by reflection alone, in an empty pool."""
    pool = DescriptorPool()
    if version == "v1alpha":
        return DescriptorPool(ProtoReflectionDescriptorDatabase(channel)).FindServiceByName(AGENT)
    call = ReflectionCall(channel, version)
    files = call.ask(file_containing_symbol=AGENT).file_descriptor_response
    call.end()
    for file in files.file_descriptor_proto:
        pool.Add(FileDescriptorProto.FromString(file))
    return pool.FindServiceByName(AGENT)


@pytest.mark.parametrize("version", VERSIONS)
def test_services_are_listed_and_each_can_be_described(channel: grpc.Channel, version: str) -> None:
    call = ReflectionCall(channel, version)
    names = [service.name for service in call.ask().list_services_response.service]
    assert names == [*(f"grpc.reflection.{v}.ServerReflection" for v in VERSIONS), AGENT]
    for name in names:
        response = call.ask(file_containing_symbol=name).file_descriptor_response
        (file,) = map(FileDescriptorProto.FromString, response.file_descriptor_proto)
        (service,) = file.service
        assert f"{file.package}.{service.name}" == name
        by_name = call.ask(file_by_filename=file.name).file_descriptor_response
        assert by_name.file_descriptor_proto == response.file_descriptor_proto
    call.end()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_made_by_reflection_alone_asks_and_reads_the_answer(
    channel: grpc.Channel, peer: ForeignPeer, version: str
) -> None:
    service = read_service(channel, version)
    methods: dict[str, Any] = {}
    classes: dict[str, tuple[Any, Any]] = {}
    for method in service.methods:
        sent, received = map(GetMessageClass, (method.input_type, method.output_type))
        kinds = {
            (False, False): channel.unary_unary,
            (True, True): channel.stream_stream,
        }
        make: Any = kinds[method.client_streaming, method.server_streaming]
        classes[method.name] = sent, received
        methods[method.name] = make(
            f"/{service.full_name}/{method.name}", sent.SerializeToString, received.FromString
        )
    ask = json.dumps(peer.envelope(content="hello there")).encode()

    record, _ = classes["Stream"]
    answers = methods["Stream"](iter([record(json=ask)]), timeout=SECONDS)
    deltas = [json.loads(answer.json) for answer in answers]
    envelope, _ = classes["Send"]
    receipt = methods["Send"](envelope(envelope=ask), timeout=SECONDS)

    assert deltas[-1]["type"] == "done"
    assert text_of(deltas) == "hello there"
    assert (receipt.repeated_envelope, receipt.delta_window) == (True, 64)


def test_a_request_for_what_is_not_served_fails_without_ending_the_call(
    channel: grpc.Channel,
) -> None:
    extension = ExtensionRequest(containing_type="uamp.v1.Record", extension_number=7)
    requests: list[tuple[dict[str, Any], str]] = [
        # The process has these, but they are not for strangers.
        ({"file_containing_symbol": "google.protobuf.FileDescriptorProto"}, "NOT_FOUND"),
        ({"file_by_filename": "google/protobuf/descriptor.proto"}, "NOT_FOUND"),
        ({"all_extension_numbers_of_type": "google.protobuf.MessageOptions"}, "NOT_FOUND"),
        ({"file_containing_extension": extension}, "NOT_FOUND"),
        ({"file_containing_symbol": "uamp.v1.Agent\0" + "x" * 1000}, "NOT_FOUND"),
        ({"host": "chat.example"}, "INVALID_ARGUMENT"),
    ]
    call = ReflectionCall(channel)
    for members, status in requests:
        error = call.ask(**members).error_response
        assert error.error_code == grpc.StatusCode[status].value[0], members
    assert len(call.ask().list_services_response.service) == 3
    call.end()


def test_an_invalid_request_ends_the_call(channel: grpc.Channel) -> None:
    endings = {
        b"\xff" * 10: ("INVALID_ARGUMENT", "4.00"),
        # A name that is not UTF-8.
        b"\x22\x02\xff\xff": ("INVALID_ARGUMENT", "4.00"),
        # A length without an end.
        b"\x22" + b"\x80" * 1000: ("INVALID_ARGUMENT", "4.00"),
        b"x" * (reflection.REQUEST_BYTES + 1): ("RESOURCE_EXHAUSTED", "4.13"),
        # grpcio refuses what is too large for any call.
        b"x" * 2 * ENVELOPE_BYTES: ("RESOURCE_EXHAUSTED", None),
    }
    for request, ending in endings.items():
        call = ReflectionCall(channel)
        call.send(request)
        assert call.refusal() == ending, request[:10]


def test_the_largest_request_is_answered(channel: grpc.Channel) -> None:
    name = "x" * (reflection.REQUEST_BYTES - 3)
    request = ServerReflectionRequest(file_containing_symbol=name).SerializeToString()
    assert len(request) == reflection.REQUEST_BYTES
    call = ReflectionCall(channel)
    assert call.ask(request).HasField("error_response")
    call.end()


def test_a_call_has_a_number_of_requests(channel: grpc.Channel) -> None:
    call = ReflectionCall(channel)
    for _ in range(reflection.CALL_REQUESTS):
        assert call.ask().HasField("list_services_response")
    call.send(LIST)
    assert call.refusal() == ("RESOURCE_EXHAUSTED", "4.29")


@pytest.mark.parametrize("requests", [0, 1])
def test_a_silent_call_ends(
    channel: grpc.Channel, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflection, "CALL_SECONDS", 0.5)
    call = ReflectionCall(channel)
    for _ in range(requests):
        call.ask()
    assert call.refusal() == ("DEADLINE_EXCEEDED", None)
    # The client's own limit has the same status.
    assert "reflection call" in call.details


def test_an_address_has_few_calls_open_and_a_process_has_a_total(
    channel: grpc.Channel, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UAMP_TRUSTED_PROXIES = ["127.0.0.1"]
    monkeypatch.setattr(reflection, "CALLS", reflection.CALLS_PER_ADDRESS + 1)
    # An IPv6 network counts as one address.
    calls = [
        ReflectionCall(channel, VERSIONS[number % 2], client=f"2001:db8::{number}")
        for number in range(reflection.CALLS_PER_ADDRESS)
    ]
    for call in calls:
        call.ask()
    assert ReflectionCall(channel, client="2001:db8::f").refusal() == ("UNAVAILABLE", "5.04")
    calls.append(ReflectionCall(channel, client="203.0.113.2"))
    calls[-1].ask()
    assert ReflectionCall(channel, client="203.0.113.3").refusal() == ("UNAVAILABLE", "5.04")
    calls.pop().end()
    wait_until(lambda: reflection.reflections.total == reflection.CALLS_PER_ADDRESS)
    calls.append(ReflectionCall(channel, client="203.0.113.3"))
    calls[-1].ask()
    for call in calls:
        call.end()


def test_calls_of_reflection_count_among_the_streams_of_an_address(
    channel: grpc.Channel, settings: Any
) -> None:
    settings.UAMP_CONNECTIONS_PER_ADDRESS = 2
    is_over = threading.Event()

    def silent() -> Iterator[bytes]:
        is_over.wait(SECONDS)
        yield from ()

    method: Any = channel.stream_stream(f"/{AGENT}/Stream")
    stream = method(silent(), timeout=SECONDS)
    wait_until(lambda: streams.total == 1)
    call = ReflectionCall(channel)
    call.ask()
    assert ReflectionCall(channel).refusal() == ("UNAVAILABLE", "5.04")
    with pytest.raises(grpc.RpcError) as raised:
        next(method(iter([]), timeout=SECONDS))
    error: Any = raised.value
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    is_over.set()
    assert list(stream) == []
    call.end()


def test_requests_count_as_documents_of_the_client(channel: grpc.Channel, settings: Any) -> None:
    settings.UAMP_TRUSTED_PROXIES = ["127.0.0.1"]
    settings.UAMP_DOCUMENTS_PER_MINUTE = 2
    call = ReflectionCall(channel)
    for _ in range(2):
        call.ask()
    call.send(LIST)
    assert call.refusal() == ("RESOURCE_EXHAUSTED", "4.29")
    other = ReflectionCall(channel, client="203.0.113.2")
    other.ask()
    other.end()


def test_a_server_without_a_name_has_no_reflection(channel: grpc.Channel, settings: Any) -> None:
    settings.UAMP_FEDERATION_HOST = ""
    assert ReflectionCall(channel).refusal() == ("NOT_FOUND", "4.04")


def test_a_client_that_reads_nothing_keeps_no_call_open(
    channel: grpc.Channel, rpc_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert channel is not None  # at the end nothing may be left of the calls
    monkeypatch.setattr(reflection, "CALL_SECONDS", 1.0)
    host, _, port = rpc_place.rpartition(":")
    connection = h2.connection.H2Connection()
    connection.initiate_connection()
    # The server may send no data of a call. Its responses exceed what it buffers.
    connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        ":authority": rpc_place,
        "te": "trailers",
        "content-type": "application/grpc",
    }
    symbol = reflection.REFLECTION_SERVICES[0]
    request = ServerReflectionRequest(file_containing_symbol=symbol).SerializeToString()
    with socket.create_connection((host, int(port)), SECONDS) as raw:
        for stream in (1, 3):
            connection.send_headers(stream, list(headers.items()))
            for _ in range(reflection.CALL_REQUESTS):
                connection.send_data(stream, struct.pack("!BI", 0, len(request)) + request)

        def has_open_calls(count: int) -> bool:
            """Acknowledge settings and pings, so that the connection stays."""
            raw.sendall(connection.data_to_send())
            raw.settimeout(0.05)
            with suppress(TimeoutError):
                data = raw.recv(65536)
                assert data
                for event in connection.receive_data(data):
                    assert not isinstance(event, h2.events.ConnectionTerminated)
            raw.settimeout(SECONDS)
            return reflection.reflections.total == count

        wait_until(lambda: has_open_calls(2))
        wait_until(lambda: has_open_calls(0))
        assert not streams.total
