"""Pages of other sites: what a browser lets them read, and with which credentials (CORS)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from tests.client import new_event
from tests.live_server import quick_agent

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.live_server import Person

pytestmark = pytest.mark.any_database

PAGE = "https://app.example"
ALLOW_ORIGIN = "Access-Control-Allow-Origin"
WITH_COOKIES = "Access-Control-Allow-Credentials"
PROGRAMS = (
    "/uamp",
    "/uamp/stream",
    "/events",
    "/events/stream",
    "/agents/echo/uamp",
    "/agents/echo/anything/of/another/protocol",
    "/capabilities",
    "/models",
    "/info",
    "/api/v1/me",
)
PAGES = ("/", "/account", "/login", "/admin/login/", "/chats/one")
TURN = [
    new_event("session.create", uamp_version="1.0", session={}, agent="priced"),
    new_event("input.text", text="Hello"),
    new_event("response.create"),
]


def preflight(web: httpx.Client, path: str, origin: str = PAGE) -> httpx.Response:
    """Send what a browser sends before a request with a key and JSON."""
    return web.options(
        path,
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type,payment-signature",
        },
    )


@pytest.mark.sampled
@pytest.mark.parametrize("path", PROGRAMS)
@pytest.mark.parametrize("allowed", [[PAGE, "http://other.example"], ["*"]], ids=["listed", "all"])
def test_a_preflight_of_an_allowed_origin_is_answered(
    web: httpx.Client, settings: Settings, path: str, allowed: list[str]
) -> None:
    settings.UAMP_CORS_ORIGINS = allowed
    answer = preflight(web, path)
    assert answer.status_code == httpx.codes.OK
    assert answer.headers[ALLOW_ORIGIN] == ("*" if allowed == ["*"] else PAGE)
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    headers_needed = {"authorization", "content-type", "payment-signature"}
    allowed_headers = answer.headers["Access-Control-Allow-Headers"]
    assert headers_needed <= {name.strip() for name in allowed_headers.split(",")}
    assert WITH_COOKIES not in answer.headers


def test_another_origin_is_not_allowed(web: httpx.Client, settings: Settings) -> None:
    settings.UAMP_CORS_ORIGINS = [PAGE]
    refused = preflight(web, "/uamp", "https://evil.example")
    assert refused.status_code == httpx.codes.BAD_REQUEST
    assert ALLOW_ORIGIN not in refused.headers
    read = web.get("/info", headers={"Origin": "https://evil.example"})
    assert ALLOW_ORIGIN not in read.headers


@pytest.mark.parametrize("path", PAGES)
def test_the_pages_of_this_server_are_for_no_other_origin(
    web: httpx.Client, settings: Settings, path: str
) -> None:
    settings.UAMP_CORS_ORIGINS = ["*"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://trusted.example"]
    for origin in (PAGE, "https://trusted.example"):
        assert ALLOW_ORIGIN not in web.get(path, headers={"Origin": origin}).headers
        assert ALLOW_ORIGIN not in preflight(web, path, origin).headers


def test_without_the_setting_no_page_reads_an_answer(web: httpx.Client) -> None:
    assert preflight(web, "/uamp").status_code == httpx.codes.METHOD_NOT_ALLOWED
    assert ALLOW_ORIGIN not in web.get("/info", headers={"Origin": PAGE}).headers


def test_only_a_trusted_origin_may_send_its_cookie(web: httpx.Client, settings: Settings) -> None:
    settings.UAMP_CORS_ORIGINS = ["*"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://trusted.example"]
    trusted = web.get("/info", headers={"Origin": "https://trusted.example"})
    assert trusted.headers[ALLOW_ORIGIN] == "https://trusted.example"
    assert trusted.headers[WITH_COOKIES] == "true"
    web.cookies.set("any", "cookie")
    other = web.get("/info", headers={"Origin": PAGE})
    assert WITH_COOKIES not in other.headers


def test_a_page_pays_and_reads_the_headers_of_the_demand(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_CORS_ORIGINS = [PAGE]
    agent = quick_agent("priced", "echo")
    agent.pricing = {"per_answer": "0.25"}
    agent.save()
    refused = web.post("/uamp", json=TURN, headers={**alice.headers, "Origin": PAGE})
    assert refused.status_code == httpx.codes.PAYMENT_REQUIRED
    assert refused.headers[ALLOW_ORIGIN] == PAGE
    exposed = {n.strip() for n in refused.headers["Access-Control-Expose-Headers"].split(",")}
    assert "PAYMENT-REQUIRED" in exposed
    assert "PAYMENT-REQUIRED" in refused.headers


def test_a_page_reads_a_refusal_of_the_edge_too(web: httpx.Client, settings: Settings) -> None:
    settings.UAMP_CORS_ORIGINS = [PAGE]
    settings.UAMP_REQUESTS_PER_MINUTE = 0
    refused = web.post("/uamp", json=TURN, headers={"Origin": PAGE})
    assert refused.status_code == httpx.codes.TOO_MANY_REQUESTS
    assert refused.headers[ALLOW_ORIGIN] == PAGE
    assert "Retry-After" in refused.headers["Access-Control-Expose-Headers"]
    assert int(refused.headers["Retry-After"]) > 0


def test_a_preflight_with_a_body_is_limited_like_every_request(
    web: httpx.Client, settings: Settings
) -> None:
    settings.UAMP_CORS_ORIGINS = ["*"]
    settings.UAMP_REQUESTS_PER_MINUTE = 0
    headers = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    flood = web.request("OPTIONS", "/uamp", headers=headers, content=b"x" * 4096)
    assert flood.status_code == httpx.codes.TOO_MANY_REQUESTS
