"""Envelopes over a WebSocket of the `websockets` library."""

from __future__ import annotations

import base64
import gzip
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from federation_app.envelope.members.reading import envelope_of
from federation_app.envelope.signatures.signature import verify_signature
from federation_app.exchange import receiver, windowed
from federation_app.models import EnvelopeStream, Peer, ReceivedEnvelope
from federation_app.own_names import own_keys
from federation_app.peers import registry
from sessions_app.models import Response
from tests.client import wait_until
from tests.federation_app.peer import (
    ECHO,
    SERVER,
    ForeignPeer,
    Records,
    add_peer,
    text_of,
)
from tests.live_server import counted_rows, quick_agent

if TYPE_CHECKING:
    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)
LONG = " ".join(f"word{n}" for n in range(60))
# An answer of minutes, which the test ends.
ENDLESS = " ".join(f"word{n}" for n in range(3000))


def delta(stream_id: str, type_: str, **payload: Any) -> dict[str, Any]:
    """Return a delta of a reader."""
    ts = "2026-01-02T03:04:05Z"
    return {"delta_seq": 0, "stream_id": stream_id, "ts": ts, "type": type_, "payload": payload}


def rows() -> dict[str, int]:
    """Count the rows that a refusal could have left."""
    envelope_rows = {m.__name__: m.objects.count() for m in (EnvelopeStream, ReceivedEnvelope)}
    return {**counted_rows(), **envelope_rows}


def error_of(record: Any) -> dict[str, Any]:
    """Return the content of a signed error envelope of the server."""
    envelope = envelope_of(record)
    assert envelope.intent == "error"
    verify_signature(envelope.digests(), envelope.sig, sender=SERVER, keys=own_keys(SERVER))
    content: dict[str, Any] = json.loads(envelope.body.content)
    return content


def test_an_ask_is_answered_and_the_answer_is_signed(
    federated: ServerAddress, peer: ForeignPeer
) -> None:
    ask = peer.envelope(content="hello there")
    with Records(federated.ws) as records:
        records.send(ask)
        deltas = records.until("done", "error")

    assert [record["delta_seq"] for record in deltas] == list(range(len(deltas)))
    assert "hello there" in text_of(deltas)
    answer = envelope_of(deltas[-1]["payload"]["envelope"])
    assert answer.body.content == text_of(deltas)
    assert answer.context[0].hash == f"sha256:{envelope_of(ask).sha256}"
    verify_signature(answer.digests(), answer.sig, sender=ECHO, keys=own_keys(ECHO))


def test_the_server_stops_at_the_window_and_resumes_where_the_reader_is(
    federated: ServerAddress, peer: ForeignPeer
) -> None:
    quick_agent("talker", "echo", delay=0.02)
    ask = peer.envelope(
        content=LONG, to=[f"{SERVER}:agents:talker"], delta_window=2, stream_id="str-1"
    )
    with Records(federated.ws) as records:
        records.send(ask)
        first = [records.receive(), records.receive()]
        with pytest.raises(TimeoutError):
            records.receive(1.5)
        records.send(delta("str-1", "progress", ack=0))
        third = records.receive()
        assert [record["delta_seq"] for record in (*first, third)] == [0, 1, 2]
        # What was said meanwhile is in one chunk.
        assert len(third["payload"]["text"]) > len(first[1]["payload"]["text"])
        records.send(delta("str-1", "progress", ack=99))
        assert error_of(records.receive())["code"] == "4.00"
        # The second was lost: the server goes on with its number, and the whole text.
        records.send(delta("str-1", "error", code="4.09", expected=1))
        again = records.receive()
        assert (again["delta_seq"], again["type"]) == (1, "patch")
        assert again["payload"]["text"].startswith(text_of([*first, third]))
    # Another socket, which knows deltas 0 to 2.
    with Records(federated.ws) as records:
        records.send(peer.envelope("subscribe", json.dumps({"after": 2}), stream_id="str-1"))
        deltas = [records.receive()]
        while deltas[-1]["type"] not in {"done", "error"}:
            records.send(delta("str-1", "progress", ack=deltas[-1]["delta_seq"]))
            deltas.append(records.receive())

    assert [record["delta_seq"] for record in deltas] == list(range(3, 3 + len(deltas)))
    assert deltas[0]["type"] == "patch"
    assert text_of(deltas) == LONG


def test_the_same_envelope_is_answered_once(federated: ServerAddress, peer: ForeignPeer) -> None:
    ask = peer.envelope()
    with Records(federated.ws) as records:
        records.send(ask)
        first = records.until("done")
    before = rows()
    with Records(federated.ws) as records:
        records.send(ask)
        again = records.until("done")
        assert text_of(again) == text_of(first)
        # The same id with another content, signed well.
        records.send(peer.envelope(content="something else", id=ask["id"]))
        assert error_of(records.receive()) == {
            "code": "4.09",
            "detail": "id_conflict",
            "message": "You used this id before for something else.",
        }
        # Another spelling of the same id.
        records.send(peer.envelope(content="x", id=ask["id"].removeprefix("urn:uuid:").upper()))
        assert error_of(records.receive())["code"] == "4.09"

    assert rows() == before


