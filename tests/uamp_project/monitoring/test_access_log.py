"""The access log: a line for each request and socket, without paths, queries and credentials."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.client import UampClient, wait_until
from tests.live_server import alice, demo, impatience, web
from uamp_project.monitoring.log_forms import JsonFormatter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

    from tests.conftest import ServerAddress
    from tests.live_server import Person

__all__ = ["alice", "demo", "impatience", "web"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lines(
    demo: ServerAddress, caplog: pytest.LogCaptureFixture
) -> Iterator[Callable[[], list[logging.LogRecord]]]:
    """Switch the log on once the server runs, and return its lines so far."""
    with caplog.at_level(logging.INFO, logger="telemetry.access_log"):
        yield lambda: [record for record in caplog.records if record.name == "telemetry.access_log"]


def parts(record: logging.LogRecord) -> tuple[str, str, int, str]:
    line = json.loads(JsonFormatter().format(record))
    assert line["duration_ms"] >= 0
    return line["method"], line["route"], line["status"], line["principal"]


def test_a_request_has_its_route_status_and_principal(
    lines: Callable[[], list[logging.LogRecord]], web: httpx.Client, alice: Person
) -> None:
    me = f"user:{alice.user.pk}"
    browser = Client()
    browser.force_login(alice.user)
    cookie = {"Cookie": f"sessionid={browser.cookies['sessionid'].value}"}
    body = {"model": "echo", "messages": [{"role": "user", "content": "secret-words"}]}
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "/api/v1/chats?cursor=secret-cursor", {"headers": alice.headers}),
        ("GET", "/api/v1/chats", {"headers": cookie}),
        ("GET", "/secret-place", {}),
        ("GET", "/api/v1/chats", {"headers": {"Authorization": "Bearer secret-key"}}),
        ("POST", "/v1/chat/completions", {"headers": alice.headers, "json": body}),
    ]
    for count, (method, path, options) in enumerate(requests, start=1):
        web.request(method, path, **options)
        # A line is written after the answer that it describes.
        wait_until(lambda: len(lines()) >= count)  # noqa: B023 called at once

    assert [parts(record) for record in lines()] == [
        ("GET", "api/v1/chats", HTTPStatus.BAD_REQUEST, me),
        ("GET", "api/v1/chats", HTTPStatus.OK, me),
        ("GET", "-", HTTPStatus.NOT_FOUND, "-"),
        ("GET", "api/v1/chats", HTTPStatus.UNAUTHORIZED, "-"),
        ("POST", r"^(?:v1/)?chat/completions/?\Z", HTTPStatus.OK, me),
    ]
    assert not any("secret" in record.getMessage() for record in lines())


def test_a_socket_is_logged_when_it_ends(
    lines: Callable[[], list[logging.LogRecord]], demo: ServerAddress, alice: Person
) -> None:
    with UampClient(f"{demo.ws}/ws", headers=alice.headers):
        assert lines() == []
    wait_until(lambda: len(lines()) == 1)

    assert parts(lines()[0]) == ("SOCKET", "websocket", 0, f"user:{alice.user.pk}")


def test_without_the_setting_nothing_is_written(
    caplog: pytest.LogCaptureFixture, web: httpx.Client, alice: Person
) -> None:
    web.get("/api/v1/chats", headers=alice.headers)

    assert [record for record in caplog.records if record.name == "telemetry.access_log"] == []
