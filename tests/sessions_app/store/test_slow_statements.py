"""A write that waits for a lock in the database stops neither the event loop nor reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import transaction

from chat_app.models import Chat
from tests.client import text_of
from tests.live_server import alice, bob, demo, dial, impatience, web

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial, Person

__all__ = ["alice", "bob", "demo", "dial", "impatience", "web"]


@pytest.mark.postgres
def test_other_clients_are_answered_while_a_write_waits_for_a_lock(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    writer, other = dial(alice), dial(bob)
    chat = writer.create_session(agent="echo")["chat"]
    with transaction.atomic():
        Chat.objects.select_for_update().get(pk=chat)
        writer.ask("Hello")

        other.create_session(agent="echo")
        assert web.get("/api/v1/me", headers=bob.headers).json()["username"] == "bob"
        with pytest.raises(TimeoutError):
            writer.receive(timeout=0.2)
    assert text_of(writer.until("response.done")) == "Hello"
