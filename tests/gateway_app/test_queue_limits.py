"""The queue of a chat gives a credential no rights that it lacks."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.utils import timezone

from agents_app.models import Agent
from chat_app.contents import reading_rights
from chat_app.models import ContentUse, Message
from payments_app.money import Money
from sessions_app.access import keys
from sessions_app.models import ApiKey, QueuedTurn, Response
from sessions_app.process import periodic
from sessions_app.queue import rows
from tests import factories
from tests.client import wait_until
from tests.gateway_app.test_files_of_other_chats import file_of, is_shown
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.access.scoped_keys import key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from chat_app.models import Chat
    from tests.client import Frame
    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

    Route = Callable[[httpx.Client, Dial, Person, QueuedTurn], str]

WORDS: Final = "@echo later"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "QUEUE_SECONDS", 0.1)


@pytest.fixture
def chat(demo: ServerAddress, alice: Person) -> Chat:
    """Return a chat with an agent that speaks until it is stopped."""
    quick_agent("endless", "slow", words=2000)
    return shared_chat(alice, agents=("echo", "endless"))


def queued(dial: Dial, alice: Person, chat: Chat, by: Person, *files: str) -> QueuedTurn:
    """Queue a message with a credential while an answer that alice asked for runs."""
    assert queue(dial, alice, chat, by, *files)["type"] == "queue.updated"
    return QueuedTurn.objects.get()


def queue(dial: Dial, alice: Person, chat: Chat, by: Person, *files: str) -> Frame:
    """Try to; return the event that says so, or the error."""
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@endless talk")
    client.until("response.created")
    client = dial(by)
    client.create_session(chat=chat.pk)
    for file in files:
        client.send("input.image", image={"url": f"/api/content/{file}"})
    client.send("input.text", text=WORDS)
    client.send("response.create", queue=True)
    return client.until("queue.updated", "session.error")[-1]


def stop() -> None:
    """End the answer that runs."""
    Response.objects.filter(finished_at=None).update(status="completed", finished_at=timezone.now())


def is_sent(chat: Chat) -> bool:
    """Return whether the queued message was sent."""
    return Message.objects.filter(chat=chat, content=WORDS).exists()


def over_rest(web: httpx.Client, _dial: Dial, who: Person, row: QueuedTurn) -> str:
    path = f"/api/v1/chats/{row.chat_id}/queue/{row.pk}/start"
    answer = web.post(path, headers=who.headers)
    return "" if answer.is_success else str(answer.json()["code"])


def on_a_socket(_web: httpx.Client, dial: Dial, who: Person, row: QueuedTurn) -> str:
    client = dial(who)
    client.create_session(chat=row.chat_id)
    client.send("queue.start", item_id=str(row.pk))
    frame = client.until("session.error", "message.created")[-1]
    return str(frame["error"]["code"]) if frame["type"] == "session.error" else ""


ROUTES: Final[dict[str, Route]] = {"REST": over_rest, "UAMP": on_a_socket}


def budget(amount: str) -> dict[str, Any]:
    return {"budget": keys.KeyBudget(amount=Money.parse(amount), period="day")}


LIMITS: Final[dict[str, Callable[[Chat], dict[str, Any]]]] = {
    "agents": lambda _chat: {"agents": ["echo"]},
    "chats": lambda chat: {"chats": [chat.pk]},
    "budget": lambda _chat: budget("5"),
}


def narrow(alice: Person, chat: Chat, limit: str) -> Person:
    """Return alice with a key that has a limit."""
    limits = LIMITS[limit](chat)
    if "agents" in limits:
        limits["agents"] = [Agent.objects.get(name=name).pk for name in limits["agents"]]
    return key_of(alice, **limits)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("limit", LIMITS)
def test_a_key_does_not_start_what_was_queued_with_more_rights(
    web: httpx.Client, dial: Dial, alice: Person, chat: Chat, limit: str, route: str
) -> None:
    row = queued(dial, alice, chat, alice)

    assert ROUTES[route](web, dial, narrow(alice, chat, limit), row) == "forbidden"

    row.refresh_from_db()
    assert (row.status, row.waits, is_sent(chat)) == ("queued", True, False)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("limit", [*LIMITS, "scopes"])
def test_a_key_starts_what_was_queued_with_its_own_rights(
    web: httpx.Client, dial: Dial, alice: Person, chat: Chat, limit: str, route: str
) -> None:
    scopes = ("chats:read", "messages:write")
    who = key_of(alice, *scopes) if limit == "scopes" else narrow(alice, chat, limit)
    row = queued(dial, alice, chat, alice if limit == "scopes" else who)

    assert not ROUTES[route](web, dial, who, row)

    wait_until(lambda: is_sent(chat))


@pytest.mark.parametrize("owner", ["own", "of another member"])
def test_a_key_queues_no_file_of_a_chat_that_it_is_not_for(
    dial: Dial, alice: Person, bob: Person, chat: Chat, owner: str
) -> None:
    file = file_of(alice if owner == "own" else bob, shared_chat(bob, alice))

    frame = queue(dial, alice, chat, key_of(alice, chats=[chat.pk]), file)

    assert frame["error"]["code"] == "content_not_found"
    assert not QueuedTurn.objects.exists()
    assert not is_shown(file, chat)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("owner", ["own", "of another member"])
@pytest.mark.parametrize("of_chats", [True, False])
def test_a_file_is_shown_by_a_queued_message_if_its_key_may_show_it_then(
    dial: Dial, alice: Person, bob: Person, chat: Chat, owner: str, *, of_chats: bool
) -> None:
    there = shared_chat(bob, alice)
    file = file_of(alice if owner == "own" else bob, None if owner == "own" else chat)
    by = key_of(alice, chats=[chat.pk]) if of_chats else alice
    row = queued(dial, alice, chat, by, file)
    # Before it is sent, the file becomes one of another chat alone.
    reading_rights.use(there.pk, [file])
    ContentUse.objects.filter(chat=chat, content_id=file).delete()
    stop()

    if of_chats or owner != "own":
        wait_until(lambda: QueuedTurn.objects.get(pk=row.pk).status == "failed")
        assert QueuedTurn.objects.get().code == "content_not_found"
        assert not is_shown(file, chat)
        assert not is_sent(chat)
    else:
        wait_until(lambda: is_sent(chat))
        assert is_shown(file, chat)


@pytest.mark.parametrize("keeps_secret", [True, False])
def test_a_message_is_not_sent_once_the_secret_that_queued_it_has_ended(
    dial: Dial, alice: Person, chat: Chat, *, keeps_secret: bool
) -> None:
    by = key_of(alice)
    row = queued(dial, alice, chat, by)
    key = ApiKey.objects.latest("pk")
    assert row.credential == key.credential
    keys.rotate_key(key, by=alice.user, keep=timedelta(hours=1 if keeps_secret else 0))
    stop()

    if keeps_secret:
        wait_until(lambda: is_sent(chat))
    else:
        wait_until(lambda: QueuedTurn.objects.get().status == "failed")
        assert QueuedTurn.objects.get().code == "unauthorized"
        assert not is_sent(chat)


@pytest.mark.parametrize("ends", ["revoked", "replaced"])
def test_a_message_to_a_chat_elsewhere_does_not_leave_once_its_key_has_ended(
    alice: Person, ends: str
) -> None:
    chat, by = shared_chat(alice), key_of(alice)
    key = ApiKey.objects.latest("pk")
    session = factories.session(by.user, chat)
    row = factories.queued_turn(by.user, session, credential=key.credential, key_version=0)
    assert rows.waiting_elsewhere([chat.pk]) == {chat.pk: row}
    if ends == "revoked":
        ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
    else:
        keys.rotate_key(key, by=alice.user)

    assert rows.waiting_elsewhere([chat.pk]) == {}

    row.refresh_from_db()
    assert (row.status, row.code) == ("failed", "unauthorized")
