"""A key that is limited to agents sends no message to a chat whose home decides who answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.conversation import mirrors
from sessions_app.models import QueuedTurn
from tests.client import new_event
from tests.gateway_app.test_keys_of_one_agent import limited
from tests.live_server import quick_agent

if TYPE_CHECKING:
    import httpx

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = "@echo do this"


@pytest.fixture
def chat_id(demo: ServerAddress, alice: Person) -> str:
    """Return the id of a mirror that alice is in."""
    quick_agent("helper", "echo")
    return mirrors.make_mirror(home="client.example", title="Theirs", member=alice.user)


@pytest.mark.parametrize("route", ["UAMP", "batch", "REST", "REST, waiting"])
def test_a_message_to_a_chat_elsewhere_needs_a_key_for_all_agents(
    dial: Dial, web: httpx.Client, alice: Person, chat_id: str, route: str
) -> None:
    def send(who: Person) -> str:
        if route == "UAMP":
            client = dial(who)
            client.create_session(chat=chat_id)
            client.ask(WORDS)
            return str(client.until("session.error", "queue.updated")[-1])
        if route == "batch":
            batch = [
                new_event("session.create", uamp_version="1.0", session={}, chat=chat_id),
                new_event("input.text", text=WORDS),
                new_event("response.create"),
            ]
            return web.post("/uamp", json=batch, headers=who.headers).text
        body: dict[str, Any] = {"content": WORDS}
        if route == "REST, waiting":
            body["wait"] = 30
        path = f"/api/v1/chats/{chat_id}/messages"
        return web.post(path, json=body, headers=who.headers).text

    refused = send(limited(alice, "helper"))
    assert "forbidden" in refused, refused
    assert "limited to certain agents" in refused
    assert not QueuedTurn.objects.exists()

    assert "forbidden" not in send(alice)
    assert QueuedTurn.objects.get().text == WORDS
