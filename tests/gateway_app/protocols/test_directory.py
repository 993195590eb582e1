"""The directory of agents: JSON and pages at one address, and who finds what there."""

import html
import re
from urllib.parse import urlsplit

import httpx
import pytest
from pytest_django import Settings

from agents_app.models import Agent
from tests.conftest import ServerAddress
from tests.gateway_app.protocols.browsers import BROWSER, signed_in
from tests.live_server import Person

pytestmark = pytest.mark.any_database

PROTOCOLS = ["uamp", "completions", "responses", "anthropic", "ag-ui", "a2a", "acp"]


def test_an_agent_is_json_for_programs(demo: ServerAddress, web: httpx.Client) -> None:
    answer = web.get("/agents/paid-echo")

    agent = answer.json()
    base = f"{demo.http}/agents/paid-echo"
    assert (agent["object"], agent["name"], agent["url"]) == ("agent", "paid-echo", base)
    assert agent["pricing"]["per_answer"] == "0.02"
    assert agent["capabilities"]["modalities"] == agent["input"] == ["text"]
    assert [protocol["name"] for protocol in agent["protocols"]] == PROTOCOLS
    assert web.get(urlsplit(agent["agent_card"]).path).json()["name"] == "paid-echo"
    again = web.get("/agents/paid-echo", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    for header in ("Accept", "Authorization", "Cookie"):
        assert header in answer.headers["Vary"]
        assert header in again.headers["Vary"]
    assert "private" in answer.headers["Cache-Control"]
    assert web.get("/agents/paid-echo", headers={"If-None-Match": "*"}).status_code == 304
    assert web.get("/agents/paid-echo/").json() == agent


def test_the_list_has_each_agent(web: httpx.Client) -> None:
    listed = web.get("/agents").json()

    assert listed["object"] == "list"
    names = [agent["name"] for agent in listed["data"]]
    assert "echo" in names
    assert names == sorted(names)
    reports = next(agent for agent in listed["data"] if agent["name"] == "report")
    assert (reports["tools"], reports["input"]) == (["csv_report"], ["text", "file"])


def test_an_agent_is_a_page_for_people(demo: ServerAddress, web: httpx.Client) -> None:
    answer = web.get("/agents/paid-echo", headers=BROWSER)
    page = html.unescape(answer.text)

    assert answer.headers["Content-Type"].startswith("text/html")
    assert "Repeats your words for a price" in page
    assert "$0.02 per answer + $0.01 per 1,000 output tokens" in page
    assert "<code>websockets</code> for Python" in page
    assert re.findall(r'data-protocol="([^"]+)"', page) == PROTOCOLS
    assert f"{demo.http}/agents/paid-echo/chat/completions" in page
    assert "no-cache" in answer.headers["Cache-Control"]
    assert "Accept" in answer.headers["Vary"]
    # Strict CSP: no script and no style stands in the page.
    assert re.findall(r"<script(?![^>]*\bsrc=)[^>]*>|<style|\son\w+=|\sstyle=", page) == []
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]

    german = web.get("/agents", headers={**BROWSER, "Accept-Language": "de"}).text
    assert "Agent suchen" in german
    assert "Wiederholt deine Worte und hat einen Preis" in german
    assert '<html lang="de"' in german
    listed = html.unescape(web.get("/agents", headers=BROWSER).text)
    assert 'href="/agents/paid-echo"' in listed
    assert "$0.02 per answer + $0.01 per 1,000 output tokens" in listed


def test_a_private_agent_is_for_its_people(
    web: httpx.Client, alice: Person, mallory: Person, settings: Settings
) -> None:
    Agent.objects.create(name="hers", owner=alice.user, options={"script": "echo"})

    assert web.get("/agents/hers", headers=alice.headers).json()["name"] == "hers"
    assert web.get("/agents/hers", headers=signed_in(alice)).status_code == 200
    assert "hers" in web.get("/agents", headers=signed_in(alice)).text
    for headers in ({}, mallory.headers, BROWSER, signed_in(mallory)):
        foreign = web.get("/agents/hers", headers=headers)
        absent = web.get("/agents/nope", headers=headers)
        assert (foreign.status_code, absent.status_code) == (404, 404)
        assert foreign.headers["Content-Type"] == absent.headers["Content-Type"]
        assert _faceless(foreign) == _faceless(absent)
        assert "/hers" not in web.get("/agents", headers=headers).text
    # A cookie counts for what this server's own pages ask for.
    other_page = {**signed_in(alice), "Origin": "https://other.example"}
    assert web.get("/agents/hers", headers=other_page).status_code == 403
    settings.UAMP_CORS_ORIGINS = ["*"]
    assert web.get("/agents/hers", headers=other_page).status_code == 404


def _faceless(answer: httpx.Response) -> str:
    """Return a refusal without the name that was asked for and the number of the request."""
    text = re.sub(r"hers|nope", "-", answer.text)
    return re.sub(r'"request_id":\s*"[^"]*"', "", text)


def test_wrong_methods_and_keys(web: httpx.Client) -> None:
    assert web.post("/agents/echo").status_code == 405
    assert web.get("/agents/echo", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert web.head("/agents/echo").status_code == 200


def test_a_path_that_no_protocol_has_is_refused_in_the_shape_of_openai(web: httpx.Client) -> None:
    for method, path in (
        ("POST", "/v1/embeddings"),
        ("GET", "/v1/chat/completions/chatcmpl-1"),
        ("DELETE", "/agents/echo/nothing"),
    ):
        refused = web.request(method, path, headers={"Accept": "application/json"})
        assert (refused.status_code, refused.headers["Content-Type"]) == (404, "application/json")
        error = refused.json()["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "unknown_url")
        assert f"{method} {path} " in error["message"]
        page = web.request(method, path, headers={"Accept": "text/html,*/*;q=0.8"})
        assert (page.status_code, page.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    # Each address of a protocol is the same with a slash at its end.
    for path in ("agui", "agui/connect", "tasks", "a2a", "acp", "chat/completions", "responses"):
        plain, ended = (web.post(f"/agents/echo/{path}{end}", json={}) for end in ("", "/"))
        assert (plain.status_code, plain.text) == (ended.status_code, ended.text)
        assert plain.status_code != httpx.codes.NOT_FOUND


@pytest.mark.parametrize("path", ["/agents", "/agents/echo"])
def test_pages_of_allowed_origins_may_read_it(
    web: httpx.Client, settings: Settings, path: str
) -> None:
    origin = {"Origin": "https://app.example"}
    assert "Access-Control-Allow-Origin" not in web.get(path, headers=origin).headers
    settings.UAMP_CORS_ORIGINS = ["https://app.example"]

    answer = web.get(path, headers=origin)
    assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
    assert answer.json()


def test_the_specifications_card_has_the_capabilities_of_the_model(web: httpx.Client) -> None:
    card = web.get("/agents/report/.well-known/agent.json").json()

    assert card["modelCapabilities"] == web.get("/agents/report").json()["capabilities"]
