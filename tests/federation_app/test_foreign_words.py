"""Messages of a home whose ids, names, times and replies are not what a home may choose."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from chat_app.models import Chat, Message
from tests import factories
from tests.federation_app.foreign_guests import GUEST
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)


class Home:
    """A peer whose chat alice has joined; it sends entries one after the other."""

    def __init__(
        self, peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person
    ) -> None:
        self._peer, self._tell = peer, tell
        here = {"id": str(alice.user.pk), "name": "alice@chat.example"}
        self._entry = {
            "chat": "chat_theirs",
            "start": 0,
            "title": "Theirs",
            "members": [GUEST, here],
        }
        self._seq = 0

    def invite(self) -> str:
        """Invite alice, and return the invitation."""
        invitation = str(uuid.uuid4())
        content = {
            "invitation": invitation,
            "chat": "chat_theirs",
            "title": "Theirs",
            "by": GUEST,
            "to": "alice@chat.example",
        }
        assert self._tell(self._peer, "propose", content) == (202, "")
        return invitation

    def send(self, **message: Any) -> tuple[int, str]:
        """Send a message; its other members are usual ones."""
        words = {"id": "msg_1", "content": "words", "name": "gwen", "created_at": 1, **message}
        event = {"type": "message.created", "message": words}
        place = {"after": self._seq, "seq": self._seq + 1}
        sent = self._tell(self._peer, "notify", {**self._entry, **place, "event": event})
        if sent == (202, ""):
            self._seq += 1
        return sent


@pytest.fixture
def home(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], web: httpx.Client, alice: Person
) -> Home:
    joined = Home(peer, tell, alice)
    joined.invite()
    (row,) = web.get("/api/v1/invitations", headers=alice.headers).json()["data"]
    path = f"/api/v1/invitations/{row['id']}"
    assert web.post(path, headers=alice.headers, json={"answer": "accept"}).is_success
    return joined


def test_a_reply_names_a_message_of_the_mirror(home: Home, alice: Person, bob: Person) -> None:
    secret = factories.message(shared_chat(bob), bob.user, "secret")
    assert home.send(id="msg_1", reply_to=secret.pk) == (202, "")
    assert home.send(id="msg_2", reply_to="msg_1") == (202, "")
    assert home.send(id="msg_3", reply_to={"id": "msg_1"}) == (202, "")
    replies = {message.pk: message.reply_to for message in Message.objects.exclude(pk=secret.pk)}
    assert replies == {"msg_1": None, "msg_2": "msg_1", "msg_3": None}


@pytest.mark.parametrize("message_id", ["", "a b", "..", "msg_'", "m" * 41, "msg_\u0661"])
def test_an_id_that_no_path_matches_is_refused(home: Home, message_id: str) -> None:
    assert home.send(id=message_id)[1] == "4.00"
    assert not Message.objects.exists()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("gwen", "gwen@client.example"),
        ("alice@chat.example", "alice@client.example"),
        ("\u202eelpmaxe.tahc@ecila\u202c", "elpmaxe.tahc@client.example"),
        ("alice\nSystem: pay", "alice System: pay@client.example"),
        ("alice" + " " * 200, "alice@client.example"),
        ("a" * 200, "a" * 128 + "@client.example"),
    ],
)
def test_an_author_has_a_name_on_one_line_and_the_host_of_the_home(
    home: Home, name: str, shown: str
) -> None:
    assert home.send(name=name) == (202, "")
    assert Message.objects.get().name == shown


def test_no_message_is_of_the_future(home: Home) -> None:
    later = int(time.time() * 1000) + 10**12
    assert home.send(created_at=later) == (202, "")
    assert Message.objects.get().created_at <= timezone.now()
    assert Chat.objects.get(home="client.example").latest_at <= timezone.now()
