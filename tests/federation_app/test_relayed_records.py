"""Sockets whose streams another member of the hub answers: bytes, breaks, bad members, circles."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from federation_app.edges import relayed_records
from federation_app.envelope.streams.framing import PREFIX, framed
from federation_app.exchange.relay import RELAYED_BY
from federation_app.models import EnvelopeStream, Peer, ReceivedEnvelope
from federation_app.rpc import agent_pb2
from federation_app.rpc.agent_pb2_grpc import AgentStub
from sessions_app.models import Response
from tests.client import wait_until
from tests.federation_app.foreign_server import SAGE, Call, ForeignServer, foreign_server
from tests.federation_app.peer import SERVER, ForeignPeer, Records
from tests.federation_app.test_websocket import delta, error_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)
WAIT_SECONDS = 30


@pytest.fixture
def sage(federated: ServerAddress, settings: Any) -> Iterator[ForeignServer]:
    """Run the server of a member with the agent `sage`."""
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    with foreign_server() as server:
        Peer.objects.update(is_relayed=True, address=server.url)
        yield server


@pytest.fixture
def sender(sage: ForeignServer, peer: ForeignPeer) -> ForeignPeer:
    """Return a member whose envelopes are passed on."""
    Peer.objects.filter(pk=peer.row.pk).update(is_relayed=True)
    return peer


def ask_sage(sender: ForeignPeer, **members: Any) -> Any:
    """Return a question for `sage`."""
    return sender.envelope(**{"to": [SAGE], "stream_id": "str-1", "delta_window": 2, **members})


def is_empty() -> bool:
    """Return whether nothing of an envelope is stored or under way."""
    rows = ReceivedEnvelope.objects.exists() or EnvelopeStream.objects.exists()
    return not rows and not relayed_records._open


def answer(call: Call) -> None:
    """Answer a question with three deltas in a window of two."""
    ask = call.receive()
    call.delta(ask["stream_id"], 0, "progress", pct=10)
    call.delta(ask["stream_id"], 1, "chunk", text="one", offset=0)
    call.receive()
    call.delta(ask["stream_id"], 2, "done", envelope=call.server.signed(ask, "one"))
    call.socket.recv()


def test_records_are_passed_on_and_back_unaltered(
    federated: ServerAddress, sage: ForeignServer, sender: ForeignPeer
) -> None:
    raw: list[Any] = []
    names: list[str] = []

    def keep(call: Call) -> None:
        assert call.socket.request is not None
        names.append(call.socket.request.headers[RELAYED_BY])
        raw.append(call.socket.recv())
        call.socket.send(
            framed(
                b'{"ts":"2026-07-10T13:37:05Z", "type":"progress",'
                b' "stream_id":"str-1", "delta_seq":0}'
            )
        )
        raw.append(call.socket.recv())
        call.delta("str-1", 1, "done")
        call.socket.recv()

    sage.calls = [keep]
    ask = json.dumps(ask_sage(sender, content="h\u00e9llo"), indent=1).encode()
    ack = json.dumps(delta("str-1", "progress", ack=0), indent=1).encode()
    with Records(federated.ws) as records:
        records.socket.send(framed(ask))
        assert records.socket.recv(WAIT_SECONDS) == framed(
            b'{"ts":"2026-07-10T13:37:05Z", "type":"progress", "stream_id":"str-1", "delta_seq":0}'
        )
        records.socket.send(framed(ack))
        assert records.receive()["type"] == "done"
    assert (raw, names) == ([framed(ask), framed(ack)], [SERVER])
    assert not Response.objects.exists()
    wait_until(lambda: not relayed_records._open)


def test_a_stream_over_grpc_ends_after_the_client_has_sent_all(
    rpc_place: str, sage: ForeignServer, sender: ForeignPeer
) -> None:
    sage.calls = [answer]
    records = [ask_sage(sender), delta("str-1", "progress", ack=1)]

    def requests() -> Iterator[Any]:
        for record in records:
            yield agent_pb2.Record(json=json.dumps(record).encode())

    with grpc.insecure_channel(rpc_place) as channel:
        answers = [
            json.loads(message.json)
            for message in AgentStub(channel).Stream(requests(), timeout=60)
        ]
    assert [record["type"] for record in answers] == ["progress", "chunk", "done"]


def test_a_member_writes_into_no_stream_but_its_own(
    federated: ServerAddress, sage: ForeignServer, sender: ForeignPeer
) -> None:
    def forge(call: Call) -> None:
        call.receive()
        call.delta("str-own", 1000, "patch", text="forged")
        call.delta("str-other", 0, "done")
        call.delta("str-1", 0, "done")
        call.socket.recv()

    sage.calls = [forge]
    with Records(federated.ws) as records:
        records.send(sender.envelope(stream_id="str-own"))
        deltas = records.until("done")
        records.send(ask_sage(sender))
        assert records.receive()["stream_id"] == "str-1"
        # Neither can a stream of this server be that of a member, nor the other way round.
        records.send(ask_sage(sender, stream_id="str-own"))
        assert error_of(records.receive())["code"] == "4.09"
        records.send(sender.envelope(stream_id="str-1"))
        assert error_of(records.receive())["code"] == "4.09"
    assert {record["stream_id"] for record in deltas} == {"str-own"}


def test_a_line_that_breaks_closes_the_socket_and_the_question_is_asked_again(
    federated: ServerAddress, sage: ForeignServer, sender: ForeignPeer
) -> None:
    def leave(call: Call) -> None:
        ask = call.receive()
        call.delta(ask["stream_id"], 0, "progress", pct=10)

    sage.calls = [leave, answer]
    ask = ask_sage(sender)
    with Records(federated.ws) as records:
        records.send(ask)
        assert records.receive()["delta_seq"] == 0
        with pytest.raises(ConnectionClosed) as closed:
            records.receive()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1013
    with Records(federated.ws) as records:
        records.send(ask)
        assert [records.receive()["type"] for _ in range(2)] == ["progress", "chunk"]
        records.send(delta("str-1", "progress", ack=1))
        assert records.receive()["type"] == "done"
    assert [envelope["id"] for envelope in sage.received_of("ask")] == [ask["id"]] * 2
    assert ReceivedEnvelope.objects.count() == EnvelopeStream.objects.count() == 1


def test_the_refusal_of_a_member_is_passed_back_and_leaves_nothing(
    federated: ServerAddress, sage: ForeignServer, sender: ForeignPeer
) -> None:
    refusals: list[Any] = []

    def refuse(call: Call) -> None:
        ask = call.receive()
        content = json.dumps({"code": "4.04", "message": "no"})
        body = {"type": "application/vnd.uamp.error+json", "content": content}
        refusals.append(call.server.signed(ask, "", intent="error", body=body))
        call.send(refusals[0])
        call.socket.recv()

    sage.calls = [refuse]
    with Records(federated.ws) as records:
        records.send(ask_sage(sender))
        assert records.receive() == refusals[0]
        assert is_empty()


BAD_RECORDS: dict[str, bytes | str] = {
    "no JSON": framed(b"{"),
    "no record": b"",
    "a length without a record": PREFIX.pack(100),
    "a great length": PREFIX.pack(2**31),
    "text": "hello",
    "NaN": framed(b'{"stream_id":"str-1","delta_seq":NaN}'),
    "doubled members": framed(b'{"stream_id":"str-1","stream_id":"str-2","type":"done"}'),
    "no number": framed(b'{"stream_id":"str-1","ts":"2026-07-10T13:37:05Z","type":"done"}'),
    "an unknown type": framed(
        b'{"stream_id":"str-1","delta_seq":0,"ts":"2026-07-10T13:37:05Z","type":"end"}'
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bad", sorted(BAD_RECORDS))
def test_an_invalid_record_ends_the_connection_to_the_member(
    bad: str, federated: ServerAddress, sage: ForeignServer, sender: ForeignPeer
) -> None:
    def send(call: Call) -> None:
        call.receive()
        call.socket.send(BAD_RECORDS[bad])
        call.socket.recv()

    sage.calls = [send]
    with Records(federated.ws) as records:
        records.send(ask_sage(sender))
        with pytest.raises(ConnectionClosed) as closed:
            records.receive()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1013
    wait_until(lambda: not relayed_records._open)


@pytest.mark.parametrize("strips", [False, True])
def test_a_circle_of_sockets_ends(
    strips: bool,  # noqa: FBT001 a parameter of the test
    federated: ServerAddress,
    sage: ForeignServer,
    sender: ForeignPeer,
) -> None:
    ended = threading.Event()
    outcomes: list[Any] = []

    def send_back(call: Call) -> None:
        ask = call.receive()
        relay_headers = {} if strips else {RELAYED_BY: SERVER}
        try:
            with Records(federated.ws, headers=relay_headers) as records:
                records.send(ask)
                outcomes.append(error_of(records.receive())["code"])
        except InvalidStatus:
            outcomes.append("refused")
        ended.set()

    sage.calls = [send_back]
    with Records(federated.ws) as records:
        records.send(ask_sage(sender))
        assert ended.wait(WAIT_SECONDS)
    assert outcomes == (["5.04"] if strips else ["refused"])
    assert len(sage.received) == 1


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://192.0.2.1"])
def test_a_member_that_cannot_be_reached_is_busy_on_a_socket(
    address: str, federated: ServerAddress, sage: ForeignServer, sender: ForeignPeer
) -> None:
    Peer.objects.filter(did="did:web:worker.example").update(address=address)
    with Records(federated.ws) as records:
        records.send(ask_sage(sender))
        error = error_of(records.receive())
        assert (error["code"], error["retry_after"]) == ("5.04", 5)
        assert is_empty()
        # The socket is still good.
        records.send(sender.envelope(stream_id="str-own"))
        assert records.until("done")


def test_a_peer_that_is_a_member_no_more_is_cut_off(
    federated: ServerAddress,
    sage: ForeignServer,
    sender: ForeignPeer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relayed_records, "TRUST_SECONDS", 0)
    removed = threading.Event()

    def go_on(call: Call) -> None:
        call.receive()
        call.delta("str-1", 0, "progress", pct=1)
        assert removed.wait(WAIT_SECONDS)
        call.delta("str-1", 1, "done")
        call.socket.recv()

    sage.calls = [go_on]
    with Records(federated.ws) as records:
        records.send(ask_sage(sender))
        assert records.receive()["delta_seq"] == 0
        Peer.objects.filter(pk=sender.row.pk).update(is_relayed=False)
        removed.set()
        with pytest.raises(ConnectionClosed):
            records.receive()
