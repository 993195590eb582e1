"""The stored answers of HTTP connections are limited in length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sessions_app import http_connections
from sessions_app.access.principal import Principal
from sessions_app.models import HttpConnection, UnansweredRequest

if TYPE_CHECKING:
    from tests.live_server import Person

pytestmark = pytest.mark.any_database


def test_a_connection_keeps_unread_answers_up_to_a_length(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "KEPT_CHARS_PER_CONNECTION", 100)
    person = Principal(key=f"user:{alice.user.pk}", user_id=alice.user.pk)
    opened = http_connections.open_connection(person, transport="acp", agent="echo")
    first, second = (
        http_connections.add_request(opened, number, session_id=None) for number in ("1", "2")
    )
    http_connections.keep_answer(first, "x" * 100)
    http_connections.add_request(opened, "3", session_id=None)
    http_connections.keep_answer(second, "y")

    with pytest.raises(http_connections.TooManyRequests):
        http_connections.add_request(opened, "4", session_id=None)
    assert http_connections.take_answer(first) == "x" * 100
    assert http_connections.take_answer(first) is None
    http_connections.add_request(opened, "4", session_id=None)


def test_all_connections_of_a_person_keep_unread_answers_up_to_a_length(
    alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "KEPT_CHARS_PER_PRINCIPAL", 100)

    def opened(who: Person) -> str:
        person = Principal(key=f"user:{who.user.pk}", user_id=who.user.pk)
        return http_connections.open_connection(person, transport="acp", agent="echo")

    first, second, third = opened(alice), opened(alice), opened(bob)
    for connection_id in (first, second):
        request = http_connections.add_request(connection_id, "1", session_id=None)
        http_connections.keep_answer(request, "x" * 51)

    for connection_id in (first, second, opened(alice)):
        with pytest.raises(http_connections.TooManyRequests):
            http_connections.add_request(connection_id, "2", session_id=None)
    http_connections.add_request(third, "2", session_id=None)
    http_connections.close_connection(second)
    http_connections.add_request(first, "2", session_id=None)


def test_all_visitors_from_an_address_keep_unread_answers_up_to_a_length(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "KEPT_CHARS_PER_PRINCIPAL", 100)

    def opened(visitor: str, address: str) -> str:
        principal = Principal(key=f"anonymous:{visitor}", address=address)
        return http_connections.open_connection(principal, transport="acp", agent="echo")

    for visitor in ("a", "b"):
        request = http_connections.add_request(opened(visitor, "2001:db8::1"), "1", session_id=None)
        http_connections.keep_answer(request, "x" * 51)

    with pytest.raises(http_connections.TooManyRequests):
        http_connections.add_request(opened("c", "2001:db8::2"), "1", session_id=None)
    http_connections.add_request(opened("d", "2001:db8:1::1"), "1", session_id=None)


def test_connections_of_an_earlier_release_count_for_their_principals(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "KEPT_CHARS_PER_PRINCIPAL", 100)
    ada, eve = (
        http_connections.open_connection(Principal(key=key), transport="acp", agent="echo")
        for key in ("user:1", "user:2")
    )
    HttpConnection.objects.update(counted_as="")
    http_connections.keep_answer(http_connections.add_request(ada, "1", session_id=None), "x" * 101)
    http_connections.add_request(eve, "1", session_id=None)
    with pytest.raises(http_connections.TooManyRequests):
        http_connections.add_request(ada, "2", session_id=None)


def test_requests_at_the_same_time_keep_no_more_answers_than_requests_in_turn(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "KEPT_CHARS_PER_CONNECTION", 100)
    opened = http_connections.open_connection(
        Principal(key="user:1", user_id=1), transport="acp", agent="echo"
    )
    first, second, third = (
        http_connections.add_request(opened, number, session_id=None) for number in "123"
    )
    http_connections.keep_answer(first, "x" * 51)
    http_connections.keep_answer(second, "x" * 51)

    with pytest.raises(http_connections.TooManyRequests):
        http_connections.keep_answer(third, "x")
    http_connections.keep_answer(third, "refused", is_refusal=True)
    answers = UnansweredRequest.objects.order_by("pk").values_list("answer", flat=True)
    assert list(answers) == ["x" * 51, "x" * 51, "refused"]


def test_answers_that_an_earlier_release_stored_count_by_their_text(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "KEPT_CHARS_PER_CONNECTION", 50)
    opened = http_connections.open_connection(
        Principal(key="user:1", user_id=1), transport="acp", agent="echo"
    )
    pk = http_connections.add_request(opened, "1", session_id=None)
    UnansweredRequest.objects.filter(pk=pk).update(answer="ä" * 51)
    with pytest.raises(http_connections.TooManyRequests):
        http_connections.add_request(opened, "2", session_id=None)
    # This release stores their length, and does not read them to count it.
    UnansweredRequest.objects.filter(pk=pk).update(answer_chars=1)
    http_connections.add_request(opened, "2", session_id=None)
    http_connections.keep_answer(pk, "ä" * 51)
    assert UnansweredRequest.objects.get(pk=pk).answer_chars == 51
