"""Reactions and pins in a chat with members on two servers, both ways and through an outage."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from chat_app.models import Chat, ChatEvent, Pin, Reaction
from federation_app.models import Peer
from tests.client import wait_until
from tests.federation_app.shared_chats import ALICE, joined, message_id, rest, texts
from tests.federation_app.two_servers import BOB, CutLine

if TYPE_CHECKING:
    import httpx

    from tests.federation_app.two_servers import OtherServer
    from tests.live_server import Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]
ENTRIES = """
import json
from chat_app.models import ChatEvent
rows = ChatEvent.objects.filter(chat_id={chat!r}, type__regex="reaction|pinned").order_by("seq")
print(json.dumps([[row.type, row.payload.get("emoji", "")] for row in rows]))
"""


def reactions_there(other: OtherServer, mirror: str, message: str) -> dict[str, list[str]]:
    """Return the people and emoji of the reactions to a message there."""
    rows = other.get(f"/chats/{mirror}/messages?order=asc&limit=200")["data"]
    (row,) = [candidate for candidate in rows if candidate["id"] == message]
    return {
        reaction["emoji"]: [user["name"] for user in reaction["users"]]
        for reaction in row["reactions"]
    }


def pinned_there(other: OtherServer, mirror: str) -> list[str]:
    """Return the pinned messages there."""
    return [pin["id"] for pin in other.get(f"/chats/{mirror}/pins")["data"]]


def reactions_here(message: str) -> dict[str, list[str]]:
    """Return the people and emoji of the reactions to a message here."""
    reactions: dict[str, list[str]] = {}
    for row in Reaction.objects.filter(message_id=message).select_related("user").order_by("id"):
        reactions.setdefault(row.emoji, []).append(row.user.username)
    return reactions


def entries(chat: Chat) -> list[list[str]]:
    """Return the reactions and pins of the log here, in order."""
    rows = ChatEvent.objects.filter(chat=chat, type__regex="reaction|pinned").order_by("seq")
    return [[row.type, row.payload.get("emoji", "")] for row in rows]


def react(emoji: str) -> str:
    """Return the end of the path of a reaction."""
    return f"reactions?emoji={quote(emoji)}"


def bob(other: OtherServer, method: str, path: str) -> int:
    """Send a request as bob there, and return the status."""
    with other.product.api("bob") as client:
        return client.request(method, f"/api/v1{path}").status_code


def test_reactions_and_pins_travel_both_ways_in_order_and_once(
    other: OtherServer, web: httpx.Client, alice: Person
) -> None:
    chat, mirror = joined(other, web, alice)
    rest(web, alice, "POST", f"/chats/{chat.pk}/messages", {"content": "first"})
    other.post(f"/chats/{mirror}/messages", {"content": "second"})
    wait_until(lambda: len(texts(chat)) == len(other.texts(mirror)) == 2)
    first, second = message_id(chat, "first"), message_id(chat, "second")

    assert bob(other, "PUT", f"/messages/{first}/{react('👍')}") == 204
    assert reactions_there(other, mirror, first) == {"👍": ["bob"]}, "at once, where it was given"
    wait_until(lambda: reactions_here(first) == {"👍": [BOB]})
    rest(web, alice, "PUT", f"/messages/{second}/{react('🎉')}")
    wait_until(lambda: reactions_there(other, mirror, second) == {"🎉": [ALICE]})
    assert bob(other, "PUT", f"/messages/{second}/pin") == 204
    wait_until(lambda: list(Pin.objects.values_list("pk", flat=True)) == [second])
    assert Pin.objects.get().pinned_by.username == BOB  # type: ignore[union-attr]
    rest(web, alice, "PUT", f"/messages/{first}/pin")
    wait_until(lambda: sorted(pinned_there(other, mirror)) == sorted([first, second]))
    rest(web, alice, "DELETE", f"/messages/{second}/pin")
    wait_until(lambda: pinned_there(other, mirror) == [first])
    they_change_in_an_outage(other, web, alice, chat, mirror, first)
    what_the_home_refuses_is_taken_back(other, web, alice, chat, mirror, first)
    assert "No log was changed." in other.product.manage("audit_log")


def they_change_in_an_outage(
    other: OtherServer, web: httpx.Client, alice: Person, chat: Chat, mirror: str, first: str
) -> None:
    """Let both change reactions and pins while neither reaches the other; then both agree."""
    before, there_before = len(entries(chat)), len(entries_there(other, mirror))
    line = CutLine("127.0.0.1", other.product.port)
    Peer.objects.update(address=f"http://127.0.0.1:{line.port}")
    line.hold()
    rest(web, alice, "PUT", f"/messages/{first}/{react('🚀')}")
    rest(web, alice, "DELETE", f"/messages/{first}/{react('🚀')}")
    rest(web, alice, "PUT", f"/messages/{first}/{react('✅')}")
    rest(web, alice, "DELETE", f"/messages/{first}/pin")
    wait_until(lambda: Peer.objects.get().failures > 1)
    other.product.stop(signal.SIGKILL)
    other.product.start()
    line.mend()
    wait_until(lambda: reactions_there(other, mirror, first) == {"👍": ["bob"], "✅": [ALICE]})
    wait_until(lambda: pinned_there(other, mirror) == [])
    expected = [
        ["reaction.added", "🚀"],
        ["reaction.removed", "🚀"],
        ["reaction.added", "✅"],
        ["message.unpinned", ""],
    ]
    assert entries(chat)[before:] == expected
    assert entries_there(other, mirror)[there_before:] == expected
    Peer.objects.update(address=other.product.url)
    line.close()
    # While this server accepts nothing of the peer, its people go on.
    Peer.objects.update(suspended_at="2026-01-01T00:00:00Z")
    for method, emoji in (("PUT", "💡"), ("DELETE", "👍"), ("DELETE", "💡"), ("PUT", "🔥")):
        assert bob(other, method, f"/messages/{first}/{react(emoji)}") == 204
    assert reactions_here(first) == {"👍": [BOB], "✅": ["alice"]}
    Peer.objects.update(suspended_at=None)
    wait_until(lambda: reactions_here(first) == {"✅": ["alice"], "🔥": [BOB]})
    assert entries(chat)[before + 4 :] == [
        ["reaction.added", "💡"],
        ["reaction.removed", "👍"],
        ["reaction.removed", "💡"],
        ["reaction.added", "🔥"],
    ]


def what_the_home_refuses_is_taken_back(
    other: OtherServer, web: httpx.Client, alice: Person, chat: Chat, mirror: str, first: str
) -> None:
    """Let the rule about pins hold there, and let the mirror undo what the home refuses."""
    Peer.objects.update(suspended_at="2026-01-01T00:00:00Z")
    assert bob(other, "PUT", f"/messages/{first}/pin") == 204
    rest(web, alice, "PATCH", f"/chats/{chat.pk}", {"only_owners_pin": True})
    Peer.objects.update(suspended_at=None)
    wait_until(lambda: pinned_there(other, mirror) == [])
    wait_until(lambda: other.get(f"/chats/{mirror}")["only_owners_pin"])
    assert not Pin.objects.exists()
    # From now on the server of the guest knows it.
    count = len(entries_there(other, mirror))
    assert bob(other, "PUT", f"/messages/{first}/pin") == 403
    assert len(entries_there(other, mirror)) == count
    rest(web, alice, "PUT", f"/messages/{first}/pin")
    wait_until(lambda: pinned_there(other, mirror) == [first])


def entries_there(other: OtherServer, mirror: str) -> Any:
    """Return the reactions and pins of the log there, in order."""
    return json.loads(other.product.run(ENTRIES.format(chat=mirror)))
