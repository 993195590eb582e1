"""Envelopes that the relay passes on, once and unaltered, and those that it refuses."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from federation_app.models import Peer, ReceivedEnvelope
from federation_app.peers import registry
from sessions_app.models import Response
from tests.federation_app.peer import SERVER, ForeignPeer, add_peer, sse
from tests.federation_app.relay.member_server import (
    FRAMES,
    MEMBER,
    Answer,
    MemberServer,
    outcome,
    post,
    to_member,
)
from tests.threads import thread_pool

if TYPE_CHECKING:
    import httpx

pytestmark = pytest.mark.django_db(transaction=True)


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
        own_envelope = sender.envelope(intent, content, stream_id="str-1")
        assert outcome(post(http, own_envelope)) == (404, "4.04")


@pytest.mark.sampled(4)
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
    "to a peer that is not a member": (403, "4.03", {"to": ["did:web:other.example"]}),
    "to the sender itself": (403, "4.03", {"to": ["did:web:client.example"]}),
    "to an agent of the sender": (403, "4.03", {"to": ["did:web:client.example:agents:a"]}),
    "an hour old": (401, "4.01", {"ts": "2026-01-01T00:00:00Z"}),
    "with an unknown member": (400, "4.00", {"hops": 1}),
}


@pytest.mark.sampled(4)
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


@pytest.mark.sampled(2)
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


def test_an_envelope_is_passed_on_once_and_its_repeat_has_the_same_answer(
    http: httpx.Client, sender: ForeignPeer, member: MemberServer
) -> None:
    envelope = to_member(sender, stream_id="str-1")
    with thread_pool(8) as pool:
        answers = list(pool.map(lambda _: post(http, envelope), range(16)))
    assert {outcome(answer) for answer in answers} <= {(202, ""), (503, "5.04")}
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
    hub = http.get("/.well-known/agent-hub.json", headers={"Accept": "application/json"}).json()
    members = {
        manifest["did"]: (manifest["url"], manifest["sha256"]) for manifest in hub["manifests"]
    }
    url = "https://member.example/.well-known/agent-manifest.json"
    assert members[MEMBER] == (url, "a" * 64)
    # A peer whose keys an operator entered has no manifest.
    assert sender.did not in members
    assert hub["expires_at"] > hub["issued_at"]
