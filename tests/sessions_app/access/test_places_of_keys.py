"""A key is read from every place in which clients send one, by HTTP and on a WebSocket alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from sessions_app.access.auth import Handshake, OriginError
from sessions_app.models import Session
from tests.client import new_event

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

HEADERS = {
    "bearer": ("Authorization", "Bearer {key}"),
    "x-api-key": ("X-API-Key", "{key}"),
    "azure": ("api-key", "{key}"),
}
QUERIES = ("token", "access_token", "api_key")
SUBPROTOCOLS = ["realtime", "openai-insecure-api-key.{key}", "openai-beta.realtime-v1"]
OPEN = new_event("session.create", uamp_version="1.0", session={}, agent="echo")
FOREIGN = {"Origin": "https://elsewhere.example"}


def headers_and_query(place: str, key: str) -> dict[str, Any]:
    """Return the headers and the query that show a key in a place."""
    if place in QUERIES:
        return {"headers": {}, "query": f"?{place}={key}"}
    name, value = HEADERS[place]
    return {"headers": {name: value.format(key=key)}, "query": ""}


def open_socket(url: str, headers: dict[str, str], subprotocols: list[str] | None = None) -> str:
    """Open a session on a socket; return the type of the first frame."""
    with connect(
        url,
        additional_headers=headers,
        subprotocols=subprotocols,  # type: ignore[arg-type]  # they are plain texts
        proxy=None,
    ) as socket:
        socket.send(json.dumps(OPEN))
        kind: str = json.loads(socket.recv(timeout=60))["type"]
        return kind


@pytest.mark.sampled
@pytest.mark.parametrize("place", [*HEADERS, *QUERIES])
@pytest.mark.parametrize("page", [{}, FOREIGN], ids=["program", "foreign page"])
def test_a_key_is_good_in_every_place_by_http_and_on_a_socket(
    demo: ServerAddress, web: httpx.Client, alice: Person, place: str, page: dict[str, str]
) -> None:
    good, bad = (
        headers_and_query(place, alice.key),
        headers_and_query(place, "uak_00000000_guessed"),
    )
    answer = web.post(f"/uamp{good['query']}", json=[OPEN], headers={**good["headers"], **page})
    assert answer.status_code == httpx.codes.OK, answer.text
    headers = {**good["headers"], **page}
    assert open_socket(f"{demo.ws}/uamp{good['query']}", headers) == "session.created"
    assert [row.user for row in Session.objects.select_related("user")] == [alice.user] * 2
    refused = web.post(f"/uamp{bad['query']}", json=[OPEN], headers=bad["headers"])
    assert refused.status_code == httpx.codes.UNAUTHORIZED
    with pytest.raises(InvalidStatus):
        open_socket(f"{demo.ws}/uamp{bad['query']}", bad["headers"])


def test_a_key_in_a_subprotocol_opens_a_socket(demo: ServerAddress, alice: Person) -> None:
    offered = [subprotocol.format(key=alice.key) for subprotocol in SUBPROTOCOLS]
    assert open_socket(f"{demo.ws}/uamp", FOREIGN, offered) == "session.created"
    assert Session.objects.get().user == alice.user
    with pytest.raises(InvalidStatus):
        open_socket(
            f"{demo.ws}/uamp",
            {},
            [subprotocol.format(key="guessed") for subprotocol in SUBPROTOCOLS],
        )


def test_a_subprotocol_that_is_a_key_is_neither_selected_nor_in_a_repr() -> None:
    key = "uak_00000000_secret"
    scope = {
        "headers": [(b"x-api-key", key.encode())],
        "query_string": f"token={key}".encode(),
        "subprotocols": [subprotocol.format(key=key) for subprotocol in SUBPROTOCOLS],
    }
    handshake = Handshake.of(scope)
    assert handshake.dialects == ("realtime", "openai-beta.realtime-v1")
    assert key not in repr(handshake)
    assert Handshake.of({**scope, "headers": [], "query_string": b""}).token == key


def test_the_address_of_the_server_is_the_one_that_the_client_wrote(settings: Settings) -> None:
    scope = {"headers": [(b"host", b"127.0.0.1:8000")], "scheme": "ws"}
    assert Handshake.of(scope).base_url == "http://127.0.0.1:8000"
    assert Handshake.of({**scope, "scheme": "wss"}).base_url == "https://127.0.0.1:8000"
    settings.ALLOWED_HOSTS = ["own.example"]
    with pytest.raises(OriginError):
        _ = Handshake.of(scope).base_url


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", [*HEADERS, *QUERIES])
def test_discovery_takes_a_key_in_every_place(web: httpx.Client, alice: Person, place: str) -> None:
    good, bad = headers_and_query(place, alice.key), headers_and_query(place, "guessed")
    for path in ("/models", "/agents/echo/info"):
        answer = web.get(f"{path}{good['query']}", headers=good["headers"])
        assert answer.status_code == httpx.codes.OK
        refused = web.get(f"{path}{bad['query']}", headers=bad["headers"])
        assert refused.status_code == httpx.codes.UNAUTHORIZED


@pytest.mark.parametrize("place", HEADERS)
def test_rest_takes_a_key_in_a_header(web: httpx.Client, alice: Person, place: str) -> None:
    good, bad = headers_and_query(place, alice.key), headers_and_query(place, "guessed")
    answer = web.get("/api/v1/me", headers={**good["headers"], **FOREIGN})
    assert answer.json()["username"] == "alice"
    assert web.get("/api/v1/me", headers=bad["headers"]).status_code == httpx.codes.UNAUTHORIZED


def test_rest_takes_no_key_in_its_address(web: httpx.Client, alice: Person) -> None:
    refused = web.get("/api/v1/me", params={"token": alice.key})
    assert refused.status_code == httpx.codes.UNAUTHORIZED


def test_a_page_of_an_allowed_origin_is_a_visitor_and_its_cookie_counts_for_nothing(
    dial: Dial, web: httpx.Client, alice: Person, settings: Settings
) -> None:
    with pytest.raises(InvalidStatus):
        dial(headers=FOREIGN)
    settings.UAMP_CORS_ORIGINS = [FOREIGN["Origin"]]
    web.cookies.set(settings.SESSION_COOKIE_NAME, "of-no-session")
    answer = web.post("/uamp", json=[OPEN], headers=FOREIGN)
    assert answer.status_code == httpx.codes.OK
    dial(headers=FOREIGN).create_session(agent="echo")
    assert [row.user for row in Session.objects.all()] == [None, None]
