"""The relay between members of this server's hub: bytes, bounds, circles, bad members."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.utils import timezone

from federation_app.exchange import relay
from federation_app.models import EnvelopeStream, Peer, ReceivedEnvelope
from federation_app.peers import registry
from sessions_app.models import Response
from tests.federation_app.peer import SERVER, ForeignPeer, add_peer, sse
from tests.http_server import LocalServer, QuietHandler, serving
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)
MEMBER = "did:web:member.example"
UAMP_JSON = {"Content-Type": "application/uamp+json"}
_DELTA = b'data: {"delta_seq":%d,"stream_id":"str-1","ts":"2026-07-10T13:37:05Z","type":"%b"}'
FRAMES = [
    b"id: 0\n%b\n\n" % (_DELTA % (0, b"progress")),
    b": keep-alive\n\n",
    b"id: 1\r\n%b\r\n\r\n" % (_DELTA % (1, b"done")),
]


@dataclass
class Answer:
    """How a member answers a request."""

    status: int = 202
    headers: dict[str, str] = field(default_factory=lambda: {"Location": "/v1/stream/str-1"})
    body: bytes = b'{"stream_id":"str-1","delta_window":8,"repeated":false}'
    pieces: list[bytes] | None = None
    # Does not answer before this is set.
    until: threading.Event | None = None


def refusal(code: str, status: int, **members: Any) -> Answer:
    """Return a refusal with a problem document."""
    body = {"title": "Refused", "status": status, "code": code, "detail": "no", **members}
    return Answer(status, {"Content-Type": "application/problem+json"}, json.dumps(body).encode())


class MemberServer:
    """The server of a member, which keeps what it receives."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: Callable[[str], Answer] = lambda _path: Answer()
        self.arrived = threading.Event()

    @contextmanager
    def running(self) -> Iterator[str]:
        """Run it, and yield its address."""
        member = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:  # noqa: N802 the handler's name
                self.do_POST()

            def do_POST(self) -> None:  # noqa: N802 the handler's name
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                member.received.append((self.path, headers, body))
                member.arrived.set()
                answer = member.answers(self.path)
                if answer.until is not None:
                    answer.until.wait(30)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for piece in answer.pieces or [answer.body]:
                    self.wfile.write(piece)
                    self.wfile.flush()

        with serving(LocalServer(Handler)) as server:
            yield server.origin


@pytest.fixture
def member(federated: ServerAddress, settings: Any) -> Iterator[MemberServer]:
    """Run the server of a member to which envelopes are passed on."""
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    found = MemberServer()
    with found.running() as origin:
        row = add_peer("member.example").row
        Peer.objects.filter(pk=row.pk).update(address=origin, is_relayed=True)
        yield found


@pytest.fixture
def sender(member: MemberServer, peer: ForeignPeer) -> ForeignPeer:
    """Return a member whose envelopes are passed on."""
    Peer.objects.filter(pk=peer.row.pk).update(is_relayed=True)
    return peer


@pytest.fixture
def http(federated: ServerAddress) -> Iterator[httpx.Client]:
    """Give a client of the server."""
    with httpx.Client(base_url=federated.http, timeout=60, trust_env=False) as client:
        yield client


def post(http: httpx.Client, envelope: Any, **headers: str) -> httpx.Response:
    """Post an envelope, or its bytes."""
    content = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
    return http.post("/v1/messages", content=content, headers={**UAMP_JSON, **headers})


def to_member(sender: ForeignPeer, intent: str = "ask", **members: Any) -> Any:
    """Return an envelope for the member."""
    return sender.envelope(intent, **{"to": [MEMBER], **members})


