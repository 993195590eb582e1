"""A token of another issuer is exchanged for one of this server (RFC 7523 §2.1), which is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jwt
import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User

from sessions_app.bearer_tokens import jwks
from sessions_app.models import ExternalIdentity
from tests.client import output_text
from tests.http_server import serving
from tests.live_server import Person, quick_agent
from tests.sessions_app.bearer_tokens.issuer_server import IssuerServer, claims, now, signed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx
    from pytest_django import Settings

    from tests.live_server import Dial

pytestmark = pytest.mark.django_db(transaction=True)

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


@pytest.fixture
def issuer(settings: Settings) -> Iterator[IssuerServer]:
    """Run an issuer whose tokens are accepted."""
    with serving(IssuerServer()) as server:
        settings.UAMP_FETCH_ALLOW_HOSTS = [server.origin.removeprefix("http://")]
        settings.UAMP_JWT_ISSUERS = server.settings()
        yield server
    jwks.forget()


def exchanged(web: httpx.Client, assertion: str, path: str = "/auth/token", **form: str) -> Any:
    """Return the answer of the token endpoint."""
    return web.post(path, data={"grant_type": GRANT, "assertion": assertion, **form})


def claims_of(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


def test_a_token_of_another_issuer_becomes_one_for_an_agent_over_rest_and_a_socket(
    issuer: IssuerServer, web: httpx.Client, dial: Dial
) -> None:
    quick_agent("second", "echo")
    assertion = signed()
    answer = exchanged(web, assertion, "/agents/echo/auth/token")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["scope"] == "chats:read messages:write"
    assert "issued_token_type" not in body
    grace = User.objects.get(username="grace")
    claims = claims_of(body["access_token"])
    assert (claims["iss"], claims["sub"]) == (django_settings.UAMP_ISSUER, f"user:{grace.pk}")
    assert claims["aud"] == f"{django_settings.UAMP_ISSUER}/agents/echo"
    assert claims["exp"] <= claims_of(assertion)["exp"]
    token = Person(grace, body["access_token"])
    # REST
    completion_request = {"model": "echo", "messages": [{"role": "user", "content": "Hello"}]}
    done = web.post("/v1/chat/completions", json=completion_request, headers=token.headers)
    assert done.json()["choices"][0]["message"]["content"] == "Hello"
    other = {**completion_request, "model": "second"}
    assert web.post("/v1/chat/completions", json=other, headers=token.headers).status_code == 404
    assert web.get("/api/v1/keys", headers=token.headers).json()["scope"] == "keys:read"
    # A socket
    client = dial(token)
    client.create_session(agent="echo")
    assert output_text(client.answer("Hello again")[-1]) == "Hello again"
    client.send("session.create", session={}, agent="second")
    assert client.until("session.error")[-1]["error"]["code"] == "agent_not_found"
    # It is of the person, not of the issuer's token: the person's end is its end.
    User.objects.filter(pk=grace.pk).update(is_active=False)
    assert client.until("session.error")[-1]["error"]["code"] == "unauthorized"
    assert client.close_code() == 4401
    assert exchanged(web, assertion).json()["error"] == "invalid_grant"


def test_a_token_of_a_subject_ends_with_its_identity_here(
    issuer: IssuerServer, web: httpx.Client
) -> None:
    token = exchanged(web, signed(), "/agents/echo/auth/token").json()["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    completion_request = {"model": "echo", "messages": [{"role": "user", "content": "Hello"}]}
    assert (
        web.post("/v1/chat/completions", json=completion_request, headers=headers).status_code
        == 200
    )
    ExternalIdentity.objects.all().delete()
    assert (
        web.post("/v1/chat/completions", json=completion_request, headers=headers).status_code
        == 401
    )


def test_subjects_of_an_issuer_are_people_of_their_own_for_every_agent(
    issuer: IssuerServer, web: httpx.Client
) -> None:
    quick_agent("second", "echo")
    programs = {
        (subject, agent): claims_of(
            exchanged(
                web,
                signed(claims(sub=subject, preferred_username=subject)),
                f"/agents/{agent}/auth/token",
            ).json()["access_token"]
        )
        for subject in ("crawler", "planner")
        for agent in ("echo", "second")
    }
    for (subject, agent), token_claims in programs.items():
        assert token_claims["sub"] == f"user:{User.objects.get(username=subject).pk}"
        assert token_claims["aud"] == f"{django_settings.UAMP_ISSUER}/agents/{agent}"
    assert len({token_claims["sub"] for token_claims in programs.values()}) == 2
    assert len({token_claims["jti"] for token_claims in programs.values()}) == 4


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("error", "assertion", "form"),
    [
        ("invalid_request", "", {}),
        ("invalid_grant", "expired", {}),
        ("invalid_grant", "audience", {}),
        ("invalid_scope", "good", {"scope": "keys:write"}),
        ("invalid_scope", "good", {"scope": "*"}),
        ("invalid_target", "good", {"audience": "https://other.example/agents/echo"}),
    ],
)
def test_an_assertion_gives_no_more_than_it_says(
    issuer: IssuerServer, web: httpx.Client, error: str, assertion: str, form: dict[str, str]
) -> None:
    tokens = {
        "": "",
        "good": signed(),
        "expired": signed(claims(iat=now(-700), nbf=now(-700), exp=now(-40))),
        "audience": signed(claims(aud="https://other.example")),
    }
    answer = exchanged(web, tokens[assertion], **form)
    assert (answer.status_code, answer.json()["error"]) == (400, error)
