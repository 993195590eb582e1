"""Calls in a chat with a guest: they reach the people of this server, and say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chat_app.models import VoiceCall, VoiceCallMember
from tests.federation_app.foreign_guests import GUEST, accept, invited
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_call_reaches_only_people_of_this_server_and_says_so(
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    web: httpx.Client,
    dial: Dial,
    alice: Person,
    bob: Person,
) -> None:
    chat = shared_chat(alice, agents=())
    accept(peer, tell, invited(chat, alice))
    path = f"/api/v1/chats/{chat.pk}"
    members = web.get(path, headers=alice.headers).json()["participants"]
    assert {member["name"]: member.get("takes_calls", True) for member in members} == {
        "alice": True,
        GUEST["name"]: False,
    }
    client = dial(alice)
    client.create_session(chat=chat.pk)
    (guest_id,) = [member["id"] for member in members if member["name"] == GUEST["name"]]
    for to in ({}, {"to": guest_id}):
        client.send("voice.invite", media=["audio"], **to)
        error = client.expect("session.error")["error"]
        assert (error["code"], "other servers" in error["message"]) == ("forbidden", True)
        assert not VoiceCall.objects.exists()

    response = web.post(f"{path}/participants", headers=alice.headers, json={"user": "bob"})
    response.raise_for_status()
    client.until("participant.joined")
    client.send("voice.invite", media=["audio"])
    client.until("call.updated")
    rows = VoiceCallMember.objects.values_list("user__username", flat=True)
    assert set(rows) == {"alice", "bob"}
