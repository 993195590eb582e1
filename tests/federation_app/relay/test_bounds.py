"""The bounds of the relay: servers, circles, senders and members."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from federation_app.exchange import relay
from federation_app.models import Peer, ReceivedEnvelope
from tests.federation_app.peer import SERVER, ForeignPeer
from tests.federation_app.relay.member_server import (
    MEMBER,
    Answer,
    MemberServer,
    outcome,
    post,
    refusal,
    to_member,
)
from tests.threads import thread_pool

if TYPE_CHECKING:
    import httpx

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)

RING = [f"did:web:hub{number}.example" for number in range(relay.MAX_RELAYS)]
CIRCLES: dict[str, tuple[int, str]] = {
    "this server": (403, SERVER),
    "this server among others": (403, f"{RING[0]}, {SERVER}"),
    "too many": (403, ", ".join(RING)),
    "no name": (401, "hub.example"),
    "much": (403, ", ".join(RING * 100)),
    "one": (202, RING[0]),
    "two": (202, ",".join(RING[:2])),
}


@pytest.mark.sampled(3)
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
        relay_headers = {} if strips else {relay.RELAYED_BY: headers["uamp-relayed-by"]}
        back.append(post(http, body, **relay_headers))
        code = back[-1].json()["code"]
        return refusal(code, back[-1].status_code)

    member.answers = send_back
    expected = (503, "5.04") if strips else (403, "4.03")
    assert outcome(post(http, to_member(sender))) == expected
    assert [outcome(response) for response in back] == [expected]
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
    assert not relay._relaying
