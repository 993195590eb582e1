"""Common fixtures of tests on sockets: the server, its demo agents, people with keys, a client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.apps import apps
from django.contrib.auth.models import User

from agents_app.demo import prepare_agents
from agents_app.models import Agent
from agents_app.providers import scripts
from chat_app.members.chats import create_chat
from sessions_app.access.auth import create_api_key
from sessions_app.process import periodic
from tests.client import UampClient

if TYPE_CHECKING:
    from pytest_django import Settings

    from chat_app.models import Chat
    from tests.conftest import ServerAddress

Dial = Callable[..., UampClient]


@dataclass(frozen=True)
class Person:
    """A person with an account and an API key."""

    user: User
    key: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers that their programs send with every request."""
        return {"Authorization": f"Bearer {self.key}"}


def person(username: str) -> Person:
    """Create an account with a key; the password is `password`."""
    user = User.objects.create_user(username, password="password")
    return Person(user, create_api_key(user, name="tests"))


def shared_chat(
    *people: Person, agents: tuple[str, ...] = ("echo",), trigger: str = "mention"
) -> Chat:
    """Create a chat with these people and agents; the first person owns it."""
    return create_chat(
        title="Shared",
        created_by_id=people[0].user.pk,
        user_ids=[member.user.pk for member in people],
        agents=[(Agent.objects.get(name=name).pk, trigger) for name in agents],
    )


def counted_rows() -> dict[str, int]:
    """Return the number of rows in each table of the protocol.

    Presence, the rows of processes and the records of counted hours are left out.
    """
    models = [
        model
        for app in ("chat_app", "sessions_app")
        for model in apps.get_app_config(app).get_models()
        if model.__name__ not in {"Presence", "ApiKey", "CountedHour", "ProcessBeat"}
    ]
    return {model.__name__: model._default_manager.count() for model in models}


@pytest.fixture
def impatience(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server stop without waiting for running work, and run its rounds more often."""
    settings.UAMP_GRACE_SECONDS = 0
    monkeypatch.setattr(periodic, "PRINCIPALS_SECONDS", 0.3)
    monkeypatch.setattr(periodic, "POLL_LOGS_SECONDS", 0.3)


@pytest.fixture
def demo(impatience: None, server: ServerAddress) -> ServerAddress:
    """Run the server with its demo agents."""
    prepare_agents()
    return server


@pytest.fixture
def dial(demo: ServerAddress) -> Iterator[Dial]:
    """Yield a function that opens sockets for a person or a visitor; they are closed at the end."""
    clients: list[UampClient] = []

    def open_socket(
        who: Person | None = None, path: str = "/uamp", headers: dict[str, str] | None = None
    ) -> UampClient:
        request_headers = {**(who.headers if who else {}), **(headers or {})}
        clients.append(UampClient(demo.ws + path, headers=request_headers))
        return clients[-1]

    yield open_socket
    for client in clients:
        client.close()


@pytest.fixture
def web(demo: ServerAddress) -> Iterator[httpx.Client]:
    """Yield an HTTP client without credentials."""
    with httpx.Client(base_url=demo.http, timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture
def alice(demo: ServerAddress) -> Person:
    """Return a person."""
    return person("alice")


@pytest.fixture
def bob(demo: ServerAddress) -> Person:
    """Return another person."""
    return person("bob")


@pytest.fixture
def mallory(demo: ServerAddress) -> Person:
    """Return a person who is in no chat."""
    return person("mallory")


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the script `slow` write its 200 words in two seconds, for tests that read all of them."""
    monkeypatch.setattr(scripts, "SLOW_PAUSE", 0.01)


def quick_agent(name: str, script: str, **options: Any) -> Agent:
    """Create a public agent that plays a script at its own pace."""
    return Agent.objects.create(name=name, is_public=True, options={"script": script, **options})


__all__ = [
    "Dial",
    "Person",
    "alice",
    "bob",
    "brisk",
    "counted_rows",
    "demo",
    "dial",
    "impatience",
    "mallory",
    "person",
    "quick_agent",
    "shared_chat",
    "web",
]
