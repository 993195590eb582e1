"""Cards over REST: who asks, which pages are read, and how often."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from chat_app.link_cards import cards, tasks
from chat_app.models import Chat, LinkCard, Message
from sessions_app.process import retention
from tests import factories
from tests.http_server import LocalServer, QuietHandler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

pytestmark = pytest.mark.django_db

PAGE = b"<title>A page</title><meta name=description content='About it'>"


class Site(LocalServer):
    """A site of a few pages, which remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        site = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:  # noqa: N802 the interface's
                site.asked.append(self.path)
                status, kind, body = {
                    "/page": (200, "text/html; charset=utf-8", PAGE),
                    "/gone": (404, "text/html", PAGE),
                    "/picture": (200, "image/png", PAGE),
                    "/large": (200, "text/html", PAGE + b" " * tasks.PAGE_BYTES),
                }[self.path]
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Handler)


@pytest.fixture
def site(settings: Settings) -> Iterator[Site]:
    """Give a site whose pages may be read."""
    settings.UAMP_LINK_CARDS = True
    with serving(Site()) as running:
        settings.UAMP_FETCH_ALLOW_HOSTS = [running.origin.removeprefix("http://")]
        yield running


@pytest.fixture
def ada() -> User:
    """Return a person."""
    return factories.user("ada")


@pytest.fixture
def chat(ada: User) -> Chat:
    """Return a chat of ada and an agent."""
    return factories.chat(ada, factories.agent("echo"))


class Reader:
    """A person who reads the cards of messages; pages are read when the answer is there."""

    def __init__(
        self,
        person: User,
        capture: DjangoCaptureOnCommitCallbacks,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.client = Client()
        self.client.force_login(person)
        self.capture = capture
        monkeypatch.setattr(
            tasks.read_link, "apply_async", lambda kwargs, **_: tasks.read_link(**kwargs)
        )

    def ask(self, message: Message, status: int = 200) -> Any:
        """Ask for the cards of a message."""
        with self.capture(execute=True):
            answer = self.client.post(f"/api/v1/messages/{message.pk}/link-cards")
        assert answer.status_code == status, answer.content
        return answer.json()


@pytest.fixture
def reader(
    ada: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    monkeypatch: pytest.MonkeyPatch,
) -> Reader:
    """Return ada as a reader."""
    return Reader(ada, django_capture_on_commit_callbacks, monkeypatch)


def test_a_page_is_read_once_for_all(site: Site, chat: Chat, ada: User, reader: Reader) -> None:
    message = factories.message(chat, ada, f"Look: {site.origin}/page")
    assert reader.ask(message) == {"cards": [], "pending": True}
    card = {
        "url": f"{site.origin}/page",
        "title": "A page",
        "description": "About it",
        "site": "",
    }
    assert reader.ask(message) == {"cards": [card], "pending": False}
    other = factories.message(chat, ada, f"Again {site.origin}/page")
    assert reader.ask(other)["cards"] == [card]
    assert site.asked == ["/page"]
    # The address, which may hold a secret, is in no row.
    assert site.origin not in str(LinkCard.objects.values())


@pytest.mark.parametrize("path", ["gone", "picture", "large"])
def test_a_link_that_is_not_to_a_page_has_no_card(
    site: Site, chat: Chat, ada: User, reader: Reader, path: str
) -> None:
    message = factories.message(chat, ada, f"{site.origin}/{path}")
    assert reader.ask(message)["pending"]
    assert reader.ask(message) == {"cards": [], "pending": False}
    assert reader.ask(message) == {"cards": [], "pending": False}
    assert site.asked == [f"/{path}"]


def test_the_guard_decides_what_is_read(
    site: Site, chat: Chat, ada: User, reader: Reader, settings: Settings
) -> None:
    settings.UAMP_FETCH_ALLOW_HOSTS = []
    message = factories.message(chat, ada, f"{site.origin}/page http://169.254.169.254/latest")
    assert reader.ask(message)["pending"]
    assert reader.ask(message) == {"cards": [], "pending": False}
    assert site.asked == []


def test_pages_that_agents_name_are_not_read(site: Site, chat: Chat, reader: Reader) -> None:
    agent = factories.agent("misled")
    message = factories.message(chat, agent, f"{site.origin}/page")
    assert reader.ask(message) == {"cards": [], "pending": False}
    assert site.asked == []
    assert not LinkCard.objects.exists()


def test_only_members_ask(
    site: Site, chat: Chat, ada: User, reader: Reader, settings: Settings
) -> None:
    message = factories.message(chat, ada, f"{site.origin}/page")
    reader.client.force_login(factories.user("mallory"))
    reader.ask(message, status=404)
    reader.client.logout()
    assert reader.client.post(f"/api/v1/messages/{message.pk}/link-cards").status_code == 401
    reader.client.force_login(ada)
    settings.UAMP_LINK_CARDS = False
    assert reader.ask(message) == {"cards": [], "pending": False}
    assert site.asked == []


def test_requests_are_counted(
    site: Site, chat: Chat, ada: User, reader: Reader, settings: Settings
) -> None:
    settings.UAMP_LINK_CARDS_PER_MINUTE = 1
    message = factories.message(chat, ada, "no link")
    reader.ask(message)
    reader.ask(message, status=429)


def test_a_page_is_read_again_after_a_time(
    site: Site, chat: Chat, ada: User, reader: Reader
) -> None:
    message = factories.message(chat, ada, f"{site.origin}/page")
    reader.ask(message)
    LinkCard.objects.update(created_at=timezone.now() - cards.CARD_LIFETIME - timedelta(seconds=1))
    # The former card is shown meanwhile.
    answer = reader.ask(message)
    assert (len(answer["cards"]), answer["pending"]) == (1, True)
    assert site.asked == ["/page", "/page"]
    assert not reader.ask(message)["pending"]


def test_a_page_that_no_worker_read_is_asked_for_again(
    site: Site, chat: Chat, ada: User, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(tasks.read_link, "apply_async", lambda **options: lost.append(options))
        message = factories.message(chat, ada, f"{site.origin}/page")
        assert reader.ask(message)["pending"]
        assert reader.ask(message)["pending"]
        assert len(lost) == 1
    LinkCard.objects.update(created_at=timezone.now() - cards.FETCH_RETRY - timedelta(seconds=1))
    assert reader.ask(message)["pending"]
    assert reader.ask(message)["cards"]


def test_a_broker_that_is_away_fails_no_request(
    site: Site, chat: Chat, ada: User, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_given: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(tasks.read_link, "apply_async", fail)
    assert reader.ask(factories.message(chat, ada, f"{site.origin}/page"))["pending"]


def test_old_cards_are_deleted(site: Site, chat: Chat, ada: User, reader: Reader) -> None:
    reader.ask(factories.message(chat, ada, f"{site.origin}/page"))
    retention.sweep()
    assert LinkCard.objects.exists()
    LinkCard.objects.update(created_at=timezone.now() - cards.FORGOTTEN - timedelta(seconds=1))
    retention.sweep()
    assert not LinkCard.objects.exists()
