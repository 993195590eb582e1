"""A chat of alice here that bob of the other server joins, and what both do in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User

from chat_app.models import Chat, ChatEvent, Message, Participant, Pin, Reaction
from federation_app.models import ChatFollower, ChatMirror, Guest, GuestInvitation, ReceivedEnvelope
from tests.client import wait_until
from tests.federation_app.two_servers import BOB, OtherServer
from tests.live_server import shared_chat

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

ALICE = "alice@chat.example"
# What an envelope about a shared chat may write.
STORED = (
    Chat,
    ChatEvent,
    ChatFollower,
    ChatMirror,
    Guest,
    GuestInvitation,
    Message,
    Participant,
    Pin,
    Reaction,
)


def rest(web: httpx.Client, who: Person, method: str, path: str, body: Any = None) -> Any:
    """Send a REST request as a person here, and return the response."""
    return web.request(method, f"/api/v1{path}", headers=who.headers, json=body)


def texts(chat: Chat) -> list[tuple[str, str]]:
    """Return the authors and texts of the messages of a chat here."""
    rows = Message.objects.filter(chat=chat, deleted_at=None).order_by("seq")
    return list(rows.values_list("name", "content"))


def message_id(chat: Chat, text: str) -> str:
    """Return the id of a message here, which is its id there, too."""
    return Message.objects.get(chat=chat, content=text).pk


def invite(other: OtherServer, web: httpx.Client, alice: Person, chat: Chat) -> Any:
    """Invite bob as alice, and return the invitation that he sees there."""
    response = rest(web, alice, "POST", f"/chats/{chat.pk}/participants", {"user": BOB})
    assert response.status_code == 202, response.text
    wait_until(lambda: len(other.invitations()) == 1)
    (invitation,) = other.invitations()
    assert (invitation["person"], invitation["title"]) == (ALICE, "Shared")
    return invitation


def joined(other: OtherServer, web: httpx.Client, alice: Person) -> tuple[Chat, str]:
    """Return a chat of alice here that bob has joined, and its mirror there."""
    chat = shared_chat(alice, agents=("echo",))
    invitation = invite(other, web, alice, chat)
    other.post(f"/invitations/{invitation['id']}", {"answer": "accept"})
    wait_until(lambda: Participant.objects.filter(chat=chat, user__username=BOB).exists())
    return chat, other.chat("Shared")


def counts() -> list[int]:
    """Return the number of rows that a refused envelope must not change."""
    return [model._default_manager.count() for model in (*STORED, ReceivedEnvelope, User)]
