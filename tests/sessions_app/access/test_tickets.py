"""One-time tickets: a socket or a stream opened without a key in its URL."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import pytest
from django.utils import timezone
from websockets.exceptions import InvalidStatus

from sessions_app.models import ApiKey, Session, Ticket
from tests.client import open_stream, output_text
from tests.threads import join_threads

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.client import UampClient
    from tests.live_server import Dial, Person


def ticket_of(web: httpx.Client, who: Person) -> str:
    answer = web.post("/api/v1/tickets", json={}, headers=who.headers)
    assert answer.status_code == httpx.codes.CREATED, answer.text
    assert "no-store" in answer.headers["Cache-Control"]
    ticket: str = answer.json()["ticket"]
    return ticket


def test_a_ticket_opens_one_socket_as_the_caller_who_asked_for_it(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    ticket = ticket_of(web, alice)
    client = dial(path=f"/uamp?ticket={ticket}")
    client.create_session(agent="echo")
    assert output_text(client.answer("Hello")[-1]) == "Hello"
    session = Session.objects.get()
    assert (session.user, session.api_key) == (alice.user, ApiKey.objects.get())
    with pytest.raises(InvalidStatus):
        dial(path=f"/uamp?ticket={ticket}")


def test_a_ticket_opens_a_stream(dial: Dial, web: httpx.Client, alice: Person) -> None:
    session_id = dial(alice).create_session(agent="echo")["session_id"]
    query = {"session_id": session_id, "ticket": ticket_of(web, alice)}
    with open_stream(web, "GET", "/events/stream", params=query) as stream:
        stream.until("session.created")
    assert web.get("/events/stream", params=query).status_code == httpx.codes.UNAUTHORIZED


def test_of_connections_with_one_ticket_only_one_opens(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    path = f"/uamp?ticket={ticket_of(web, alice)}"
    opened: list[UampClient] = []
    begin = threading.Barrier(6)

    def open_it() -> None:
        begin.wait(60)
        try:
            opened.append(dial(path=path))
        except InvalidStatus:
            return

    racing = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in racing:
        thread.start()
    join_threads(racing)
    assert len(opened) == 1


@pytest.mark.parametrize("ended", ["expired", "revoked", "deactivated", "of an expired key"])
def test_a_ticket_that_ended_opens_nothing_and_is_used_up(
    dial: Dial, web: httpx.Client, alice: Person, ended: str
) -> None:
    ticket = ticket_of(web, alice)
    now = timezone.now()
    match ended:
        case "expired":
            Ticket.objects.update(expires_at=now - timedelta(seconds=1))
        case "revoked":
            ApiKey.objects.update(revoked_at=now)
        case "deactivated":
            alice.user.is_active = False
            alice.user.save()
        case _:
            ApiKey.objects.update(expires_at=now)
    with pytest.raises(InvalidStatus):
        dial(path=f"/uamp?ticket={ticket}")
    assert not Ticket.objects.exists()


@pytest.mark.parametrize("bad", ["utk_unknown", "%00", "schl%C3%BCssel", "uak_" + "0" * 40])
def test_a_bad_ticket_is_refused_and_never_falls_back_to_a_visitor(
    web: httpx.Client, bad: str
) -> None:
    answer = web.post(f"/uamp?ticket={bad}", json={"events": []})
    assert answer.status_code == httpx.codes.UNAUTHORIZED, answer.text


def test_no_caller_gets_a_ticket_without_signing_in_or_more_than_can_be_used(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    assert web.post("/api/v1/tickets", json={}).status_code == httpx.codes.UNAUTHORIZED
    settings.UAMP_TICKETS_PER_USER = 2
    for _ in range(2):
        ticket_of(web, alice)
    refused = web.post("/api/v1/tickets", json={}, headers=alice.headers)
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limit_exceeded")
    Ticket.objects.update(expires_at=timezone.now())
    ticket_of(web, alice)
    assert Ticket.objects.count() == 1, "those that expired are deleted"
