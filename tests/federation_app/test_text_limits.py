"""The limits of text hold for guests, and for the people of a home in its mirror."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import Chat, ChatEvent, Message
from federation_app.envelope.errors import EnvelopeError
from federation_app.guests import acts, invitations
from federation_app.models import ChatMirror
from sessions_app.access import rates
from sessions_app.connection.rate_limit import RateLimited
from tests.federation_app.foreign_guests import GUEST, accept, invited, message
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Person

    Tell = Callable[..., tuple[int, str]]

pytestmark = pytest.mark.django_db(transaction=True)
NOTE = "[Shortened; the full text is on client.example]"
HOME_CHAT = "chat_theirs"


def own_edit(chat: Chat, text: str) -> dict[str, Any]:
    """Return the edit of gwen's message in a chat here."""
    message_id = Message.objects.filter(chat=chat).latest("seq").pk
    return {"act": "edit", "chat": chat.pk, "by": GUEST, "message": message_id, "text": text}


@pytest.fixture
def chat(peer: ForeignPeer, tell: Tell, alice: Person) -> Chat:
    """Return a chat of alice in which gwen, a guest, has written."""
    shared = shared_chat(alice, agents=())
    accept(peer, tell, invited(shared, alice))
    assert tell(peer, "inform", message(shared, "hi")) == (202, "")
    return shared


def test_an_edit_of_a_guest_is_as_long_as_a_message_may_be(
    chat: Chat, peer: ForeignPeer, tell: Tell, settings: Any
) -> None:
    settings.UAMP_MESSAGE_BYTES = 100
    before = ChatEvent.objects.count()
    assert tell(peer, "inform", own_edit(chat, "é" * 50 + "x")) == (400, "4.00")
    assert ChatEvent.objects.count() == before
    assert Message.objects.get(chat=chat).content == "hi"
    assert tell(peer, "inform", own_edit(chat, "é" * 50)) == (202, "")
    assert Message.objects.get(chat=chat).content == "é" * 50


def test_edits_of_a_guest_count_as_text_that_they_store(
    chat: Chat, peer: ForeignPeer, tell: Tell, settings: Any
) -> None:
    settings.UAMP_TEXT_BYTES_PER_DAY = 102
    assert tell(peer, "inform", own_edit(chat, "a" * 60)) == (202, "")
    before = ChatEvent.objects.count()
    # The guest's server does not try again, but takes the edit back.
    assert tell(peer, "inform", own_edit(chat, "b" * 60)) == (409, "4.09")
    assert ChatEvent.objects.count() == before
    assert Message.objects.get(chat=chat).content == "a" * 60
    # The limit is the guest's: others write on.
    assert tell(peer, "inform", own_edit(chat, "c" * 40)) == (202, "")


def test_a_message_beyond_the_text_of_a_day_is_refused_for_good(
    chat: Chat, peer: ForeignPeer, tell: Tell, settings: Any
) -> None:
    settings.UAMP_TEXT_BYTES_PER_DAY = 60
    # Its server would repeat it for hours, and deliver no other guest's message meanwhile.
    assert tell(peer, "inform", message(chat, "a" * 100)) == (409, "4.09")
    assert tell(peer, "inform", message(chat, "b" * 40)) == (202, "")
    texts = Message.objects.filter(chat=chat).order_by("seq").values_list("content", flat=True)
    assert list(texts) == ["hi", "b" * 40]


def test_a_message_that_does_not_fit_into_what_is_left_of_a_day_is_refused_for_good(
    chat: Chat, peer: ForeignPeer, tell: Tell, settings: Any
) -> None:
    settings.UAMP_TEXT_BYTES_PER_DAY = 5000
    assert tell(peer, "inform", message(chat, "a" * 4000)) == (202, "")
    assert tell(peer, "inform", message(chat, "b" * 2000)) == (409, "4.09")
    assert tell(peer, "inform", own_edit(chat, "b" * 2000)) == (409, "4.09")


def test_only_limits_of_a_minute_that_allow_the_message_pass(settings: Any) -> None:
    def refused(kind: str, cost: int = 1) -> Exception:
        quota = rates.RateLimiter().hit(kind, "user:1", cost=cost)
        return acts._final_or_passing(RateLimited(replace(quota, allowed=False)))

    settings.UAMP_RESPONSES_PER_MINUTE = 3
    assert isinstance(refused("responses", 3), RateLimited)
    assert isinstance(refused("responses", 4), EnvelopeError)
    assert isinstance(refused("bytes of text"), EnvelopeError)


class HomeLog:
    """The log of gwen's chat on the peer, which alice has joined."""

    def __init__(self, peer: ForeignPeer, tell: Tell, alice: Person) -> None:
        self.peer, self.tell, self.seq = peer, tell, 0
        here = {"id": str(alice.user.pk), "name": "alice@chat.example"}
        self.members = [GUEST, here]
        invitation = str(uuid.uuid4())
        content = {"invitation": invitation, "chat": HOME_CHAT, "title": "", "by": GUEST}
        assert tell(peer, "propose", {**content, "to": here["name"]}) == (202, "")
        invitations.answer(user=alice.user, invitation_id=invitation, answer="accept")
        self.add({"type": "participant.joined"})

    def add(self, event: dict[str, Any], author: dict[str, str] | None = GUEST) -> None:
        """Send the next entry, which gwen or an agent has caused."""
        self.seq += 1
        place = {"start": 0, "after": self.seq - 1, "seq": self.seq}
        whose = {"chat": HOME_CHAT, "title": "", "members": self.members, "author": author}
        assert self.tell(self.peer, "notify", {**place, **whose, "event": event}) == (202, "")

    def write(self, text: str, author: dict[str, str] | None = GUEST) -> str:
        """Send a message of gwen or an agent, and return its text here."""
        kind = "agent" if author is None else "user"
        words = {"content": text, "name": "gwen", "created_at": 1, "sender_kind": kind}
        id_ = f"msg_{self.seq}"
        self.add({"type": "message.created", "message": {**words, "id": id_}}, author)
        return Message.objects.get(pk=id_).content

    def edit(self, text: str) -> str:
        """Send an edit of the last message, and return its text here."""
        last = Message.objects.filter(chat=ChatMirror.objects.get().chat_id).latest("seq")
        self.add({"type": "message.edited", "message_id": last.pk, "content": text})
        last.refresh_from_db()
        return last.content


def test_a_mirror_shortens_texts_beyond_the_limits_of_people_here(
    peer: ForeignPeer, tell: Tell, alice: Person, settings: Any
) -> None:
    settings.UAMP_MESSAGE_BYTES = 100
    settings.UAMP_TEXT_BYTES_PER_DAY = 350
    log = HomeLog(peer, tell, alice)
    shortened = f"{'é' * 25}\n\n{NOTE}"
    assert len(shortened.encode()) in {99, 100}
    assert log.write("é" * 60) == shortened
    assert log.edit("e" * 100) == "e" * 100
    assert log.edit("é" * 70) == shortened
    # 300 bytes of the day are used: only the place of the text is left.
    assert log.write("é" * 50) == NOTE
    assert log.write("é" * 25) == "é" * 25
    # Answers of agents are not a person's text.
    assert log.write("é" * 500, None) == "é" * 500
