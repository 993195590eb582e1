"""Members that refuse, break off, send too much or cannot be reached."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from federation_app.exchange import relay
from federation_app.models import EnvelopeStream, Peer, ReceivedEnvelope
from tests.federation_app.peer import SERVER, ForeignPeer, sse
from tests.federation_app.relay.member_server import (
    FRAMES,
    MEMBER,
    Answer,
    MemberServer,
    outcome,
    post,
    refusal,
    to_member,
)

if TYPE_CHECKING:
    import httpx

pytestmark = pytest.mark.django_db(transaction=True)

ANSWERS: dict[str, tuple[Answer, int, str]] = {
    "unknown sender": (refusal("4.01", 401), 401, "4.01"),
    "no such agent": (refusal("4.04", 404), 404, "4.04"),
    "too large": (refusal("4.13", 413), 413, "4.13"),
    "another id": (refusal("4.09", 409), 409, "4.09"),
    "too many": (refusal("4.29", 429, retry_after=7), 429, "4.29"),
    "busy": (refusal("5.04", 503), 503, "5.04"),
    "a code that is none": (refusal("9.99", 400), 503, "5.04"),
    "no code": (Answer(404, {}, b"{}"), 503, "5.04"),
    "a list": (Answer(500, {}, b"[1]"), 503, "5.04"),
    "no JSON": (Answer(502, {}, b"<html>"), 503, "5.04"),
    "a success that is none": (Answer(200, {}, b"{}"), 503, "5.04"),
    "a redirect": (Answer(302, {"Location": "http://127.0.0.1:1/"}, b""), 503, "5.04"),
    "much": (Answer(500, {}, b"x" * 1_000_000), 503, "5.04"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("answer", sorted(ANSWERS))
def test_the_refusal_of_a_member_is_that_of_the_relay_and_leaves_nothing(
    answer: str, http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    member_answer, status, code = ANSWERS[answer]
    member.answers = lambda _path: member_answer
    envelope = to_member(sender)
    refused = post(http, envelope)
    assert outcome(refused) == (status, code)
    assert ("Retry-After" in refused.headers) is (code in {"4.29", "5.04"})
    assert not ReceivedEnvelope.objects.exists()
    assert not EnvelopeStream.objects.exists()
    # The same envelope again is passed on again.
    member.answers = lambda _path: Answer()
    assert post(http, envelope).status_code == 202
    assert [body for _, _, body in member.received] == [json.dumps(envelope).encode()] * 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("headers", "body", "location"),
    [
        ({}, b"", None),
        ({"Location": "/v1/stream/a b"}, b"{}", None),
        ({"Location": "https://evil.example/"}, b"[]", None),
        ({"Location": f"/v1/stream/{'x' * 129}"}, b"{}", None),
        ({"Location": "/v1/stream/own"}, b'{"delta_window": -1}', "/v1/stream/own"),
        ({"Location": "https://member.example/v1/stream/own"}, b"x", "/v1/stream/own"),
    ],
)
def test_receipts_of_other_forms(
    headers: dict[str, str],
    body: bytes,
    location: str | None,
    http: httpx.Client,
    sender: ForeignPeer,
    member: MemberServer,
) -> None:
    member.answers = lambda _path: Answer(202, headers, body)
    accepted = post(http, to_member(sender, delta_window=8))
    assert (accepted.status_code, accepted.headers.get("Location")) == (202, location)
    assert [row.window for row in EnvelopeStream.objects.all()] == [8] * (location is not None)


def test_a_member_that_cannot_be_reached_is_busy(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "POST_SECONDS", 0.2)
    until = threading.Event()
    member.answers = lambda _path: Answer(until=until)
    try:
        for address in (None, "http://127.0.0.1:1", "http://192.0.2.1", "ftp://member.example"):
            if address is not None:
                Peer.objects.filter(did=MEMBER).update(address=address)
            refused = post(http, to_member(sender))
            assert outcome(refused) == (503, "5.04")
            assert int(refused.headers["Retry-After"]) == relay.RETRY_SECONDS
            assert not ReceivedEnvelope.objects.exists()
    finally:
        until.set()


STREAMS: dict[str, tuple[Answer, int, bytes]] = {
    "cut between events": (Answer(200, {}, pieces=FRAMES[:1]), 200, FRAMES[0]),
    "cut within an event": (Answer(200, {}, pieces=[FRAMES[0], b"id: 1\nda"]), 200, FRAMES[0]),
    "in small pieces": (
        Answer(200, {}, pieces=[bytes([byte]) for byte in FRAMES[2]]), 200, FRAMES[2]
    ),
    "refused": (refusal("4.01", 401), 401, b""),
    "gone": (refusal("4.04", 404), 404, b""),
    "no stream": (Answer(500, {}, b"oops"), 503, b""),
    "busy": (refusal("5.04", 503), 503, b""),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("answer", sorted(STREAMS))
def test_the_stream_of_a_member_is_passed_on_as_far_as_it_goes(
    answer: str, http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    member_answer, status, expected = STREAMS[answer]
    post(http, to_member(sender, stream_id="str-1"))
    member.answers = lambda _path: member_answer
    bearer = sender.bearer(audience=[SERVER, MEMBER])
    with http.stream("GET", "/v1/stream/str-1", headers=bearer) as response:
        assert response.status_code == status
        if status == 200:
            assert b"".join(response.iter_bytes()) == expected


def test_a_stream_without_end_of_an_event_is_cut(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("federation_app.exchange.relayed_streams.FRAME_BYTES", 1000)
    post(http, to_member(sender, stream_id="str-1"))
    member.answers = lambda _path: Answer(200, {}, pieces=[FRAMES[0], b"data: " + b"x" * 10_000])
    bearer = sender.bearer(audience=[SERVER, MEMBER])
    with http.stream("GET", "/v1/stream/str-1", headers=bearer) as response:
        frames = list(sse(response))
    assert frames[-1][0] == "error"
    assert frames[-1][1]["code"] == "5.04"
