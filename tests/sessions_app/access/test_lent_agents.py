"""An owner who adds a private agent to a chat lends it to the chat's members, while they stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User

from agents_app.models import Agent
from chat_app.forks.forking import fork_chat
from chat_app.members.participants import add_participant, remove_participant
from chat_app.models import Message, Participant
from sessions_app.models import Response
from tests.client import TERMINAL, text_of
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from chat_app.models import Chat
    from tests.live_server import Dial, Person


def private_agent(owner: Person, script: str = "echo") -> Agent:
    options = {"script": script}
    return Agent.objects.create(name="helper", owner=owner.user, options=options)


def leave(chat: Chat, owner: Person) -> None:
    member = Participant.objects.get(chat=chat, user=owner.user)
    remove_participant(chat_id=chat.pk, participant_id=member.pk, removed_by=owner.user)


def deactivate(_chat: Chat, owner: Person) -> None:
    User.objects.filter(pk=owner.user.pk).update(is_active=False)


@pytest.mark.parametrize("way", ["mention", "session", "request", "added later"])
def test_members_use_a_private_agent_that_its_owner_added(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, way: str
) -> None:
    agent = private_agent(alice)
    if way == "added later":
        # Bob's chat: alice adds her agent as a plain member.
        chat = shared_chat(bob, alice, agents=())
        add_participant(chat_id=chat.pk, added_by=alice.user, agent_id=agent.pk)
    else:
        chat = shared_chat(alice, bob, agents=("helper",))
    if way == "request":
        body = {"agent": "helper", "chat": chat.pk, "content": "hello", "wait": 10}
        answered = web.post("/api/v1/responses", json=body, headers=bob.headers)
        assert answered.status_code == 201, answered.text
        assert Response.objects.get().agent == agent
        return
    client = dial(bob)
    client.create_session(chat=chat.pk, **({"agent": "helper"} if way == "session" else {}))
    client.ask("@helper hello")
    assert "hello" in text_of(client.until("response.done"))


def test_it_is_lent_in_that_chat_alone(dial: Dial, alice: Person, bob: Person) -> None:
    private_agent(alice)
    shared_chat(alice, bob, agents=("helper",))
    client = dial(bob)
    client.send("session.create", uamp_version="1.0", session={}, agent="helper")
    assert client.until("session.error")[-1]["error"]["code"] == "agent_not_found"


def test_a_fork_by_another_member_does_not_have_it(dial: Dial, alice: Person, bob: Person) -> None:
    agent = private_agent(alice)
    chat = shared_chat(alice, bob, agents=("helper",))
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.answer("@helper hello")
    message = Message.objects.filter(chat=chat).latest("seq")
    forked = fork_chat(
        chat_id=chat.pk, message_id=message.pk, forked_by=bob.user, admit=lambda _size: None
    )
    assert not Participant.objects.filter(chat=forked.chat_id, agent=agent).exists()


def test_added_by_others_it_is_not_lent_until_its_owner_adds_it(
    dial: Dial, alice: Person, bob: Person
) -> None:
    agent = private_agent(alice)
    chat = shared_chat(bob, alice, agents=("helper",))
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask("@helper hello")
    assert client.until("agent.stopped")[-1]["reason"] == "private"
    add_participant(chat_id=chat.pk, added_by=alice.user, agent_id=agent.pk)
    client.ask("@helper hello")
    assert "hello" in text_of(client.until("response.done"))


@pytest.mark.parametrize("go", [leave, deactivate])
def test_it_goes_back_when_its_owner_goes(
    dial: Dial, alice: Person, bob: Person, go: Callable[[Chat, Person], None]
) -> None:
    private_agent(alice, "slow")
    chat = shared_chat(alice, bob, agents=("helper",))
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask("@helper talk")
    client.until("response.delta")
    go(chat, alice)
    end = client.until(*TERMINAL)[-1]
    assert (end["type"], end["error"]["code"]) == ("response.error", "unauthorized")
    client.ask("@helper talk")
    assert client.until("agent.stopped")[-1]["reason"] == "private"
    assert Response.objects.count() == 1
