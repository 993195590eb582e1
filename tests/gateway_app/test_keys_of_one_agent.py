"""The limits of a key bind whatever is started in its name, over every protocol.

A key that is limited to agents has no other one answer: not by its name, not by a mention in a
message or in an answer, not after a wait in the queue, and not in a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agents_app.models import Agent
from agents_app.rest.rights import Rights
from chat_app.models import ChatEvent, Message, Participant
from sessions_app.access import keys
from sessions_app.models import Response
from tests.client import new_event, wait_until
from tests.gateway_app.test_disabled_agents import TRANSPORTS
from tests.live_server import Person, quick_agent, shared_chat
from tests.realtime_vendor import realtime_vendor, tone
from tests.sessions_app.connection.test_call_agents import END, SPEAKER, say, with_agent
from tests.sessions_app.connection.test_calls import inside, updated
from tests.sessions_app.turn.delegation import answer_frames, answer_text, doer, task_for
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from pytest_django import Settings

    from chat_app.models import Chat
    from tests.conftest import ServerAddress
    from tests.live_server import Dial

NOT_FOR_IT = "the asker's credential does not permit it."


@pytest.fixture(autouse=True)
def _agents(demo: ServerAddress) -> None:
    quick_agent("helper", "echo")
    quick_agent("curious", "asker", asks=["helper"], says="what do you think?")


def limited(who: Person, *agents: str) -> Person:
    """Return the person with a key that may ask these agents only."""
    ids = frozenset(Agent.objects.get(name=name).pk for name in agents)
    key_request = keys.KeyRequest(name="narrow", rights=Rights(scopes=frozenset({"*"}), agents=ids))
    return Person(who.user, keys.make_key(who.user.pk, key_request).secret)


def answered_by() -> set[str]:
    """Return the names of all agents that have answered, or are about to."""
    return set(Response.objects.values_list("agent__name", flat=True))


@pytest.mark.sampled(14)
@pytest.mark.parametrize("where", ["alone", "in a chat"])
@pytest.mark.parametrize("name", TRANSPORTS)
def test_another_agent_is_not_there_over_any_transport(
    demo: ServerAddress, web: httpx.Client, alice: Person, name: str, where: str
) -> None:
    headers = dict(limited(alice, "echo").headers)
    if where == "in a chat":
        headers["X-Chat-Id"] = shared_chat(alice, agents=("helper", "echo")).pk
    answer = TRANSPORTS[name](demo, web, headers)
    assert "helper" in answer, answer
    assert any(word in answer for word in ("not_found", "NOT_FOUND", "-320", "no agent")), answer
    assert not Response.objects.exists()
    assert not Message.objects.exists()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("words", ["@helper hello", "@echo @helper hello"])
@pytest.mark.parametrize("route", ["UAMP", "batch", "REST", "REST by name", "queue"])
def test_a_message_that_would_ask_another_agent_is_refused(
    dial: Dial, web: httpx.Client, alice: Person, route: str, words: str
) -> None:
    chat, narrow = shared_chat(alice, agents=("echo", "helper")), limited(alice, "echo")
    path = f"/api/v1/chats/{chat.pk}/messages"
    if route == "UAMP":
        client = dial(narrow)
        client.create_session(chat=chat.pk)
        client.ask(words)
        assert client.until("session.error")[-1]["error"]["code"] == "forbidden"
    elif route == "batch":
        batch = [
            new_event("session.create", uamp_version="1.0", session={}, chat=chat.pk),
            new_event("input.text", text=words),
            new_event("response.create"),
        ]
        events = web.post("/uamp", json=batch, headers=narrow.headers).json()
        assert "forbidden" in [event.get("error", {}).get("code") for event in events], events
    else:
        body: dict[str, Any] = {"content": words}
        if route == "REST by name":
            body = {"content": "hello", "agents": ["helper"]}
        if route == "queue":
            body["queue"] = True
        refused = web.post(path, json=body, headers=narrow.headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), refused.text
    assert not Response.objects.exists()
    assert not Message.objects.exists()


def stopped_mention(chat: Chat) -> dict[str, Any]:
    """Wait for the entry that says why a mention is not answered."""
    entries = ChatEvent.objects.filter(chat=chat, type="agent.stopped")
    wait_until(entries.exists)
    return dict(entries.get().payload)


def test_an_answer_asks_no_agent_that_the_key_of_its_asker_may_not_ask(
    dial: Dial, alice: Person
) -> None:
    chat = shared_chat(alice, agents=("curious", "helper"))
    client = dial(limited(alice, "curious"))
    client.create_session(chat=chat.pk)
    client.ask("@curious hello")
    stopped = client.until("agent.stopped")[-1]
    assert (stopped["agent"], stopped["reason"]) == ("helper", "refused")
    assert stopped["message"] == (f"curious mentioned helper, which does not answer: {NOT_FOR_IT}")
    client.settle()
    assert answered_by() == {"curious"}
    # A key for both, and the person, are answered by both.
    for who in (limited(alice, "curious", "helper"), alice):
        Response.objects.all().delete()
        both = dial(who)
        both.create_session(chat=chat.pk)
        both.ask("@curious hello")
        wait_until(lambda: answered_by() == {"curious", "helper"})
        wait_until(lambda: not Response.objects.filter(finished_at=None).exists())


def test_of_two_mentions_the_one_that_the_key_allows_is_answered(dial: Dial, alice: Person) -> None:
    quick_agent("asks-both", "asker", asks=["helper", "echo"], says="what do you think?")
    chat = shared_chat(alice, agents=("asks-both", "helper", "echo"))
    client = dial(limited(alice, "asks-both", "echo"))
    client.create_session(chat=chat.pk)
    client.ask("@asks-both hello")
    wait_until(lambda: "echo" in answered_by())
    assert stopped_mention(chat)["agent"] == "helper"
    assert answered_by() == {"asks-both", "echo"}


def test_a_queued_message_asks_no_more_than_its_key(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    chat = shared_chat(alice, agents=("curious", "helper", "slow"))
    narrow = limited(alice, "curious")
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@slow go")
    client.until("response.created")
    path = f"/api/v1/chats/{chat.pk}/messages"
    for text in ("@helper hello", "@curious hello"):
        body = {"content": text, "queue": True}
        assert web.post(path, json=body, headers=narrow.headers).is_success
    client.send("response.cancel")
    client.until("response.cancelled")
    assert stopped_mention(chat)["agent"] == "helper"
    assert answered_by() == {"slow", "curious"}


def test_a_key_speaks_in_a_call_to_its_agents_only(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    with realtime_vendor("You played {said}") as vendor:
        settings.UAMP_MODEL_ALLOW_HOSTS = [vendor.url.split("/")[2]]
        speaker = vendor.agent(options={"transcription": "whisper"})
        for names, end in ((("echo",), "session.error"), ((speaker.name,), "response.done")):
            chat = shared_chat(alice, agents=(speaker.name, "echo"))
            caller = inside(dial, limited(alice, *names), chat)
            caller.send("voice.invite", call_id="c1")
            updated(caller, alice="joined")
            caller.send("call.agent_add", **SPEAKER)
            with_agent(caller, "joined")
            say(caller, tone(200))
            frame = caller.until(*END, "session.error")[-1]
            assert frame["type"] == end, frame
            if end == "session.error":
                assert frame["error"]["code"] == "forbidden"
                assert not Response.objects.exists()
                assert not Message.objects.exists()
            caller.send("voice.end")
            caller.until("call.ended")


def test_a_key_adds_its_own_agents_to_chats_only(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    chat, narrow = shared_chat(alice, agents=()), limited(alice, "echo")
    path = f"/api/v1/chats/{chat.pk}/participants"
    refused = web.post(path, json={"agent": "helper"}, headers=narrow.headers)
    absent = web.post(path, json={"agent": "missing"}, headers=narrow.headers)
    assert refused.status_code == absent.status_code == httpx.codes.BAD_REQUEST
    errors = str(refused.json()["errors"]).replace("helper", "missing")
    assert errors == str(absent.json()["errors"])
    creation = web.post("/api/v1/chats", json={"agents": ["helper"]}, headers=narrow.headers)
    assert creation.status_code in {httpx.codes.BAD_REQUEST, httpx.codes.FORBIDDEN}
    client = dial(narrow)
    client.create_session(chat=chat.pk)
    client.send("participant.add", agent="helper")
    assert client.until("session.error")[-1]["error"]["code"] == "agent_not_found"
    assert not Participant.objects.filter(agent__name="helper").exists()
    assert web.post(path, json={"agent": "echo"}, headers=narrow.headers).status_code == 201


def test_an_agent_delegates_as_its_owner_decided(dial: Dial, alice: Person) -> None:
    doer("boss", "worker")
    doer("worker")
    frames = answer_frames(
        dial(limited(alice, "boss")), "boss", task_for("worker", order(say="done"))
    )
    assert "done" in answer_text(frames)
    assert answered_by() == {"boss", "worker"}
