"""Agents that were made private: they answer only those who may use them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import ChatEvent
from sessions_app.models import Response
from tests.gateway_app.test_disabled_agents import make_private
from tests.live_server import quick_agent, shared_chat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

    Headers = Mapping[str, str]
    Ask = Callable[[ServerAddress, httpx.Client, Headers], str]


@pytest.fixture(autouse=True)
def _agents(demo: ServerAddress) -> None:
    quick_agent("helper", "echo")
    quick_agent("other", "echo")


def test_only_those_who_may_use_it_are_answered_where_it_is_private(
    web: httpx.Client, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob, mallory, agents=("helper", "other"))
    make_private(alice)
    mallory.user.is_staff = True
    mallory.user.save()

    def unanswered(who: Person) -> Any:
        body = {"content": "@helper hello"}
        return web.post(f"/api/v1/chats/{chat.pk}/messages", json=body, headers=who.headers).json()[
            "unanswered"
        ]

    assert (unanswered(alice), unanswered(mallory)) == (None, None)
    refused = {"code": "forbidden", "message": "helper does not answer: it is private."}
    assert unanswered(bob) == refused
    assert ChatEvent.objects.get(type="agent.stopped").payload["reason"] == "private"
    askers = set(Response.objects.values_list("session__user", flat=True))
    assert askers == {alice.user.pk, mallory.user.pk}
    members = web.get(f"/api/v1/chats/{chat.pk}", headers=bob.headers).json()
    assert "helper" in json.dumps(members)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["always", "without a message", "again", "session"])
def test_an_agent_made_private_is_asked_by_no_other_way(
    web: httpx.Client, dial: Dial, alice: Person, kind: str
) -> None:
    chat = shared_chat(alice, agents=("helper",), trigger="always")
    client = dial(alice)
    client.create_session(chat=chat.pk, **({"agent": "helper"} if kind == "session" else {}))
    client.answer("hello")
    make_private()
    answered = Response.objects.get()
    if kind == "again":
        path = f"/api/v1/responses/{answered.pk}/retry"
        refused = web.post(path, json={}, headers=alice.headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    elif kind == "always":
        client.ask("hello again")
        assert client.until("agent.stopped")[-1]["reason"] == "private"
    else:
        if kind == "session":
            client.ask("hello again")
        else:
            client.send("response.create")
        error = client.until("session.error", "response.error")[-1]["error"]
        assert error["code"] == "forbidden"
    assert Response.objects.get() == answered


def test_an_agent_does_not_mention_one_that_its_asker_may_not_use(
    dial: Dial, alice: Person
) -> None:
    quick_agent("curious", "asker", asks=["helper"], says="what do you think?")
    chat = shared_chat(alice, agents=("helper", "curious"))
    make_private()
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@curious hello")
    stopped = client.until("agent.stopped")[-1]
    assert (stopped["agent"], stopped["reason"]) == ("helper", "private")
    assert not Response.objects.filter(agent__name="helper").exists()
