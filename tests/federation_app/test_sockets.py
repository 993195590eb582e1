"""The sockets of peers: who may keep them, and what they cost."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from federation_app.edges import websocket
from federation_app.envelope.streams.framing import PREFIX, framed
from federation_app.exchange import receiver, windowed
from federation_app.exchange.streams import DeltaStream
from federation_app.models import EnvelopeStream
from federation_app.peers import registry
from sessions_app.process import registry as processes
from tests.client import wait_until
from tests.federation_app.peer import (
    SERVER,
    WAIT_SECONDS,
    ForeignPeer,
    Records,
    add_peer,
    text_of,
)
from tests.federation_app.test_websocket import ENDLESS, LONG, delta, error_of
from tests.live_server import quick_agent

if TYPE_CHECKING:
    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_socket_of_strangers_and_of_garbage_is_closed(
    federated: ServerAddress, peer: ForeignPeer
) -> None:
    stranger = add_peer("stranger.example")
    registry.revoke(stranger.row)
    with Records(federated.ws) as records:
        for _ in range(6):
            records.send(stranger.envelope())
        for _ in range(6):
            assert error_of(records.receive())["code"] == "4.01"
        with pytest.raises(ConnectionClosed) as closed:
            records.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4401
    for garbage, code in ((b"\0\0\0\5{}", 1007), (PREFIX.pack(2**31), 1009)):
        with Records(federated.ws) as records:
            records.socket.send(garbage)
            error_of(records.receive())
            with pytest.raises(ConnectionClosed) as closed:
                records.receive()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == code


def test_the_sockets_of_a_network_count_together(federated: ServerAddress, settings: Any) -> None:
    settings.UAMP_CONNECTIONS_PER_ADDRESS = 2
    settings.UAMP_TRUSTED_PROXIES = ["127.0.0.1"]

    def sockets_of(address: str) -> Records:
        return Records(federated.ws, headers={"X-Forwarded-For": address})

    with sockets_of("2001:db8::1"), sockets_of("2001:db8::2"):
        with pytest.raises(InvalidStatus):
            sockets_of("2001:db8::3").__enter__()
        with sockets_of("2001:db8:0:1::1"):
            pass
    wait_until(lambda: not websocket._sockets)
    with sockets_of("2001:db8::3"):
        pass


def test_a_revoked_peer_is_sent_nothing_more(federated: ServerAddress, peer: ForeignPeer) -> None:
    quick_agent("talker", "echo", delay=0.1)
    with Records(federated.ws) as records:
        records.send(peer.envelope(content=ENDLESS, to=[f"{SERVER}:agents:talker"]))
        records.receive()
        registry.revoke(peer.row)
        record = records.receive()
        types = []
        while "delta_seq" in record:
            types.append(record["type"])
            if types[-1] == "error":
                # The revocation stopped the answer before the stream looked at its peer.
                break
            record = records.receive()
        else:
            assert error_of(record)["code"] == "4.01"
        assert set(types[:-1]) <= {"chunk"}
        assert set(types[-1:]) <= {"chunk", "error"}
        records.send(peer.envelope())
        assert error_of(records.receive())["code"] == "4.01"


def test_an_ended_stream_leaves_its_text_and_can_be_repeated(
    federated: ServerAddress, peer: ForeignPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[weakref.ref[DeltaStream]] = []

    class Recorded(DeltaStream):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            opened.append(weakref.ref(self))

    monkeypatch.setattr(receiver, "DeltaStream", Recorded)
    with Records(federated.ws) as records:
        records.send(peer.envelope(content="hello there", stream_id="str-1"))
        last = records.until("done")[-1]["delta_seq"]

        def is_freed() -> bool:
            gc.collect()
            return opened[0]() is None

        wait_until(is_freed)
        # A late acknowledgement changes nothing; a missing delta is sent again.
        records.send(delta("str-1", "progress", ack=last))
        records.send(delta("str-1", "error", code="4.09", expected=1))
        again = records.until("done")
    assert again[0]["delta_seq"] == 1
    assert text_of(again) == "hello there"


def test_each_record_of_a_message_counts(
    federated: ServerAddress, peer: ForeignPeer, settings: Any
) -> None:
    settings.UAMP_EVENTS_BURST, settings.UAMP_EVENTS_PER_MINUTE = 10, 600
    with Records(federated.ws) as records:
        records.send(peer.envelope())
        records.until("done")
        ack = framed(json.dumps(delta("none", "progress", ack=0)).encode())
        records.socket.send(ack * 64)
        with pytest.raises(TimeoutError):
            records.receive(1)
        assert error_of(records.receive())["code"] == "4.04"


def test_a_missing_delta_counts_as_an_envelope(
    federated: ServerAddress, peer: ForeignPeer, settings: Any
) -> None:
    settings.UAMP_ENVELOPES_PER_MINUTE = 2
    missing = delta("str-1", "error", code="4.09", expected=0)
    with Records(federated.ws) as records:
        records.send(peer.envelope(stream_id="str-1"))
        records.until("done")
        records.send(missing)
        records.until("done")
        records.send(missing)
        assert error_of(records.receive())["code"] == "4.29"


def test_a_socket_that_closes_before_it_is_accepted_counts_no_longer(
    federated: ServerAddress, web: Any
) -> None:
    assert web.get("/healthz").status_code < 500  # the process has begun
    (loop,) = processes._processes

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(_message: object) -> None:
        raise OSError("the client is gone")

    scope = {"type": "websocket", "path": "/uamp/1/ws", "headers": [], "client": ("192.0.2.1", 1)}
    serving = websocket.application(scope, receive, send)
    with pytest.raises(OSError, match="gone"):
        asyncio.run_coroutine_threadsafe(serving, loop).result(WAIT_SECONDS)
    assert not websocket._sockets


def test_a_left_stream_is_closed(federated: ServerAddress, peer: ForeignPeer) -> None:
    quick_agent("talker", "echo", delay=0.3)
    with Records(federated.ws) as records:
        records.send(peer.envelope(content=LONG, to=[f"{SERVER}:agents:talker"], stream_id="str-1"))
        records.receive()
        stream = EnvelopeStream.objects.get()
        assert windowed.open_streams(stream.pk)
    wait_until(lambda: not windowed.open_streams(stream.pk))


def test_a_stream_belongs_to_its_peer(federated: ServerAddress, peer: ForeignPeer) -> None:
    other = add_peer("other.example")
    with Records(federated.ws) as records:
        records.send(peer.envelope(stream_id="str-1"))
        records.until("done")
        records.send(other.envelope("subscribe", "", stream_id="str-1"))
        assert error_of(records.receive())["code"] == "4.04"
        records.send(other.envelope(content="mine", stream_id="str-1"))
        assert error_of(records.receive())["code"] == "4.09"
    with Records(federated.ws) as records:
        records.send(other.envelope("subscribe", "", stream_id="str-1"))
        assert "mine" in text_of(records.until("done"))
