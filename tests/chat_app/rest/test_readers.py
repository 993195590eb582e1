"""A caller's requests are read a few at a time, so that others find threads and connections."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from agents_app.rest import readers
from agents_app.rest.problems import Problem
from tests import factories
from tests.chat_app.rest.rest_caller import check_problem, post, signed_in
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_at_a_time(settings: Settings) -> Iterator[None]:
    settings.UAMP_READS_PER_CALLER = 1
    yield
    assert not readers._running
    assert not readers._waiting


def test_a_request_waits_for_another_one_of_its_caller() -> None:
    readers.enter("a")
    readers.enter("b")
    entered = threading.Event()

    def second() -> None:
        readers.enter("a")
        entered.set()

    with thread_pool(1) as pool:
        waiting = pool.submit(second)
        readers.leave("b")
        assert not entered.wait(0.2)
        readers.leave("a")
        waiting.result(10)
    readers.leave("a")


def test_a_request_is_refused_if_it_waits_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "WAIT_SECONDS", 0.05)
    readers.enter("a")
    with pytest.raises(Problem, match="too many requests under way"):
        readers.enter("a")
    readers.leave("a")


def test_too_many_waiting_reads_are_refused_and_writes_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readers, "WAITING", 0)
    ada, bob = factories.user("ada"), factories.user("bob")
    client, path = signed_in(ada), f"/api/v1/chats/{factories.chat(ada, bob).pk}"
    reader = f"user:{ada.pk}"
    readers.enter(reader)
    refused = client.get(path)
    assert check_problem(refused, 429, "rate_limit_exceeded")["retry_after"] == 1
    assert refused["Retry-After"] == "1"
    assert signed_in(bob).get(path).status_code == 200
    assert post(client, f"{path}/fork", {}).status_code != 429
    readers.leave(reader)
    for status, tail in ((200, ""), (404, "/none"), (400, "/messages?limit=x"), (200, "")):
        assert client.get(f"{path}{tail}").status_code == status
