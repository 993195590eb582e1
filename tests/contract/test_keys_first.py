"""Keys before bodies: on every path a wrong key is a 401, whatever the body is.

The paths are those of the URL resolver (`routes`, which `test_routes` keeps whole). A path that
looks at no key is named here, with what it looks at instead; a new one that does not answer 401
fails, and so does a path that is named here without need.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from gateway_app.a2a import rest, rpc
from sessions_app.models import Response
from tests.contract.routes import IDS, ROUTES
from tests.contract.test_routes import PAGES
from tests.live_server import counted_rows

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

pytestmark = pytest.mark.any_database

WRONG: Final = {"Authorization": "Bearer uak_00000000_wrong"}
# A credential of its own: a form's, a signature, a secret of the operator, a link's.
OWN_CREDENTIAL: Final = {
    "auth/token",
    "agents/{name}/auth/token",
    "api/payments/topups/hooks/{provider}",
    "v1/messages",
    "metrics",
    "log-tree/cosignatures",
    "shared/{secret}",
    "shared/files/{content_id}",
    "unsubscribe/{token}",
}
# Documents that are the same for everyone.
PUBLIC: Final = {
    "jsi18n/{language}",
    "manifest/{language}.webmanifest",
    "service-worker.js",
    "offline",
    "docs/problems",
    "schemas/uamp/1.0/",
    "schemas/uamp/1.0/{type_name}.json",
    "api/schema",
    "api/",
    "(?:v1|agents)/",
    ".well-known/jwks.json",
    "log-tree/checkpoint",
    "log-tree/consistency",
    "log-tree/proof",
    "log-tree/tile/{level}/{place}",
    "log-tree/keys",
    ".well-known/openid-configuration",
    ".well-known/oauth-authorization-server",
    ".well-known/did.json",
    ".well-known/agent-manifest.json",
    ".well-known/agent-hub.json",
    "agents/{name}/.well-known/openid-configuration",
    "agents/{name}/.well-known/jwks.json",
    "agents/{name}/did.json",
    "agents/{name}/.well-known/agent-manifest.json",
}
# Of these, what every page loads, and unknown paths, which count as requests alone.
NOT_DOCUMENTS: Final = {
    "jsi18n/{language}",
    "manifest/{language}.webmanifest",
    "service-worker.js",
    "offline",
    "api/",
    "(?:v1|agents)/",
}
# What describes agents and messages: the view checks the key once it has looked at the address.
LOOKED_UP_FIRST: Final = {
    ".well-known/agent-card.json",
    ".well-known/agent.json",
    "agents",
    "agents/{name}",
    "agents/{name}/.well-known/agent-card.json",
    "agents/{name}/.well-known/agent.json",
    "v1/models",
    "agents/{name}/v1/models",
    "api/v1/messages/{message_id}/frames",
}
# An event may bring the token of its session: without a key in the header the body is read.
TOKEN_IN_BODY: Final = {
    "events",
    "uamp",
    "uamp/stream",
    "agents/{name}/events",
    "agents/{name}/uamp",
    "agents/{name}/uamp/stream",
}
BODIES: Final[dict[str, tuple[str, str]]] = {
    "no JSON": ('{"', "application/json"),
    "no object": ("[1]", "application/json"),
    "empty": ("{}", "application/json"),
    "nothing": ("", "application/json"),
    "wrong members": ('{"messages": 1, "input": 2, "model": 3}', "application/json"),
    "no UTF-8": ('"\udcff"', "application/json"),
    "a wrong type": ("x", "text/plain"),
}


def _a2a_paths() -> list[tuple[str, str]]:
    """Return the methods and paths of A2A's HTTP binding, which one URL has."""
    paths = []
    for version in ("", "v1/"):
        for method, pattern, _ in rest._ROUTES:
            path = re.sub(r"\(\?P<\w+>[^)]*\)", "t", pattern.pattern).split("|")[0]
            paths.append((method, f"agents/echo/a2a/rest/{version}{path}"))
    return paths


def _requests() -> list[tuple[str, str, str]]:
    """Return method, route and path of every request that needs a key, if it has one."""
    table = [
        (method, route, re.sub(r"\{(\w+)\}", lambda match: IDS.get(match[1], "1"), route))
        for route, methods in ROUTES.items()
        if not (PAGES.match(route) or route == "" or route in OWN_CREDENTIAL | PUBLIC)
        for method in methods
    ]
    return [*table, *((method, path, path) for method, path in _a2a_paths())]


def _sent(web: httpx.Client, method: str, path: str, body: str, kind: str, **headers: str) -> int:
    sent_headers = {"Content-Type": kind, **headers}
    content = None if method == "GET" else body.encode(errors="surrogateescape")
    answer = web.request(method, f"/{path}", content=content, headers=sent_headers)
    assert not answer.is_redirect, path
    return answer.status_code


@pytest.fixture(autouse=True)
def _no_limits(settings: Settings) -> None:
    for name in dir(settings):
        if name.endswith(("_PER_MINUTE", "_PER_DAY")):
            setattr(settings, name, 10**9)


# One body that is not parsed and one that does not validate: the others are refused in between.
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "body",
    [
        body if body in {"no JSON", "wrong members"} else pytest.param(body, marks=pytest.mark.long)
        for body in BODIES
    ],
)
def test_a_wrong_key_comes_before_a_wrong_body(web: httpx.Client, body: str) -> None:
    before = counted_rows()
    statuses = {
        (method, route): _sent(web, method, path, *BODIES[body], **WRONG)
        for method, route, path in _requests()
    }
    assert {key: status for key, status in statuses.items() if status != 401} == {}
    assert len(statuses) > 200
    assert counted_rows() == before