def test_a_reply_continues_the_conversation(federated: ServerAddress, peer: ForeignPeer) -> None:
    first = peer.envelope(content="one")
    with Records(federated.ws) as records:
        records.send(first)
        records.until("done")
        hashed = f"sha256:{envelope_of(first).sha256}"
        records.send(
            peer.envelope(
                content="two",
                reply_to=first["id"],
                context=[{"id": first["id"], "hash": hashed}],
            )
        )
        records.until("done")
        records.send(
            peer.envelope(
                context=[{"id": first["id"], "hash": f"sha256:{'0' * 64}"}],
            )
        )
        assert error_of(records.receive())["detail"] == "context"

    assert len(set(EnvelopeStream.objects.values_list("session_id", flat=True))) == 1


def test_a_reply_to_another_agent_is_refused(federated: ServerAddress, peer: ForeignPeer) -> None:
    quick_agent("talker", "echo")
    first = peer.envelope(content="one")
    with Records(federated.ws) as records:
        records.send(first)
        records.until("done")
        before = rows()
        other = [f"{SERVER}:agents:talker"]
        records.send(peer.envelope(content="two", reply_to=first["id"], to=other))
        refused = error_of(records.receive())
    assert (refused["code"], refused["detail"]) == ("4.09", "reply_to")
    assert rows() == before


def test_an_ask_is_cancelled(federated: ServerAddress, peer: ForeignPeer) -> None:
    quick_agent("talker", "echo", delay=0.2)
    ask = peer.envelope(content=LONG, to=[f"{SERVER}:agents:talker"])
    with Records(federated.ws) as records:
        records.send(ask)
        records.receive()
        records.send(peer.envelope("cancel", "", reply_to=ask["id"]))
        assert records.until("cancel", "done", "error")[-1]["type"] == "cancel"
        # After the end it changes nothing (envelope §10).
        records.send(peer.envelope("cancel", "", reply_to=ask["id"]))
        records.send(peer.envelope(content="still here"))
        assert records.until("done")[-1]["type"] == "done"


def test_a_stream_without_acknowledgement_ends_and_can_be_resumed(
    federated: ServerAddress, peer: ForeignPeer, settings: Any
) -> None:
    settings.UAMP_ENVELOPE_STALL_SECONDS = 1
    quick_agent("talker", "echo", delay=0.005)
    ask = peer.envelope(
        content=LONG, to=[f"{SERVER}:agents:talker"], delta_window=1, stream_id="str-1"
    )
    with Records(federated.ws) as records:
        records.send(ask)
        records.receive()
        error = error_of(records.receive())
        assert (error["code"], error["detail"]) == ("5.04", "window")
    settings.UAMP_ENVELOPE_STALL_SECONDS = 30
    with Records(federated.ws) as records:
        records.send(peer.envelope("subscribe", json.dumps({"after": 0}), stream_id="str-1"))
        record = records.receive()
        assert (record["delta_seq"], record["type"]) == (1, "patch")


# 9 MB of zeros in 9 KB.
BOMB = {
    "type": "text/plain",
    "content": base64.b64encode(gzip.compress(bytes(9_000_000))).decode(),
    "encoding": "base64",
    "compression": "gzip",
}


def bad_envelopes(peer: ForeignPeer, stranger: ForeignPeer) -> list[tuple[str, Any]]:
    """Return envelopes that are refused, with the codes of their refusals."""
    good = peer.envelope()
    late = ForeignPeer(peer.did, peer.key, peer.row)
    from datetime import timedelta  # noqa: PLC0415 beside its only use

    late.skew = timedelta(seconds=-400)
    forged = {**good, "id": f"urn:uuid:{uuid.uuid4()}"}
    return [
        ("4.00", {**good, "delta_window": 0}),
        ("4.00", peer.envelope(delta_window=2**31)),
        ("4.00", peer.envelope(stream_id="a/b")),
        ("4.01", forged),
        ("4.01", {**good, "body": {"type": "text/plain", "content": "other"}}),
        ("4.01", stranger.envelope()),
        ("4.01", late.envelope()),
        ("4.01", peer.envelope(cap_token=peer.bearer()["Authorization"].split()[1])),
        ("4.03", peer.envelope(to=["did:web:other.example"])),
        ("4.04", peer.envelope(to=[f"{SERVER}:agents:unknown"])),
        ("4.04", peer.envelope("cancel", "", stream_id="unknown")),
        ("4.04", peer.envelope(reply_to=f"urn:uuid:{uuid.uuid4()}")),
        ("4.13", peer.envelope(body=BOMB)),
        ("4.15", peer.envelope("propose")),
        ("4.15", peer.envelope(body={"type": "image/png", "content": "x"})),
        ("4.15", peer.envelope(body={"type": "text/plain", "content": "x", "compression": "br"})),
    ]


