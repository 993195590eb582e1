"""The files of a chat, which only servers with a guest in it read."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import httpx
import pytest

from chat_app.members.participants import remove_participant
from chat_app.models import Message, Participant
from federation_app.models import ChatFollower
from tests.federation_app.foreign_guests import GUEST, accept, invited
from tests.federation_app.peer import add_peer
from tests.federation_app.test_lying_files import TABLE
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Person

pytestmark = pytest.mark.django_db(transaction=True)


def test_only_a_server_with_a_guest_in_the_chat_reads_its_files(
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    web: httpx.Client,
    alice: Person,
) -> None:
    chat = shared_chat(alice, agents=())
    web.headers.update(alice.headers)

    def send_file(name: str) -> tuple[str, str]:
        files = {"file": (name, TABLE, "text/csv")}
        content = web.post("/api/v1/contents", files=files).json()["content_id"]
        path, body = f"/api/v1/chats/{chat.pk}/messages", {"content": name}
        web.post(path, json={**body, "attachments": [content]}).raise_for_status()
        return content, Message.objects.get(content=name).pk

    early, early_message = send_file("early.csv")
    accept(peer, tell, invited(chat, alice))
    late, late_message = send_file("late.csv")
    file_query = {"chat": chat.pk, "message": late_message, "by": GUEST["id"]}

    def status(content: str, headers: dict[str, str] | None = None, **query: str) -> int:
        headers = peer.bearer() if headers is None else headers
        params = {**file_query, **query}
        return httpx.get(
            f"{str(web.base_url).rstrip('/')}/v1/files/{content}",
            params=params,
            headers=headers,
            trust_env=False,
        ).status_code

    assert status(late) == 200
    assert status(early, message=early_message) == 404, "from before its guest joined"
    assert status(early) == 404, "not in the message"
    assert status(late, by="8") == 404
    assert status(late, chat=shared_chat(alice).pk) == 404
    assert status(late, ref="turn-1-x") == 404
    assert status(late, message="m" * 41) == 400
    # PostgreSQL takes no NUL.
    assert status(late, message=f"{late_message}\0") == 400
    assert status(late, by=f"{GUEST['id']}\0") == 400
    assert status(late, ref="\0") == 400
    assert status(late, more="x") == 400
    assert status(late, headers={}) == 401
    assert status(late, headers=add_peer("stranger.example").bearer()) == 404
    assert status(str(uuid.uuid4())) == 404
    guest = Participant.objects.get(chat=chat, user__username=GUEST["name"])
    remove_participant(chat_id=chat.pk, removed_by=alice.user, participant_id=guest.pk)
    assert status(late) == 404
    assert not ChatFollower.objects.exclude(chat_id=chat.pk).exists()
