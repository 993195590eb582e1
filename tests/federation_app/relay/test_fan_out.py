"""One envelope for several members of the hub: each receives its bytes once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from federation_app.models import EnvelopeStream, Peer, ReceivedEnvelope
from federation_app.rpc import agent_pb2, agent_pb2_grpc
from tests.federation_app.peer import SERVER, ForeignPeer, Records, add_peer
from tests.federation_app.relay.member_server import (
    FRAMES,
    MEMBER,
    Answer,
    MemberServer,
    outcome,
    post,
    refusal,
)
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)
SECOND, THIRD = "did:web:second.example", "did:web:third.example"
STRANGER = "did:web:stranger.example"


def joins(server: MemberServer, did: str, origin: str) -> None:
    """Make the server of a name a member of the hub."""
    row = add_peer(did.removeprefix("did:web:")).row
    Peer.objects.filter(pk=row.pk).update(address=origin, is_relayed=True)


@pytest.fixture
def second(member: MemberServer) -> Iterator[MemberServer]:
    """Run the server of a second member."""
    server = MemberServer()
    with server.running() as origin:
        joins(server, SECOND, origin)
        yield server


@pytest.fixture
def third(second: MemberServer) -> None:
    """Let a third member be away."""
    joins(second, THIRD, "http://127.0.0.1:1")


def to_all(sender: ForeignPeer, *more: str, intent: str = "inform", **members: Any) -> Any:
    """Return an envelope to the members."""
    return sender.envelope(intent, to=[MEMBER, SECOND, *more], **members)


def posted(server: MemberServer) -> list[bytes]:
    """Return the bodies of the envelopes that a member has received."""
    return [body for path, _, body in server.received if path == "/v1/messages"]


def test_each_member_gets_the_bytes_once_and_a_repeat_reaches_those_that_failed(
    http: httpx.Client,
    sender: ForeignPeer,
    member: MemberServer,
    second: MemberServer,
    third: None,
) -> None:
    # Two names of the first member, and one that is not a member.
    ask = to_all(sender, f"{MEMBER}:agents:sage", THIRD, STRANGER)
    raw = json.dumps(dict(reversed(ask.items())), indent=1).encode()
    second.answers = lambda _path: refusal("4.13", 413)
    answer = post(http, raw)
    assert answer.status_code == 202
    assert "Location" not in answer.headers
    codes = {
        tuple(receiver["to"]): receiver.get("code", "") for receiver in answer.json()["receivers"]
    }
    assert codes == {
        (MEMBER, f"{MEMBER}:agents:sage"): "",
        (SECOND,): "4.13",
        (THIRD,): "5.04",
        (STRANGER,): "4.03",
    }
    assert (posted(member), posted(second)) == ([raw], [raw])
    assert member.received[0][1]["uamp-relayed-by"] == SERVER

    second.answers = lambda _path: Answer()
    again = post(http, raw)
    assert again.status_code == 202
    repeated = {
        receiver["to"][0]: receiver.get("repeated") for receiver in again.json()["receivers"]
    }
    assert repeated == {MEMBER: True, SECOND: False, THIRD: None, STRANGER: None}
    assert (posted(member), posted(second)) == ([raw], [raw, raw])
    # Another content under the id is refused by those that have accepted it.
    other = {**ask, "ts": "2099-01-01T00:00:00Z"}
    assert outcome(post(http, other))[1] == "4.01"
    reused = to_all(sender, id=ask["id"], content="other")
    assert outcome(post(http, reused)) == (409, "4.09")
    assert (posted(member), posted(second)) == ([raw], [raw, raw])


def test_an_envelope_that_all_refuse_leaves_nothing(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer, second: MemberServer
) -> None:
    member.answers = second.answers = lambda _path: refusal("4.13", 413)
    assert outcome(post(http, to_all(sender))) == (413, "4.13")
    second.answers = lambda _path: refusal("5.04", 503, retry_after=7)
    busy = post(http, to_all(sender))
    assert (*outcome(busy), busy.headers["Retry-After"]) == (503, "5.04", "7")
    assert not ReceivedEnvelope.objects.exists()


def test_the_same_envelope_at_once_reaches_each_member_once(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer, second: MemberServer
) -> None:
    raw = json.dumps(to_all(sender)).encode()
    with thread_pool(4) as pool:
        answers = list(pool.map(lambda _: post(http, raw).status_code, range(4)))
    assert 202 in answers
    assert set(answers) <= {202, 503}
    assert (posted(member), posted(second)) == ([raw], [raw])


def test_the_answers_of_several_members_are_read_apart(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer, second: MemberServer
) -> None:
    # Both members call their streams by the same name, which the sender has chosen.
    accepted = post(http, to_all(sender, intent="ask", stream_id="str-1")).json()["receivers"]
    streams = {receiver["to"][0]: receiver["stream_id"] for receiver in accepted}
    assert len(set(streams.values())) == 2
    for did, server in ((MEMBER, member), (SECOND, second)):
        server.answers = lambda _path: Answer(
            200, {"Content-Type": "text/event-stream"}, pieces=FRAMES
        )
        bearer = sender.bearer(audience=[SERVER, did])
        with http.stream("GET", f"/v1/stream/{streams[did]}", headers=bearer) as response:
            assert b"".join(response.iter_bytes()) == b"".join(FRAMES)
        assert server.received[-1][0] == "/v1/stream/str-1"
        # What is about one of them goes to that one alone.
        server.answers = lambda _path: Answer()
        about = sender.envelope("cancel", "", to=[did], stream_id="str-1")
        assert post(http, about).status_code == 202
        assert json.loads(server.received[-1][2]) == about
    assert EnvelopeStream.objects.count() == 2


def test_on_a_socket_the_failures_come_as_signed_errors(
    federated: ServerAddress,
    sender: ForeignPeer,
    member: MemberServer,
    second: MemberServer,
    third: None,
) -> None:
    envelope = to_all(sender, THIRD)
    with Records(federated.ws) as records:
        records.send(envelope)
        error = records.receive()
    assert (error["intent"], error["reply_to"]) == ("error", envelope["id"])
    assert json.loads(error["body"]["content"])["code"] == "5.04"
    assert (len(posted(member)), len(posted(second))) == (1, 1)


def test_the_receipt_of_grpc_has_the_outcome_at_each_member(
    rpc_place: str,
    http: httpx.Client,
    sender: ForeignPeer,
    member: MemberServer,
    second: MemberServer,
    third: None,
) -> None:
    raw = json.dumps(to_all(sender, THIRD, intent="ask", stream_id="str-1")).encode()
    with grpc.insecure_channel(rpc_place) as channel:
        stub = agent_pb2_grpc.AgentStub(channel)
        receipt = stub.Send(agent_pb2.EnvelopeRecord(envelope=raw), timeout=60)
    receivers = [json.loads(receiver) for receiver in receipt.receivers]
    assert [(receiver["to"], receiver.get("code", "")) for receiver in receivers] == [
        ([MEMBER], ""),
        ([SECOND], ""),
        ([THIRD], "5.04"),
    ]
    streams = [receiver["stream_id"] for receiver in receivers[:2]]
    assert set(streams) == set(EnvelopeStream.objects.values_list("stream_id", flat=True))
    # The same as over HTTP.
    assert [receiver["to"] for receiver in post(http, raw).json()["receivers"]] == [
        receiver["to"] for receiver in receivers
    ]


def test_an_envelope_counts_for_each_member(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer, second: MemberServer
) -> None:
    envelope = to_all(sender, content="x" * 250)
    Peer.objects.filter(pk=sender.row.pk).update(kb_per_hour=2)
    assert outcome(post(http, to_all(sender, content="x" * 1024))) == (429, "4.29")
    assert post(http, envelope).status_code == 202
    assert ReceivedEnvelope.objects.filter(peer=sender.row).count() == 2
    assert outcome(post(http, to_all(sender))) == (429, "4.29")
    assert (len(posted(member)), len(posted(second))) == (1, 1)
