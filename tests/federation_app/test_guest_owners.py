"""The owner of a chat with guests once its last owner is gone, and the news to their server."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from chat_app.log.history import events_after
from chat_app.members.participants import remove_participant
from chat_app.models import Chat, Participant
from federation_app.guests import outgoing, typing_signs
from federation_app.models import ChatFollower, ChatMirror, Peer
from sessions_app.data_rights.deleted_chats import delete_rows
from sessions_app.data_rights.erasure import erase_person
from tests.client import wait_until
from tests.federation_app.foreign_guests import GUEST, accept, invited
from tests.http_server import LocalServer, QuietHandler, serving
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)


class Willing(QuietHandler):
    """Accepts every envelope."""

    def do_POST(self) -> None:  # noqa: N802 the name is the interface of http.server
        """Read the envelope."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(202)
        self.end_headers()


def roles(chat: Chat) -> dict[str, str]:
    """Return the roles of the people who are in a chat."""
    rows = Participant.objects.filter(chat=chat, user__isnull=False, left_at=None)
    return dict(rows.values_list("user__username", "role"))


def lose(chat: Chat, who: Person, *, erased: bool) -> None:
    """Let a person leave a chat, or be erased."""
    if erased:
        erase_person(who.user, reason="asked")
        return
    member = Participant.objects.get(chat=chat, user=who.user)
    remove_participant(chat_id=chat.pk, removed_by=who.user, participant_id=member.pk)


@pytest.mark.parametrize("how", ["left", "erased"])
def test_ownership_goes_to_the_oldest_member_here_else_the_chat_ends_for_all(
    how: str,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    web: httpx.Client,
    alice: Person,
    bob: Person,
    settings: Any,
) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    chat = shared_chat(alice, agents=("echo",))
    accept(peer, tell, invited(chat, alice))
    body = {"user": "bob"}
    path = f"/api/v1/chats/{chat.pk}/participants"
    web.post(path, headers=alice.headers, json=body).raise_for_status()
    lose(chat, alice, erased=how == "erased")
    # The guest joined before bob.
    assert roles(chat) == {GUEST["name"]: "member", "bob": "owner"}
    lose(chat, bob, erased=how == "erased")
    assert roles(chat) == {}
    chat.refresh_from_db()
    assert chat.deleted_at is not None
    assert not Participant.objects.filter(chat=chat, left_at=None).exists()

    # Its log stays until the guest's server knows it.
    assert delete_rows(50) == 0
    assert outgoing.followed_chats().filter(chat_id=chat.pk).exists()
    left = [row for row in events_after(chat.pk, 0) if row.type == "participant.left"]
    assert len(left) == 4
    with serving(LocalServer(Willing)) as server:
        Peer.objects.filter(pk=peer.row.pk).update(address=server.origin, deliver_at=timezone.now())
        wait_until(lambda: not ChatFollower.objects.exists())
    delete_rows(50)
    assert not Chat.objects.filter(pk=chat.pk).exists()


def test_a_deleted_chat_does_not_wait_forever_for_an_absent_server(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person
) -> None:
    chat = shared_chat(alice, agents=())
    accept(peer, tell, invited(chat, alice))
    lose(chat, alice, erased=False)
    assert delete_rows(50) == 0
    Chat.objects.filter(pk=chat.pk).update(deleted_at=timezone.now() - timedelta(days=31))
    delete_rows(50)
    assert not Chat.objects.filter(pk=chat.pk).exists()


@pytest.mark.parametrize("role", ["admin", "owner"])
def test_a_guest_stays_a_plain_member(
    role: str,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    web: httpx.Client,
    alice: Person,
) -> None:
    chat = shared_chat(alice, agents=())
    accept(peer, tell, invited(chat, alice))
    member = Participant.objects.get(chat=chat, user__username=GUEST["name"])
    path = f"/api/v1/chats/{chat.pk}/participants/{member.pk}"
    response = web.patch(path, headers=alice.headers, json={"role": role})
    assert (response.status_code, "plain members" in response.text) == (403, True)
    assert roles(chat) == {"alice": "owner", GUEST["name"]: "member"}


def test_a_process_keeps_no_more_than_so_many_chats_in_mind(
    peer: ForeignPeer, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typing_signs, "MAX_CHATS", 2)
    now = timezone.now()
    for number in range(4):
        at = now - timedelta(hours=number)
        follower = {"chat_id": f"chat_f{number}", "first_seq": 0, "sent_seq": 0}
        ChatFollower.objects.create(peer=peer.row, created_at=at, **follower)
        names = {"chat_id": f"chat_m{number}", "home_chat_id": f"chat_h{number}"}
        ChatMirror.objects.create(peer=peer.row, created_at=at, **names)
    expected = {"chat_f0", "chat_f1", "chat_m0", "chat_m1"}
    assert typing_signs.concerned_chats() == expected
