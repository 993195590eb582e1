"""Agent cards: which version a client gets, what they promise, and who sees them."""

import json
from typing import Any

import httpx
import jwt
import pytest
import rfc8785
from jwt.utils import base64url_decode, base64url_encode
from pytest_django import Settings

from agents_app.models import Agent
from signing_app.keys import ALGORITHMS
from tests.conftest import ServerAddress
from tests.gateway_app.a2a.calls import call, error_of
from tests.live_server import Person
from tests.uamp.signatures.node_crypto import verified_by_node

pytestmark = pytest.mark.any_database

V1_MEMBERS = {
    "name",
    "description",
    "version",
    "supportedInterfaces",
    "capabilities",
    "securitySchemes",
    "defaultInputModes",
    "defaultOutputModes",
    "skills",
    "signatures",
}
CARD = "/agents/echo/.well-known/agent-card.json"


def test_a_card_has_both_versions_unless_one_is_wanted(
    demo: ServerAddress, web: httpx.Client, settings: Settings
) -> None:
    merged = web.get(CARD)
    pure = web.get(CARD, headers={"A2A-Version": "1.0"}).json()
    # A proxy that compresses makes the tag a weak one.
    again = web.get(CARD, headers={"If-None-Match": f"W/{merged.headers['ETag']}"})
    other = web.get(CARD, headers={"If-Unmodified-Since": "Thu, 01 Jan 2026 00:00:00 GMT"})
    assert other.status_code == 200, "conditions by date are ignored"
    settings.A2A_CARD_PROFILE = "v1"

    assert set(pure) == V1_MEMBERS
    assert web.get(CARD).json() == pure
    assert (again.status_code, again.content) == (304, b"")
    card = merged.json()
    assert set(card) > V1_MEMBERS
    assert card["url"] == pure["supportedInterfaces"][0]["url"] == f"{demo.http}/agents/echo/a2a"
    assert (card["protocolVersion"], card["preferredTransport"]) == ("0.3.0", "JSONRPC")
    assert "A2A-Version" in merged.headers["Vary"]
    assert "max-age=" in merged.headers["Cache-Control"]
    assert merged.headers["Last-Modified"]


def without_defaults(card: dict[str, Any]) -> dict[str, Any]:
    """Return the signed part of a card: without its signatures and ProtoJSON's defaults."""
    bare: dict[str, Any] = json.loads(json.dumps(card))
    del bare["signatures"]
    # All schemes that are required have empty lists of scopes, and no extension is required.
    bare.pop("securityRequirements", None)
    for extension in bare["capabilities"].get("extensions", ()):
        assert extension.pop("required") is False
    return bare


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_card_is_signed_by_the_key_of_cards(
    web: httpx.Client, settings: Settings, algorithm: str
) -> None:
    settings.UAMP_SIGNATURE_ALGORITHM = algorithm
    answer = web.get(CARD, headers={"A2A-Version": "1.0"})
    (signature,) = answer.json()["signatures"]
    header = json.loads(base64url_decode(signature["protected"]))
    (key,) = web.get("/.well-known/jwks.json", params={"kid": header["kid"]}).json()["keys"]
    assert (header["alg"], header["typ"], key["uamp_owner"]) == (algorithm, "JOSE", "cards")
    bare = without_defaults(answer.json())
    payload = rfc8785.dumps(bare)
    token = b".".join(
        [
            signature["protected"].encode(),
            base64url_encode(payload),
            signature["signature"].encode(),
        ]
    )
    assert jwt.api_jws.decode(token, jwt.PyJWK(key), algorithms=[algorithm]) == payload
    signed = {**bare, "signatures": [signature]}
    document = {"kind": "card", "card": signed, "keys": [key]}
    renamed = {**document, "card": {**signed, "name": "other"}}
    foreign = {**document, "keys": [{**key, "uamp_owner": "agent:1"}]}
    assert verified_by_node([document, renamed, foreign]) == [True, False, False]
    # Also with ES256, whose signatures are random.
    assert web.get(CARD, headers={"A2A-Version": "1.0"}).headers["ETag"] == answer.headers["ETag"]
    # A client of 1.0 reads its members of a merged card, which are those that are signed.
    assert web.get(CARD).json()["signatures"] == [signature]


def test_a_card_promises_what_is_there(web: httpx.Client) -> None:
    card = web.get("/agents/paid-echo/.well-known/agent-card.json").json()

    assert card["capabilities"]["streaming"] is True
    assert card["capabilities"]["pushNotifications"] is True
    assert "a2a-x402" in card["capabilities"]["extensions"][0]["uri"]
    for skill in card["skills"]:
        assert {"id", "name", "description", "tags", "examples", "inputModes", "outputModes"} == (
            set(skill)
        )
    assert {interface["protocolBinding"] for interface in card["supportedInterfaces"]} == {
        "JSONRPC",
        "HTTP+JSON",
    }


def test_the_specifications_card(web: httpx.Client) -> None:
    card = web.get("/agents/echo/.well-known/agent.json").json()

    assert (card["version"], card["protocolVersion"]) == ("0.2.1", "0.2.1")
    assert card["defaultInputModes"] == ["text"]
    assert card["url"].endswith("/agents/echo/a2a")


def test_the_root_has_the_card_of_the_default_agent(web: httpx.Client, settings: Settings) -> None:
    settings.UAMP_DEFAULT_AGENT = "echo"

    assert web.get("/.well-known/agent-card.json").json()["name"] == "echo"
    assert web.get("/.well-known/agent.json").json()["name"] == "echo"


@pytest.mark.parametrize("file", ["agent-card.json", "agent.json"])
def test_a_card_is_for_those_who_may_use_the_agent(
    web: httpx.Client, alice: Person, mallory: Person, file: str
) -> None:
    Agent.objects.create(name="hers", owner=alice.user, options={"script": "echo"})
    path = f"/agents/hers/.well-known/{file}"

    assert web.get(path, headers=alice.headers).status_code == 200
    for headers in ({}, mallory.headers):
        assert web.get(path, headers=headers).status_code == 404
    assert web.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert web.post(path).status_code == 405


def test_the_extended_card_is_for_callers_with_a_key(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    card = call(web, "careful", "GetExtendedAgentCard", {}, who=alice)["result"]
    assert "tool.edit_picture" in [skill["id"] for skill in card["skills"]]
    old = call(web, "careful", "agent/getAuthenticatedExtendedCard", {}, who=alice)["result"]
    assert old["url"]
    rest = web.get("/agents/careful/a2a/rest/extendedAgentCard", headers=alice.headers)
    assert rest.json() == card

    refused = call(web, "careful", "GetExtendedAgentCard", {})
    assert error_of(refused) == (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED")
    assert web.get("/agents/careful/a2a/rest/extendedAgentCard").status_code == 401
    # Clients of 0.3 look for it below the address in the card, or at the root of the server.
    below = web.get("/agents/careful/a2a/v1/card", headers=alice.headers)
    assert below.json() == old
    assert web.get("/agents/careful/a2a/v1/card").status_code == 401
    settings.UAMP_DEFAULT_AGENT = "careful"
    assert web.get("/v1/card", headers=alice.headers).json() == old
    assert web.get("/v1/card").status_code == 401
