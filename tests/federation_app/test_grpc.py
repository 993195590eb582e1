"""Envelopes over gRPC, by a client whose code is generated from the proto."""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from federation_app.edges import websocket
from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.envelope.members.reading import envelope_of
from federation_app.envelope.signatures.signature import verify_signature
from federation_app.envelope.streams.framing import framed
from federation_app.models import EnvelopeStream
from federation_app.own_names import own_keys
from federation_app.rpc import agent_pb2, agent_pb2_grpc
from federation_app.rpc.calls import streams
from federation_app.rpc.server import EnvelopeServer
from federation_app.rpc.service import _RECORDS_WAITING, _RecordCall
from sessions_app.process import registry
from tests.client import wait_until
from tests.federation_app.local_certificate import certificate as certificate_in
from tests.federation_app.peer import ECHO, ForeignPeer, text_of
from tests.live_server import quick_agent
from tests.programs import PROGRAM_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.django_db(transaction=True)
SECONDS = 60


@pytest.fixture
def stub(rpc_place: str) -> Iterator[Any]:
    """Return a client of a gRPC server in the process of the running server."""
    with grpc.insecure_channel(rpc_place) as channel:
        yield agent_pb2_grpc.AgentStub(channel)


def record(value: Any) -> Any:
    """Return a record of a stream."""
    return agent_pb2.Record(json=json.dumps(value).encode())


def refused(call: Any) -> tuple[grpc.StatusCode, dict[str, Any]]:
    """Return the status of a refused call, and its error."""
    with pytest.raises(grpc.RpcError) as raised:
        call()
    error: Any = raised.value
    metadata = dict(error.trailing_metadata())
    return error.code(), json.loads(metadata.get("uamp-error-bin", b"{}"))


async def nothing() -> AsyncIterator[Any]:
    """Be a call that sends no record."""
    for never in list[bytes]():
        yield never


def forwarded(*addresses: str) -> list[tuple[str, str]]:
    """Return the metadata that a proxy sends for a client."""
    return [("x-forwarded-for", address) for address in addresses]


def test_an_ask_is_answered_after_the_client_has_sent_all(stub: Any, peer: ForeignPeer) -> None:
    ask = peer.envelope(content="hello there")
    answers = stub.Stream(iter([record(ask)]), timeout=SECONDS)
    deltas = [json.loads(message.json) for message in answers]
    assert [delta["delta_seq"] for delta in deltas] == list(range(len(deltas)))
    assert text_of(deltas) == "hello there"
    answer = envelope_of(deltas[-1]["payload"]["envelope"])
    verify_signature(answer.digests(), answer.sig, sender=ECHO, keys=own_keys(ECHO))


def test_a_stream_stops_at_its_window_and_resumes_in_another_call(
    stub: Any, peer: ForeignPeer
) -> None:
    quick_agent("talker", "echo", delay=0.02)
    text = " ".join(f"word{n}" for n in range(60))
    to = [f"{ECHO.rpartition(':')[0]}:talker"]
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    requests.put(record(peer.envelope(content=text, to=to, delta_window=2, stream_id="str-1")))
    answers = stub.Stream(iter(requests.get, None), timeout=SECONDS)
    first = [json.loads(next(answers).json) for _ in range(2)]
    acknowledged = {
        "delta_seq": 0,
        "stream_id": "str-1",
        "ts": "2026-01-02T03:04:05Z",
        "type": "progress",
        "payload": {"ack": 0},
    }
    requests.put(record(acknowledged))
    third = json.loads(next(answers).json)
    assert [delta["delta_seq"] for delta in (*first, third)] == [0, 1, 2]
    answers.cancel()
    requests.put(None)

    again: queue.SimpleQueue[Any] = queue.SimpleQueue()
    again.put(record(peer.envelope("subscribe", json.dumps({"after": 2}), stream_id="str-1")))
    deltas = []
    for answer in stub.Stream(iter(again.get, None), timeout=SECONDS):
        deltas.append(json.loads(answer.json))
        if deltas[-1]["type"] == "done":
            again.put(None)
            continue
        payload = {"ack": deltas[-1]["delta_seq"]}
        again.put(record({**acknowledged, "payload": payload}))
    assert [delta["delta_seq"] for delta in deltas] == list(range(3, 3 + len(deltas)))
    assert deltas[0]["type"] == "patch"
    assert text_of(deltas) == text


