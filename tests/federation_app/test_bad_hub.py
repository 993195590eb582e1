"""Envelopes that arrive through a hub which reorders, delays, doubles, drops or alters them."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from federation_app.exchange.relay import RELAYED_BY
from federation_app.models import EnvelopeStream, ReceivedEnvelope
from sessions_app.models import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import ServerAddress
    from tests.federation_app.peer import ForeignPeer

pytestmark = pytest.mark.django_db(transaction=True)
HEADERS = {"Content-Type": "application/uamp+json", RELAYED_BY: "did:web:hub.example"}


def at(**ago: int) -> str:
    """Return the time so long ago, as envelopes have it."""
    return (datetime.now(UTC) - timedelta(**ago)).isoformat(timespec="milliseconds")[:-6] + "Z"


@dataclass
class Sent:
    """A question of a peer and what it sends after it, as they were signed."""

    ask: bytes
    follow_up: bytes
    cancel: bytes
    acknowledge: bytes
    late: bytes
    early: bytes

    @classmethod
    def by(cls, peer: ForeignPeer) -> Sent:
        """Sign them."""

        def signed(intent: str = "ask", content: str = "hello", **members: Any) -> bytes:
            return json.dumps(peer.envelope(intent, content, **members)).encode()

        first = f"urn:uuid:{uuid.uuid4()}"
        return cls(
            ask=signed(id=first, stream_id="str-1"),
            follow_up=signed(reply_to=first, stream_id="str-2"),
            cancel=signed("cancel", "", stream_id="str-1"),
            acknowledge=signed("progress", '{"ack": 0}', stream_id="str-1"),
            late=signed(ts=at(minutes=6)),
            early=signed(ts=at(minutes=-6)),
        )


def altered(raw: bytes, **members: Any) -> bytes:
    """Return an envelope of which a hub has changed members."""
    return json.dumps({**json.loads(raw), **members}).encode()


# What arrives, in this order; the codes of the answers; and how many envelopes and responses are
# stored in the end.
HUBS: dict[str, tuple[Callable[[Sent], list[bytes]], list[str], tuple[int, int]]] = {
    "an honest one": (lambda s: [s.ask, s.follow_up], ["", ""], (2, 2)),
    "doubles": (lambda s: [s.ask] * 3, ["", "", ""], (1, 1)),
    "doubles later": (lambda s: [s.ask, s.follow_up, s.ask], ["", "", ""], (2, 2)),
    "reorders a reply": (lambda s: [s.follow_up, s.ask, s.follow_up], ["4.04", "", ""], (2, 2)),
    "reorders a cancel": (lambda s: [s.cancel, s.ask], ["4.04", ""], (1, 1)),
    "reorders an ack": (lambda s: [s.acknowledge, s.ask], ["4.04", ""], (1, 1)),
    "drops the question": (lambda s: [s.follow_up, s.cancel], ["4.04", "4.04"], (0, 0)),
    "drops the first answer": (lambda s: [s.ask, s.ask, s.follow_up], ["", "", ""], (2, 2)),
    "delays": (lambda s: [s.late, s.ask], ["4.01", ""], (1, 1)),
    "is ahead of the time": (lambda s: [s.early], ["4.01"], (0, 0)),
    "alters the content": (
        lambda s: [altered(s.ask, body={"type": "text/plain", "content": "pay"}), s.ask],
        ["4.01", ""],
        (1, 1),
    ),
    "alters the receiver": (
        lambda s: [altered(s.ask, to=["did:web:chat.example"])], ["4.01"], (0, 0)
    ),
    "alters the time": (lambda s: [altered(s.late, ts=at(seconds=0))], ["4.01"], (0, 0)),
    "counts hops in the envelope": (
        lambda s: [altered(s.ask, ext={"uamp-hops": 2})], ["4.01"], (0, 0)
    ),
    "signs in its own name": (
        lambda s: [altered(s.ask, **{"from": "did:web:hub.example"})], ["4.01"], (0, 0)
    ),
    "cuts": (lambda s: [s.ask[:-1], s.ask], ["4.00", ""], (1, 1)),
    "joins two": (lambda s: [s.ask + s.follow_up], ["4.00"], (0, 0)),
}  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("hub", sorted(HUBS))
def test_a_bad_hub_changes_nothing_but_what_arrives(
    hub: str, federated: ServerAddress, peer: ForeignPeer
) -> None:
    arrives, codes, stored = HUBS[hub]
    with httpx.Client(base_url=federated.http, timeout=60, trust_env=False) as client:
        answers = [
            client.post("/v1/messages", content=raw, headers=HEADERS)
            for raw in arrives(Sent.by(peer))
        ]
    assert [answer.json().get("code", "") for answer in answers] == codes
    assert (ReceivedEnvelope.objects.count(), Response.objects.count()) == stored
    assert EnvelopeStream.objects.count() == stored[1]
