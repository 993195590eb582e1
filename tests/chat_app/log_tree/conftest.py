"""Chats whose heads are in the tree, and a client of a server that knows a witness."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.utils import timezone

from chat_app.log.checkpoints import sign_heads
from chat_app.log_tree.growth import grow
from signing_app import owner_keys
from tests import factories
from tests.uamp.transparency.test_tree import WITNESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from pytest_django import Settings

    from chat_app.models import Chat


@pytest.fixture(autouse=True)
def fresh_keys() -> Iterator[None]:
    """Forget the keys of other tests, whose rows are gone."""
    owner_keys.forget()
    yield
    owner_keys.forget()


@pytest.fixture
def ada() -> User:
    """Return the person who writes."""
    return factories.user()


@pytest.fixture
def chats(ada: User) -> list[Chat]:
    """Return chats whose heads are in the tree."""
    new_chats = [factories.chat(ada, title=f"Plans {n}") for n in range(5)]
    for number, chat in enumerate(new_chats):
        factories.message(chat, ada, f"number {number}")
    sign_heads(timezone.now())
    grow(timezone.now())
    return new_chats


@pytest.fixture
def client(settings: Settings) -> Client:
    """Return a client of a server that knows the witness."""
    encoded = base64.b64encode(b"\x04" + WITNESS.public_key).decode()
    settings.UAMP_WITNESSES = [f"{WITNESS.name}+{WITNESS.key_id.hex()}+{encoded}"]
    return Client()
