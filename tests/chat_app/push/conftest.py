"""The fixtures of these tests: the real server, and a push service on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests import factories
from tests.chat_app.push.push_rounds import signed_in, subscribe
from tests.live_server import alice, bob, demo, impatience, web
from tests.push_service import push_service

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from chat_app.models import Chat
    from tests.push_service import PushBrowser, PushService

__all__ = ["alice", "bob", "demo", "impatience", "push_service", "web"]


@pytest.fixture
def ada() -> User:
    return factories.user("ada")


@pytest.fixture
def grace() -> User:
    return factories.user("grace")


@pytest.fixture
def chat(ada: User, grace: User) -> Chat:
    """Return a chat of three, in which only mentions notify."""
    return factories.chat(ada, grace, factories.user("joan"), title="Plans")


@pytest.fixture
def browser(ada: User, push_service: PushService) -> PushBrowser:
    """Return a browser in which Ada is signed in, with a subscription."""
    new_browser = push_service.browser("ada")
    assert subscribe(signed_in(ada), new_browser.subscription).status_code == 201
    return new_browser