@pytest.mark.parametrize("body", ["no JSON", pytest.param("wrong members", marks=pytest.mark.long)])
def test_no_key_where_one_is_needed_comes_before_a_wrong_body(
    web: httpx.Client, settings: Settings, body: str
) -> None:
    settings.UAMP_ALLOW_ANONYMOUS = False
    statuses = {
        (method, route): _sent(web, method, path, *BODIES[body])
        for method, route, path in _requests()
        if method != "GET" and route not in TOKEN_IN_BODY
    }
    wrong = {key: status for key, status in statuses.items() if status not in {401, 404}}
    assert wrong == {}
    # What a visitor deletes is not theirs, nor there.
    assert {method for (method, _), status in statuses.items() if status == 404} <= {"DELETE"}
    assert len(statuses) > 80


@pytest.mark.parametrize("route", ["realtime/client_secrets", "realtime/sessions"])
def test_a_secret_is_for_people_whatever_is_asked(web: httpx.Client, route: str) -> None:
    for path in (route, f"agents/echo/{route}"):
        for content, kind in BODIES.values():
            assert _sent(web, "POST", path, content, kind) == 401


def test_no_path_is_named_here_without_need(web: httpx.Client) -> None:
    for route in OWN_CREDENTIAL | PUBLIC:
        path = re.sub(r"\{(\w+)\}", lambda match: IDS.get(match[1], "1"), route)
        for method in ROUTES[route]:
            assert _sent(web, method, path, "{", "application/json", **WRONG) != 401, route
    assert set(ROUTES) >= OWN_CREDENTIAL | PUBLIC | TOKEN_IN_BODY


def test_documents_have_a_limit_and_nothing_else_counts_as_one(
    web: httpx.Client, settings: Settings
) -> None:
    settings.UAMP_DOCUMENTS_PER_MINUTE = 0
    refused = set()
    for route, methods in ROUTES.items():
        path = re.sub(r"\{(\w+)\}", lambda match: IDS.get(match[1], "1"), route)
        if "GET" in methods and web.get(f"/{path}").status_code == 429:
            refused.add(route)
    assert refused == PUBLIC - NOT_DOCUMENTS
    assert _sent(web, "POST", "log-tree/cosignatures", "x", "text/plain") == 429


def test_the_openapi_document_is_not_sent_again_unchanged(web: httpx.Client) -> None:
    first = web.get("/api/schema")
    again = web.get("/api/schema", headers={"If-None-Match": first.headers["ETag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert again.headers["Cache-Control"] == first.headers["Cache-Control"]
    assert "max-age=300" in first.headers["Cache-Control"]
    changed = web.get("/api/schema", headers={"If-None-Match": '"another"'})
    assert changed.content == first.content


@pytest.mark.sampled(7)
@pytest.mark.parametrize("method", [*rpc.METHODS, "NoSuchMethod"])
def test_every_method_of_json_rpc(web: httpx.Client, method: str) -> None:
    wrong: list[Any] = [{}, [], {"message": 7}, "x"]
    for params in wrong:
        body = json.dumps({"jsonrpc": "2.0", "id": "call-1", "method": method, "params": params})
        headers = {"Content-Type": "application/json", **WRONG}
        answer = web.post("/agents/echo/a2a", content=body, headers=headers)
        assert (answer.status_code, answer.json()["id"]) == (401, "call-1")


@pytest.mark.parametrize(
    "query", ["?starting_after=x&stream=true", "?limit=0", "?limit=x", "?order=up", "?after=%00"]
)
def test_a_wrong_query_comes_after_the_key(web: httpx.Client, query: str) -> None:
    for end in ("", "/input_items"):
        path = f"/responses/{IDS['response_id']}{end}{query}"
        assert web.get(path, headers=WRONG).status_code == 401


def test_nul_in_a_query_comes_after_the_key(web: httpx.Client) -> None:
    statuses = {
        (method, route): _sent(web, method, f"{path}?after=%00", *BODIES["empty"], **WRONG)
        for method, route, path in _requests()
    }
    others = {key: status for key, status in statuses.items() if status != 401}
    assert others == dict.fromkeys([("GET", route) for route in LOOKED_UP_FIRST], 400)


@pytest.mark.parametrize(
    "query", [f"?{name}={value}" for name in ("token", "ticket") for value in ("%00", "uak_0_%00")]
)
def test_a_key_with_nul_in_the_query_is_unknown(web: httpx.Client, query: str) -> None:
    for path in ("responses", "chat/completions", "agents/echo/a2a", "agents/echo/agui"):
        assert _sent(web, "POST", f"{path}{query}", *BODIES["empty"]) == 401, path


def test_nul_is_refused_with_a_right_key(web: httpx.Client, alice: Any) -> None:
    answer = web.get(f"/responses/{IDS['response_id']}?after=%00", headers=alice.headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_text")


def test_with_a_right_key_the_body_is_refused(web: httpx.Client, alice: Any) -> None:
    for path in (
        "chat/completions",
        "responses",
        "v1/messages/count_tokens",
        "agents/echo/agui",
        "agents/echo/acp",
    ):
        assert _sent(web, "POST", path, "{", "application/json", **alice.headers) == 400
    assert not Response.objects.exists()