def test_send_has_a_receipt_and_refusals_are_statuses(stub: Any, peer: ForeignPeer) -> None:
    ask = peer.envelope(stream_id="str-2")

    def send(value: Any) -> Any:
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        return stub.Send(agent_pb2.EnvelopeRecord(envelope=raw), timeout=SECONDS)

    receipt = send(ask)
    assert (receipt.stream_id, receipt.delta_window, receipt.repeated_envelope) == (
        "str-2",
        64,
        False,
    )
    assert send(ask).repeated_envelope
    altered = {**peer.envelope(), "intent": "inform"}
    status, error = refused(lambda: send(altered))
    assert (status, error["code"]) == (grpc.StatusCode.UNAUTHENTICATED, "4.01")
    status, error = refused(lambda: send(b"{"))
    assert (status, error["code"]) == (grpc.StatusCode.INVALID_ARGUMENT, "4.00")
    status, _ = refused(lambda: send(b" " * (ENVELOPE_BYTES + 2000)))
    assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert EnvelopeStream.objects.count() == 1


def test_a_stranger_is_refused_in_the_stream_and_then_disconnected(
    stub: Any, peer: ForeignPeer
) -> None:
    altered = {**peer.envelope(), "to": ["did:web:other.example"]}
    answers = stub.Stream(iter([record(altered)] * 10), timeout=SECONDS)
    envelopes: list[Any] = []
    with pytest.raises(grpc.RpcError) as raised:
        envelopes.extend(json.loads(answer.json) for answer in answers)
    error: Any = raised.value
    codes = [json.loads(envelope["body"]["content"])["code"] for envelope in envelopes]
    assert codes == ["4.01"] * (websocket.MAX_REFUSALS + 1)
    assert error.code() in {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.INVALID_ARGUMENT}


@pytest.mark.parametrize("sends", ["nothing", "garbage"])
def test_a_stream_that_a_stranger_never_ends_is_ended(
    stub: Any, sends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "SILENT_SECONDS", 0.5)
    is_over = threading.Event()

    def never_ends() -> Iterator[Any]:
        while not is_over.is_set():
            if sends == "garbage":
                yield agent_pb2.Record(json=b"{")
            is_over.wait(0.01)

    answers = stub.Stream(never_ends(), timeout=SECONDS)
    with pytest.raises(grpc.RpcError) as raised:
        for _ in answers:
            pass
    is_over.set()
    error: Any = raised.value
    expected = {"nothing": "UNAUTHENTICATED", "garbage": "INVALID_ARGUMENT"}
    assert error.code().name == expected[sends]
    assert not EnvelopeStream.objects.exists()
    wait_until(lambda: not streams.total)


def test_the_calls_of_a_network_behind_a_proxy_count_together(stub: Any, settings: Any) -> None:
    settings.UAMP_CONNECTIONS_PER_ADDRESS = 2
    settings.UAMP_TRUSTED_PROXIES = ["127.0.0.1"]
    is_over = threading.Event()

    def silent() -> Iterator[Any]:
        is_over.wait(SECONDS)
        yield from ()

    def stream_of(address: str) -> Any:
        return stub.Stream(silent(), timeout=SECONDS, metadata=forwarded(address))

    calls = [stream_of("2001:db8::1")]
    wait_until(lambda: streams.total == 1)
    calls.append(stream_of("2001:db8::2"))
    wait_until(lambda: streams.total == 2)
    status, error = refused(lambda: next(stream_of("2001:db8::3")))
    assert (status, error["code"]) == (grpc.StatusCode.UNAVAILABLE, "5.04")
    calls.append(stream_of("2001:db8:0:1::1"))
    wait_until(lambda: streams.total == 3)
    is_over.set()
    for call in calls:
        assert list(call) == []
    wait_until(lambda: not streams.total)


@pytest.mark.parametrize(
    ("proxies", "statuses"),
    [
        (["127.0.0.1"], ["INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"]),
        (["10.0.0.1"], ["INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED"]),
    ],
)
def test_rubbish_counts_against_the_client_that_a_trusted_proxy_names(
    stub: Any, settings: Any, proxies: list[str], statuses: list[str]
) -> None:
    settings.UAMP_ENVELOPES_PER_MINUTE = 1
    settings.UAMP_TRUSTED_PROXIES = proxies
    rubbish = agent_pb2.EnvelopeRecord(envelope=b"{")

    def status_for(*addresses: str) -> str:
        metadata = forwarded(*addresses)
        status, _ = refused(lambda: stub.Send(rubbish, timeout=SECONDS, metadata=metadata))
        return status.name

    # What a client sends comes before what its proxy adds, in the same header or in another.
    clients = [["203.0.113.1"], ["203.0.113.2", "203.0.113.1"], ["203.0.113.1, 203.0.113.2"]]
    assert [status_for(*client) for client in clients] == statuses


