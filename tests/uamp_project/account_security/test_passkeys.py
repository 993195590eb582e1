"""Passkeys: adding them, signing in with and without a password, and what forgers send."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from allauth.mfa.models import Authenticator as Row
from django.contrib.sessions.models import Session
from django.test import Client

from tests import factories
from tests.uamp_project.account_security.authenticator import Authenticator, options_of
from tests.uamp_project.account_security.people import confirm, factors, is_signed_in, sign_in

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from pytest_django import Settings

pytestmark = pytest.mark.django_db

NEW = "/account/security/passkeys/new"
JSON = {"Accept": "application/json"}


def with_passkey(user: User) -> Authenticator:
    """Add a passkey to an account."""
    client = sign_in(user)
    confirm(client)
    passkey = Authenticator()
    credential = passkey.make(options_of(client.get(NEW).content.decode()))
    response = client.post(NEW, {"name": "phone", "credential": json.dumps(credential)})
    assert response["Location"] == "/account/security/recovery-codes", response.content
    return passkey


def offered(client: Client) -> dict[str, Any]:
    """Return the options of signing in with a passkey alone."""
    answer: dict[str, Any] = client.get("/login/passkey", headers=JSON).json()
    return dict(answer["request_options"]["publicKey"])


def test_a_passkey_signs_in_alone_and_is_asked_for_after_the_password() -> None:
    ada = factories.user("ada")
    passkey = with_passkey(ada)
    assert factors(ada) == ["recovery_codes", "webauthn"]

    alone = Client()
    credential = json.dumps(passkey.use(offered(alone)))
    answer = alone.post("/login/passkey", {"credential": credential, "next": "/money"})
    assert answer["Location"] == "/money"
    assert is_signed_in(alone)
    # A challenge counts once.
    alone.post("/logout")
    alone.post("/login/passkey", {"credential": credential})
    assert not is_signed_in(alone)

    second = sign_in(ada)
    assert not is_signed_in(second)
    options = options_of(second.get("/login/code").content.decode())
    second.post("/login/code", {"credential": json.dumps(passkey.use(options))})
    assert is_signed_in(second)


def forged_part(forgery: dict[str, Any]) -> str:
    """Return the forged part: a key has another text in each worker."""
    return next(iter(forgery))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "forgery",
    [
        {"origin": "https://evil.example"},
        {"host": "evil.example"},
        {"verifies": False},
        {"key": Authenticator().key},
        {"credential_id": b"another"},
        {"user_handle": "MQ"},
        {"user_handle": "enp6enp6enp6enp6"},
    ],
    ids=forged_part,
)
def test_a_passkey_of_another_place_person_or_key_is_refused(
    forgery: dict[str, Any],
) -> None:
    factories.user("eve")
    passkey = with_passkey(factories.user("ada"))
    client = Client()
    options = offered(client)
    for name, value in forgery.items():
        setattr(passkey, name, value)
    answer = client.post("/login/passkey", {"credential": json.dumps(passkey.use(options))})
    assert answer["Location"] == "/login"
    assert not is_signed_in(client)


@pytest.mark.parametrize(
    "forgery", [{"origin": "https://evil.example"}, {"host": "evil.example"}, {"verifies": False}]
)
def test_a_passkey_of_another_place_is_not_added(forgery: dict[str, Any]) -> None:
    ada = factories.user("ada")
    client = sign_in(ada)
    confirm(client)
    options = options_of(client.get(NEW).content.decode())
    credential = Authenticator(**forgery).make(options)
    answer = client.post(NEW, {"credential": json.dumps(credential)})
    assert answer.status_code == 200
    assert factors(ada) == []


def test_challenges_count_as_writes_of_an_address(settings: Settings) -> None:
    settings.UAMP_WRITES_PER_MINUTE = 2
    answers = [Client().get("/login/passkey", headers=JSON) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert int(answers[-1]["Retry-After"]) > 0
    assert Session.objects.count() == 2


MALFORMED = [
    "", "\0", "[]", "5", "null", "{}", '"x"', '{"id": 5}', "[" * 9000,
    '{"id": "x", "rawId": "x", "type": "public-key", "response": {}}',
    '{"id": "AA", "rawId": "AA", "type": "public-key", "response": 7}',
    '{"id": "AA", "rawId": "AA", "type": "public-key", "response": {"clientDataJSON": "AA"}}',
    """{"id": "AA", "rawId": "AA", "type": "public-key", "response": {"clientDataJSON": "AA",
        "attestationObject": "AA", "authenticatorData": "AA", "signature": "AA",
        "userHandle": "\\u0000"}}""",
    "x" * 1_000_000,
]  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: text[:12])
def test_a_malformed_answer_of_an_authenticator_is_refused(text: str) -> None:
    ada = factories.user("ada")
    client = Client()
    offered(client)
    answer = client.post("/login/passkey", {"credential": text})
    assert answer["Location"] == "/login"
    sign_in(ada, client)
    confirm(client)
    client.get(NEW)
    assert client.post(NEW, {"credential": text}).status_code == 200
    assert factors(ada) == []


def test_only_what_is_needed_of_a_passkey_is_stored() -> None:
    ada = factories.user("ada")
    client = sign_in(ada)
    confirm(client)
    credential = Authenticator().make(options_of(client.get(NEW).content.decode()))
    credential |= {"more": "x\0" * 100, "clientExtensionResults": {"credProps": {"rk": "\0"}}}
    answer = client.post(NEW, {"name": "", "credential": json.dumps(credential)})
    assert answer.status_code == 302
    stored = Row.objects.get(user=ada, type="webauthn").data
    assert "\\u0000" not in json.dumps(stored)
    assert stored["name"] == "Passkey"


def test_passkeys_have_a_limit(settings: Any) -> None:
    settings.UAMP_PASSKEYS_PER_USER = 1
    ada = factories.user("ada")
    with_passkey(ada)
    client = Client()
    client.force_login(ada)
    confirm(client)
    credential = Authenticator().make(options_of(client.get(NEW).content.decode()))
    answer = client.post(NEW, {"credential": json.dumps(credential)})
    assert "You have too many passkeys." in answer.content.decode()
    assert factors(ada).count("webauthn") == 1


def test_a_passkey_is_removed_by_its_person_alone() -> None:
    ada, eve = factories.user("ada"), factories.user("eve")
    with_passkey(ada)
    row = Row.objects.get(user=ada, type="webauthn")
    stranger = sign_in(eve)
    confirm(stranger)
    own_answer, absent = (
        stranger.post(f"/account/security/passkeys/{pk}/remove") for pk in (row.pk, 10**17)
    )
    assert (own_answer.status_code, absent.status_code) == (404, 404)
    assert own_answer.content == absent.content
    client = Client()
    client.force_login(ada)
    confirm(client)
    assert client.post(f"/account/security/passkeys/{row.pk}/remove").status_code == 302
    assert factors(ada) == []
