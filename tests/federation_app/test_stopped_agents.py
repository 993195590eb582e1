"""The reason that a mirror gives for an agent of its home that does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import ChatEvent, Message
from tests import factories
from tests.federation_app.test_lying_files import entry, mirror

if TYPE_CHECKING:
    from collections.abc import Callable

    from chat_app.models import Chat
    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Dial, Person

    Tell = Callable[..., tuple[int, str]]

__all__ = ["mirror"]

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGE = "msg_theirs"
ELSEWHERE = "a message of another chat"
STOP = {
    "type": "agent.stopped",
    "message_id": MESSAGE,
    "agent": "helper",
    "reason": "disabled",
    "message": "helper does not answer: it is switched off.",
}


@pytest.fixture
def place(mirror: Chat, peer: ForeignPeer, tell: Tell, alice: Person) -> Chat:
    """Return the mirror with a message."""
    words = {"content": "@helper hi", "name": "gwen", "created_at": 1, "sender_kind": "user"}
    event = {"type": "message.created", "message": {**words, "id": MESSAGE}}
    assert tell(peer, "notify", entry(alice, 2, event)) == (202, "")
    return mirror


def test_members_of_a_mirror_learn_why_an_agent_does_not_answer(
    place: Chat, peer: ForeignPeer, tell: Tell, alice: Person, dial: Dial
) -> None:
    client = dial(alice)
    client.create_session(chat=place.pk)
    stop = {**STOP, "message": f"{STOP['message']}{'x' * 10**5}"}
    assert tell(peer, "notify", entry(alice, 3, stop)) == (202, "")
    event = client.until("agent.stopped")[-1]
    assert (event["agent"], event["reason"], event["message_id"]) == (
        "helper",
        "disabled",
        MESSAGE,
    )
    assert event["message"].startswith(STOP["message"])
    assert len(event["message"]) == 500


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"agent": 7}, "4.00"),
        ({"reason": None}, "4.00"),
        ({"message_id": ["x"]}, "4.00"),
        ({"message_id": None}, ""),
        ({"message_id": ELSEWHERE}, ""),
    ],
)
def test_a_home_stops_nothing_in_another_chat(
    place: Chat, peer: ForeignPeer, tell: Tell, alice: Person, changes: dict[str, Any], code: str
) -> None:
    other = factories.message(factories.chat(alice.user), alice.user, "hello")
    if changes.get("message_id") == ELSEWHERE:
        changes = {"message_id": other.pk}
    before = ChatEvent.objects.count()
    assert tell(peer, "notify", entry(alice, 3, {**STOP, **changes}))[1] == code
    assert ChatEvent.objects.count() == before
    assert Message.objects.filter(chat=place).count() == 1