def test_a_call_ends_for_a_client_that_reads_slowly(stub: Any) -> None:
    assert stub is not None  # the process of the server has begun
    (loop,) = registry._processes

    async def records() -> list[bytes]:
        call = _RecordCall(nothing(), "127.0.0.1")
        for number in range(_RECORDS_WAITING):
            await call._send({"type": "websocket.send", "bytes": framed(b"%d" % number)})
        reading = asyncio.create_task(call.read())
        await asyncio.sleep(0.1)
        batch = [envelope async for envelope in call.records()]
        await reading
        return batch

    ended = asyncio.wait_for(records(), SECONDS / 6)
    received = asyncio.run_coroutine_threadsafe(ended, loop).result(SECONDS)
    assert len(received) == _RECORDS_WAITING


def test_a_signed_answer_may_be_larger_than_an_envelope(stub: Any) -> None:
    assert stub is not None  # the process of the server has begun
    (loop,) = registry._processes
    # U+0001 256 Ki times, as JSON escapes it.
    large = b"\\u0001" * (256 * 1024)

    async def sent_record() -> bytes | None:
        call = _RecordCall(nothing(), "127.0.0.1")
        await call._send({"type": "websocket.send", "bytes": framed(large)})
        return await anext(call.records())

    assert asyncio.run_coroutine_threadsafe(sent_record(), loop).result(SECONDS) == large


def test_the_generated_code_is_that_of_the_proto(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    folder = root / "federation_app" / "rpc"
    run = subprocess.run(  # noqa: S603 our own interpreter
        [
            *(sys.executable, "-m", "grpc_tools.protoc", "-I", str(root)),
            *(f"--{kind}_out={tmp_path}" for kind in ("python", "pyi", "grpc_python")),
            str(folder / "agent.proto"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )
    assert run.returncode == 0, run.stderr
    generated_folder = tmp_path / "federation_app" / "rpc"
    for name in ("agent_pb2.py", "agent_pb2.pyi", "agent_pb2_grpc.py"):
        assert (generated_folder / name).read_text() == (folder / name).read_text(), (
            "run `make grpc`"
        )


def test_a_server_without_tls_listens_on_loopback_alone() -> None:
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415 the one test of it

    async def begin() -> None:
        EnvelopeServer("0.0.0.0:0")

    with pytest.raises(ImproperlyConfigured, match="envelopes are not sent without TLS"):
        asyncio.run(begin())


def test_a_server_may_demand_the_certificates_of_clients(settings: Any, tmp_path: Path) -> None:
    certificate, key = certificate_in(tmp_path)
    settings.UAMP_GRPC_CERTIFICATE, settings.UAMP_GRPC_KEY = str(certificate), str(key)
    settings.UAMP_GRPC_CLIENT_CA = str(certificate)
    pem, private = certificate.read_bytes(), key.read_bytes()
    codes: list[grpc.StatusCode] = []

    def call(port: int) -> None:
        for pair in ((private, pem), (None, None)):
            credentials = grpc.ssl_channel_credentials(pem, *pair)
            with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
                stub = agent_pb2_grpc.AgentStub(channel)
                with pytest.raises(grpc.RpcError) as refused:
                    stub.Send(agent_pb2.EnvelopeRecord(envelope=b"{"), timeout=30)
            error: Any = refused.value
            codes.append(error.code())

    async def serve() -> None:
        server = EnvelopeServer("127.0.0.1:0")
        await server.start()
        try:
            await asyncio.to_thread(call, server.port)
        finally:
            await server.stop(0)

    asyncio.run(serve())
    assert codes[0] is not grpc.StatusCode.UNAVAILABLE
    assert codes[1] is grpc.StatusCode.UNAVAILABLE


def test_a_server_with_tls_refuses_tls_1_2(settings: Any, tmp_path: Path) -> None:
    certificate, key = certificate_in(tmp_path)
    settings.UAMP_GRPC_CERTIFICATE, settings.UAMP_GRPC_KEY = str(certificate), str(key)
    protocols: dict[str, str | None] = {}

    def shake_hands(port: int) -> None:
        for version in (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2):
            context = ssl.create_default_context(cafile=str(certificate))
            context.minimum_version = context.maximum_version = version
            context.set_alpn_protocols(["h2"])
            try:
                with (
                    socket.create_connection(("127.0.0.1", port), 30) as raw,
                    context.wrap_socket(raw, server_hostname="localhost") as secured,
                ):
                    protocols[version.name] = secured.selected_alpn_protocol()
            except (ssl.SSLError, ConnectionError):
                protocols[version.name] = None

    async def serve() -> None:
        server = EnvelopeServer("127.0.0.1:0")
        await server.start()
        try:
            await asyncio.to_thread(shake_hands, server.port)
        finally:
            await server.stop(0)

    asyncio.run(serve())
    assert protocols == {"TLSv1_3": "h2", "TLSv1_2": None}