def outcome(response: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of a response."""
    return response.status_code, response.json().get("code", "")


def test_the_bytes_of_an_envelope_are_passed_on_and_its_stream_comes_back(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    # Not as this server would write it: other spaces, escapes and order.
    value = to_member(sender, content="h\u00e9llo", stream_id="str-1", delta_window=8)
    raw = json.dumps(dict(reversed(value.items())), indent=1).encode()
    accepted = post(http, raw)
    assert (accepted.status_code, accepted.headers["Location"]) == (202, "/v1/stream/str-1")
    ((path, headers, body),) = member.received
    assert (path, body) == ("/v1/messages", raw)
    assert headers["content-type"] == "application/uamp+json"
    assert headers["uamp-relayed-by"] == SERVER
    assert not Response.objects.exists()

    member.answers = lambda _path: Answer(200, {"Content-Type": "text/event-stream"}, pieces=FRAMES)
    bearer = sender.bearer(audience=[SERVER, MEMBER])
    with http.stream("GET", "/v1/stream/str-1", headers=bearer) as response:
        assert b"".join(response.iter_bytes()) == b"".join(FRAMES)
    path, headers, _ = member.received[-1]
    assert (path, headers["authorization"]) == ("/v1/stream/str-1", bearer["Authorization"])
    assert "last-event-id" not in headers
    with http.stream("GET", "/v1/stream/str-1", headers={**bearer, "Last-Event-ID": "0"}) as again:
        assert [number for number, _ in sse(again)] == ["0", "1"]
    assert member.received[-1][1]["last-event-id"] == "0"
    # Acknowledgements and cancellations go the same way.
    member.answers = lambda _path: Answer()
    for intent, content in (("progress", '{"ack": 1}'), ("cancel", "")):
        about = to_member(sender, intent, content=content, stream_id="str-1")
        assert post(http, about).status_code == 202
        assert json.loads(member.received[-1][2]) == about
    # This server does not answer that stream itself.
    for intent, content in (("progress", '{"ack": 1}'), ("cancel", "")):
        own = sender.envelope(intent, content, stream_id="str-1")
        assert outcome(post(http, own)) == (404, "4.04")


@pytest.mark.parametrize(
    "intent",
    [
        "ask",
        "inform",
        "propose",
        "confirm",
        "deny",
        "progress",
        "cancel",
        "subscribe",
        "notify",
        "error",
    ],
)
def test_every_intent_is_passed_on(
    intent: str, http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    envelope = to_member(sender, intent, cap_token="a.b.c", to=[f"{MEMBER}:agents:sage"])
    assert post(http, envelope).status_code == 202
    assert [json.loads(body) for _, _, body in member.received] == [envelope]


WRONG: dict[str, tuple[int, str, dict[str, Any]]] = {
    "to two that are none": (
        403,
        "4.03",
        {"to": ["did:web:none.example", "did:web:other.example"]},
    ),
    "to no member": (403, "4.03", {"to": ["did:web:none.example"]}),
    "to a name that is none": (403, "4.03", {"to": ["mailto:a@b.example"]}),
    "to a peer that is no member": (403, "4.03", {"to": ["did:web:other.example"]}),
    "to the sender itself": (403, "4.03", {"to": ["did:web:client.example"]}),
    "to an agent of the sender": (403, "4.03", {"to": ["did:web:client.example:agents:a"]}),
    "an hour old": (401, "4.01", {"ts": "2026-01-01T00:00:00Z"}),
    "with an unknown member": (400, "4.00", {"hops": 1}),
}


@pytest.mark.parametrize("wrong", [*sorted(WRONG), "altered"])
def test_what_may_not_be_passed_on_is_refused(
    wrong: str, http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    add_peer("other.example")
    status, code, members = WRONG.get(wrong, (401, "4.01", {}))
    envelope = to_member(sender, **members)
    if wrong == "altered":
        envelope["body"]["content"] = "other"
    assert outcome(post(http, envelope)) == (status, code)
    assert member.received == []
    assert not ReceivedEnvelope.objects.exists()


@pytest.mark.parametrize("off", ["sender", "receiver", "suspended", "revoked", "hub"])
def test_nothing_is_passed_on_unless_it_is_switched_on_for_both(
    off: str, http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    receiver = Peer.objects.get(did=MEMBER)
    accepted = to_member(sender, stream_id="str-1")
    assert post(http, accepted).status_code == 202
    if off == "sender":
        Peer.objects.filter(pk=sender.row.pk).update(is_relayed=False)
    elif off == "receiver":
        Peer.objects.filter(pk=receiver.pk).update(is_relayed=False)
    elif off == "suspended":
        registry.suspend(receiver)
    elif off == "revoked":
        registry.revoke(receiver)
    else:
        hub = add_peer("hub.example").row
        registry.suspend(hub)
        Peer.objects.filter(pk=receiver.pk).update(anchor=hub)
    before = len(member.received)
    assert outcome(post(http, to_member(sender))) == (403, "4.03")
    bearer = sender.bearer(audience=[SERVER, MEMBER])
    assert outcome(http.get("/v1/stream/str-1", headers=bearer)) == (403, "4.03")
    assert len(member.received) == before


def test_the_children_of_a_hub_are_members_if_it_is_one(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    hub = add_peer("hub.example").row
    Peer.objects.filter(did=MEMBER).update(anchor=hub, is_relayed=False)
    later = timezone.now() + timedelta(hours=1)
    Peer.objects.filter(pk=hub.pk).update(hub_expires_at=later)
    assert outcome(post(http, to_member(sender))) == (403, "4.03")
    Peer.objects.filter(pk=hub.pk).update(is_relayed=True)
    assert post(http, to_member(sender)).status_code == 202


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


@pytest.mark.parametrize("answer", sorted(ANSWERS))
def test_the_refusal_of_a_member_is_that_of_the_relay_and_leaves_nothing(
    answer: str, http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    given, status, code = ANSWERS[answer]
    member.answers = lambda _path: given
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


def test_an_envelope_is_passed_on_once_and_its_repeat_has_the_same_answer(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    envelope = to_member(sender, stream_id="str-1")
    with thread_pool(8) as pool:
        answers = list(pool.map(lambda _: post(http, envelope), range(16)))
    assert {outcome(one) for one in answers} <= {(202, ""), (503, "5.04")}
    again = post(http, envelope)
    assert (again.status_code, again.json()["repeated"]) == (202, True)
    assert again.headers["Location"] == "/v1/stream/str-1"
    assert len(member.received) == 1
    # The same id with another content, for another receiver, and for this server.
    for change in ({"content": "other"}, {"to": [f"{MEMBER}:a"]}, {"to": [SERVER]}):
        other = to_member(sender, **{"id": envelope["id"], **change})
        assert outcome(post(http, other)) == (409, "4.09"), change
    # So is a stream that another one answers.
    assert outcome(post(http, sender.envelope(stream_id="str-1"))) == (409, "4.09")
    post(http, sender.envelope(stream_id="str-2"))
    assert outcome(post(http, to_member(sender, stream_id="str-2"))) == (409, "4.09")
    assert len(member.received) == 1


def test_an_envelope_whose_process_died_is_passed_on_by_its_repeat(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    envelope = to_member(sender)
    post(http, envelope)
    ReceivedEnvelope.objects.update(relayed_at=None)
    busy = post(http, envelope)
    assert outcome(busy) == (503, "5.04")
    assert len(member.received) == 1
    ReceivedEnvelope.objects.update(created_at=timezone.now() - timedelta(minutes=2))
    assert post(http, envelope).status_code == 202
    assert len(member.received) == 2


RING = [f"did:web:hub{number}.example" for number in range(relay.RELAYS_MOST)]
CIRCLES: dict[str, tuple[int, str]] = {
    "this server": (403, SERVER),
    "this server among others": (403, f"{RING[0]}, {SERVER}"),
    "too many": (403, ", ".join(RING)),
    "no name": (401, "hub.example"),
    "much": (403, ", ".join(RING * 100)),
    "one": (202, RING[0]),
    "two": (202, ",".join(RING[:2])),
}


@pytest.mark.parametrize("which", sorted(CIRCLES))
def test_an_envelope_passes_a_bounded_number_of_servers(
    which: str, http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    status, names = CIRCLES[which]
    answer = post(http, to_member(sender), **{relay.RELAYED_BY: names})
    assert answer.status_code == status
    assert ReceivedEnvelope.objects.exists() is (status == 202)
    passed = [headers["uamp-relayed-by"].split(", ") for _, headers, _ in member.received]
    expected = [name.strip() for name in names.split(",")]
    assert passed == ([[*expected, SERVER]] if status == 202 else [])


@pytest.mark.parametrize("strips", [False, True])
def test_a_circle_ends(
    strips: bool,  # noqa: FBT001 a parameter of the test
    federated: ServerAddress,
    http: httpx.Client,
    sender: ForeignPeer,
    member: MemberServer,
) -> None:
    back: list[httpx.Response] = []

    def send_back(_path: str) -> Answer:
        _, headers, body = member.received[-1]
        named = {} if strips else {relay.RELAYED_BY: headers["uamp-relayed-by"]}
        back.append(post(http, body, **named))
        code = back[-1].json()["code"]
        return refusal(code, back[-1].status_code)

    member.answers = send_back
    expected = (503, "5.04") if strips else (403, "4.03")
    assert outcome(post(http, to_member(sender))) == expected
    assert [outcome(one) for one in back] == [expected]
    assert len(member.received) == 1
    # And one whose member's address is this server.
    Peer.objects.filter(did=MEMBER).update(address=federated.http)
    assert outcome(post(http, to_member(sender))) == (403, "4.03")
    assert not ReceivedEnvelope.objects.exists()


def test_a_sender_and_a_member_have_their_limits(
    http: httpx.Client,
    sender: ForeignPeer,
    member: MemberServer,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Peer.objects.filter(pk=sender.row.pk).update(max_body_kb=1, rate_lph=2)
    assert outcome(post(http, to_member(sender, content="x" * 1025))) == (413, "4.13")
    codes = [outcome(post(http, to_member(sender)))[1] for _ in range(3)]
    assert codes == ["", "", "4.29"]
    Peer.objects.filter(pk=sender.row.pk).update(max_body_kb=None, rate_lph=None)
    until = threading.Event()
    member.answers = lambda _path: Answer(until=until)
    member.arrived.clear()
    monkeypatch.setattr(relay, "AT_ONCE", 1)
    with thread_pool(1) as pool:
        first = pool.submit(post, http, to_member(sender))
        assert member.arrived.wait(30)
        assert outcome(post(http, to_member(sender))) == (503, "5.04")
        until.set()
        assert first.result(30).status_code == 202
    assert not relay._under_way


STREAMS: dict[str, tuple[Answer, int, bytes]] = {
    "cut between events": (Answer(200, {}, pieces=FRAMES[:1]), 200, FRAMES[0]),
    "cut within an event": (Answer(200, {}, pieces=[FRAMES[0], b"id: 1\nda"]), 200, FRAMES[0]),
    "in small pieces": (
        Answer(200, {}, pieces=[bytes([one]) for one in FRAMES[2]]), 200, FRAMES[2]
    ),
    "refused": (refusal("4.01", 401), 401, b""),
    "gone": (refusal("4.04", 404), 404, b""),
    "no stream": (Answer(500, {}, b"oops"), 503, b""),
    "busy": (refusal("5.04", 503), 503, b""),
}  # fmt: skip


@pytest.mark.parametrize("answer", sorted(STREAMS))
def test_the_stream_of_a_member_is_passed_on_as_far_as_it_goes(
    answer: str, http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    given, status, expected = STREAMS[answer]
    post(http, to_member(sender, stream_id="str-1"))
    member.answers = lambda _path: given
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


def test_a_stream_is_read_by_its_sender_with_a_token_for_this_server(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    post(http, to_member(sender, stream_id="str-1"))
    other = add_peer("other.example")
    before = len(member.received)
    for status, headers in (
        (401, {}),
        (401, sender.bearer(audience=MEMBER)),
        (404, other.bearer(audience=[SERVER, MEMBER])),
        (404, other.bearer()),
    ):
        assert http.get("/v1/stream/str-1", headers=headers).status_code == status
    assert len(member.received) == before


def test_the_hub_of_this_server_lists_its_members(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    Peer.objects.filter(did=MEMBER).update(manifest_sha256="a" * 64)
    shown = http.get("/.well-known/agent-hub.json", headers={"Accept": "application/json"}).json()
    listed = {one["did"]: (one["url"], one["sha256"]) for one in shown["manifests"]}
    url = "https://member.example/.well-known/agent-manifest.json"
    assert listed[MEMBER] == (url, "a" * 64)
    # A peer whose keys an operator entered has no manifest.
    assert sender.did not in listed
    assert shown["expires_at"] > shown["issued_at"]