def test_a_refused_envelope_stores_and_runs_nothing(
    federated: ServerAddress, peer: ForeignPeer
) -> None:
    stranger = add_peer("stranger.example")
    registry.revoke(stranger.row)
    with Records(federated.ws) as records:
        records.send(peer.envelope())
        records.until("done")
        before = rows()
        for code, bad in bad_envelopes(peer, stranger):
            records.send(bad)
            refused = records.receive()
            assert error_of(refused)["code"] == code, bad
            assert refused["to"] == [bad["from"]]
        after = rows()

    assert after == before


def refusal_in(records: Records) -> dict[str, Any]:
    """Return the content of the next error envelope, past any deltas."""
    record = records.receive()
    while "delta_seq" in record:
        record = records.receive()
    return error_of(record)


def test_a_refused_envelope_about_a_stream_leaves_no_row(
    federated: ServerAddress, peer: ForeignPeer
) -> None:
    quick_agent("talker", "echo", delay=0.2)
    with Records(federated.ws) as records:
        records.send(peer.envelope(content=LONG, to=[f"{SERVER}:agents:talker"], stream_id="str-1"))
        records.receive()
        records.send(peer.envelope("progress", json.dumps({"ack": 10**6}), stream_id="str-1"))
        assert refusal_in(records)["code"] == "4.00"
        EnvelopeStream.objects.update(response_id="resp_none")
        records.send(peer.envelope("cancel", "", stream_id="str-1"))
        assert refusal_in(records)["code"] == "4.04"
    assert ReceivedEnvelope.objects.get().intent == "ask"


def test_a_reader_has_no_delta_that_cannot_have_been_sent(
    federated: ServerAddress, peer: ForeignPeer
) -> None:
    with Records(federated.ws) as records:
        records.send(peer.envelope(stream_id="str-1"))
        records.until("done")
    wait_until(lambda: not windowed.open_streams(EnvelopeStream.objects.get().pk))
    before = EnvelopeStream.objects.get().acknowledged
    last = 2**53 - 1
    with Records(federated.ws) as records:
        for intent, place in (("progress", {"ack": last}), ("subscribe", {"after": last})):
            records.send(peer.envelope(intent, json.dumps(place), stream_id="str-1"))
            assert refusal_in(records)["code"] == "4.00"
    assert EnvelopeStream.objects.get().acknowledged == before
    assert ReceivedEnvelope.objects.count() == 1


def test_a_peer_reads_as_many_streams_as_it_may(
    federated: ServerAddress, peer: ForeignPeer
) -> None:
    Peer.objects.filter(pk=peer.row.pk).update(max_streams=1)
    quick_agent("talker", "echo", delay=0.2)
    to = [f"{SERVER}:agents:talker"]
    with Records(federated.ws) as records:
        records.send(peer.envelope(content=LONG, to=to, stream_id="str-1"))
        records.receive()
        refused = peer.envelope(content="x", stream_id="str-2")
        records.send(refused)
        record = records.receive()
        while "delta_seq" in record:
            assert record["stream_id"] == "str-1"
            record = records.receive()
        assert error_of(record)["code"] == "5.04"
        assert record["reply_to"] == refused["id"]
    # Nothing is run for the refused question.
    assert Response.objects.count() == 1
    assert not EnvelopeStream.objects.filter(stream_id="str-2").exists()


def test_a_stream_that_finds_no_room_after_its_question_was_accepted_names_itself(
    federated: ServerAddress, peer: ForeignPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    Peer.objects.filter(pk=peer.row.pk).update(max_streams=1)
    # Another socket of the peer takes the last place meanwhile.
    monkeypatch.setattr(receiver, "check_room", lambda *_, **__: None)
    quick_agent("talker", "echo", delay=0.2)
    to = [f"{SERVER}:agents:talker"]
    with Records(federated.ws) as first, Records(federated.ws) as second:
        first.send(peer.envelope(content=LONG, to=to, stream_id="str-1"))
        first.receive()
        second.send(peer.envelope(content="x", stream_id="str-2"))
        record = second.receive()
    assert error_of(record)["code"] == "5.04"
    assert record["stream_id"] == "str-2"
    assert "reply_to" not in record
    assert Response.objects.count() == 2


def test_another_receiver_of_an_envelope_is_sent_no_answer(
    federated: ServerAddress, peer: ForeignPeer
) -> None:
    """The envelope is sent again by a receiver that is not ours, on a socket of its own."""
    ask = peer.envelope(content="for two", to=[ECHO, "did:web:other.example"], stream_id="str-1")
    with Records(federated.ws) as records:
        records.send(ask)
        records.send(peer.envelope("subscribe", "", stream_id="str-1"))
        assert "for two" in text_of(records.until("done"))
    with Records(federated.ws) as records:
        records.send(ask)
        receivers = [ECHO, "did:web:other.example"]
        records.send(peer.envelope("subscribe", "", stream_id="str-1", to=receivers))
        with pytest.raises(TimeoutError):
            records.receive(1.5)
