"""With HTTPS on, a proxy that does not send X-Forwarded-Proto is reported, not sent in circles."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from uamp_project.edge import application
from uamp_project.edge.application import Edge

if TYPE_CHECKING:
    from pytest_django import Settings

    from uamp_project.edge.transports import Message, Receive, Scope, Send

PROXY, OTHER = "10.0.0.2", "203.0.113.7"


async def pages(_: Scope, __: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"page"})


def get(path: str, peer: str, scheme: str, **headers: str) -> tuple[int, bytes]:
    """Return status and body of the answer to a request."""
    sent: list[Message] = []
    lines = [(name.replace("_", "-").encode(), v.encode()) for name, v in headers.items()]
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": path, "scheme": scheme}
    scope |= {"query_string": b"", "headers": lines, "client": (peer, 4711)}

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(Edge(pages)(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize(
    ("path", "peer", "scheme", "headers", "status"),
    [
        ("/login", PROXY, "http", {}, 400),
        ("/api/v1/me", PROXY, "http", {"x_forwarded_for": OTHER}, 400),
        ("/login", PROXY, "http", {"x_forwarded_proto": "https"}, 200),
        # Django redirects it.
        ("/login", PROXY, "http", {"x_forwarded_proto": "http"}, 200),
        # A server that ends TLS itself.
        ("/login", PROXY, "https", {}, 200),
        ("/login", OTHER, "http", {}, 200),
        ("/readyz", PROXY, "http", {}, 200),
        ("/metrics", PROXY, "http", {}, 200),
        ("/events", PROXY, "http", {}, 400),
    ],
)
def test_a_proxy_that_does_not_name_the_scheme_is_refused(
    settings: Settings, path: str, peer: str, scheme: str, headers: dict[str, str], status: int
) -> None:
    settings.UAMP_TRUSTED_PROXIES, settings.HTTPS = [PROXY], True
    answer = get(path, peer, scheme, **headers)
    assert answer[0] == status
    if status == 400:
        assert "does not send X-Forwarded-Proto" in json.loads(answer[1])["detail"]
    settings.HTTPS = False
    assert get(path, peer, scheme, **headers) == (200, b"page")


def test_it_is_logged_once(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    settings.UAMP_TRUSTED_PROXIES, settings.HTTPS = [PROXY], True
    application._warn_of_proxy.cache_clear()
    with caplog.at_level(logging.WARNING, logger="uamp_project.edge.application"):
        for _ in range(3):
            get("/login", PROXY, "http")

    (record,) = caplog.records
    assert "does not send X-Forwarded-Proto" in record.getMessage()
