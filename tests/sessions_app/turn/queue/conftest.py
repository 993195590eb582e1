"""A chat in which an answer is running."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sessions_app.process import periodic
from tests.live_server import Dial, Person, quick_agent, shared_chat
from tests.sessions_app.turn.queue.messages import inside

if TYPE_CHECKING:
    from chat_app.models import Chat
    from tests.client import UampClient


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "QUEUE_SECONDS", 0.1)


@pytest.fixture
def chat(alice: Person, bob: Person) -> Chat:
    """Give a chat of alice and bob with an agent that speaks until it is stopped."""
    quick_agent("endless", "slow", words=2000)
    return shared_chat(alice, bob, agents=("echo", "endless", "slow"))


@pytest.fixture
def busy(dial: Dial, alice: Person, chat: Chat) -> UampClient:
    """Return alice's socket; an answer runs in the chat."""
    client = inside(dial, alice, chat)
    client.ask("@endless talk")
    client.until("response.created")
    return client
