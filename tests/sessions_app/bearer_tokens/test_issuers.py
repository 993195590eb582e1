"""Tokens of configured issuers: every rule of RFC 8725 with a token that breaks it alone."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.contrib.auth.models import User

from audit_app.models import AuditRecord
from chat_app.models import Chat
from sessions_app.access import auth
from sessions_app.access.principal import AuthenticationError
from sessions_app.bearer_tokens import jwks
from sessions_app.models import ExternalIdentity
from tests.client import output_text
from tests.http_server import serving
from tests.sessions_app.bearer_tokens.issuer_server import (
    AUDIENCE,
    EC,
    ISSUER,
    OTHER_CURVE,
    RSA,
    WEAK,
    IssuerServer,
    claims,
    now,
    public_jwk,
    signed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx
    from pytest_django import Settings

    from agents_app.rest.rights import Rights
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def issuer(settings: Settings) -> Iterator[IssuerServer]:
    """Run an issuer whose tokens are accepted."""
    with serving(IssuerServer()) as server:
        settings.UAMP_FETCH_ALLOW_HOSTS = [server.origin.removeprefix("http://")]
        settings.UAMP_JWT_ISSUERS = server.settings()
        yield server
    jwks.forget()


def opens(token: str) -> bool:
    """Return whether a token is accepted."""
    try:
        auth.verify_token(token, protocol="rest")
    except AuthenticationError:
        return False
    return True


def raw(header: dict[str, Any], body: dict[str, Any], signature: bytes) -> str:
    """Return a token of parts that no library would make."""
    parts = [json.dumps(part).encode() for part in (header, body)]
    return ".".join(
        base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (*parts, signature)
    )


def der_signed() -> str:
    """Return a token whose ES256 signature is in DER, not the two numbers of RFC 7518."""
    header, body = {"alg": "ES256", "kid": "ec", "typ": "at+jwt"}, claims()
    unsigned = raw(header, body, b"x").rpartition(".")[0]
    return raw(header, body, EC.sign(unsigned.encode(), ec.ECDSA(hashes.SHA256())))


def with_public_key_as_secret() -> str:
    """Return a token of HS256 whose secret is the published key."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    secret = RSA.public_key().public_bytes(serialization.Encoding.PEM, form)
    header = {"alg": "HS256", "kid": "rsa", "typ": "at+jwt"}
    unsigned = raw(header, claims(), b"x").rpartition(".")[0]
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    return raw(header, claims(), signature.sign(unsigned.encode(), secret))


BAD: dict[str, Callable[[], str]] = {
    "no signature": lambda: raw({"alg": "none", "kid": "rsa", "typ": "at+jwt"}, claims(), b""),
    "alg none, signed": lambda: raw({"alg": "none", "kid": "rsa", "typ": "JWT"}, claims(), b"x"),
    "HS256 with the public key": with_public_key_as_secret,
    "HS256 with a shared key of the set": lambda: signed(
        kid="shared", key="secret" * 8, algorithm="HS256"
    ),
    "RS512, which is not of the issuer": lambda: signed(algorithm="RS512"),
    "the algorithm of another key": lambda: signed(kid="rsa", key=EC, algorithm="ES256"),
    "the id of another key": lambda: signed(kid="ec", key=RSA, algorithm="RS256"),
    "a wrong curve": lambda: signed(kid="curve", key=OTHER_CURVE, algorithm="ES384"),
    "a weak key": lambda: signed(kid="weak", key=WEAK, algorithm="RS256"),
    "a key for encryption": lambda: signed(kid="encryption", key=RSA, algorithm="RS256"),
    "a DER signature": der_signed,
    "an embedded key": lambda: signed(jwk=public_jwk("rsa", RSA)),
    "jku": lambda: signed(jku="https://evil.example/jwks"),
    "x5u": lambda: signed(x5u="https://evil.example/cert"),
    "x5c": lambda: signed(x5c=["MII"]),
    "crit": lambda: signed(crit=["exp"], exp=1),
    "an empty kid": lambda: signed(kid="", key=RSA, algorithm="RS256"),
    "a long kid": lambda: signed(kid="k" * 257, key=RSA, algorithm="RS256"),
    "an unknown kid": lambda: signed(kid="gone", key=RSA, algorithm="RS256"),
    "another type": lambda: signed(typ="dpop+jwt"),
    "the type of a payment token": lambda: signed(typ="payment"),
    "another audience": lambda: signed(claims(aud="https://other.example")),
    "no audience": lambda: signed(claims(aud=None)),
    "another issuer": lambda: signed(claims(iss="https://evil.example")),
    "an issuer with a slash": lambda: signed(claims(iss=ISSUER + "/")),
    "no issuer": lambda: signed(claims(iss=None)),
    "no expiry": lambda: signed(claims(exp=None)),
    "expired": lambda: signed(claims(iat=now(-700), nbf=now(-700), exp=now(-40))),
    "not yet": lambda: signed(claims(nbf=now(60))),
    "from the future": lambda: signed(claims(iat=now(60), exp=now(120))),
    "no iat": lambda: signed(claims(iat=None)),
    "longer than an hour": lambda: signed(claims(exp=now(3700))),
    "expiry before its issue": lambda: signed(claims(exp=now(-1), iat=now(10))),
    "no subject": lambda: signed(claims(sub=None)),
    "an empty subject": lambda: signed(claims(sub="")),
    "a subject that is a number": lambda: signed(claims(sub=7)),
    "a long subject": lambda: signed(claims(sub="s" * 256)),
    "a subject with NUL": lambda: signed(claims(sub="a\0b")),
    "more than 8 KiB": lambda: signed(claims(more="x" * 9000)),
    "a huge number": lambda: signed(claims(exp=10**30)),
}


@pytest.mark.sampled(20)
@pytest.mark.filterwarnings("ignore:The RSA key is 1024 bits")
@pytest.mark.parametrize("name", list(BAD))
def test_a_token_that_breaks_one_rule_is_refused(issuer: IssuerServer, name: str) -> None:
    assert opens(signed())
    assert not opens(BAD[name]()), name
    assert User.objects.count() == 1


def test_a_token_of_each_algorithm_is_accepted_within_the_leeway(issuer: IssuerServer) -> None:
    for kid in ("rsa", "ec", "ed"):
        assert opens(signed(kid=kid)), kid
    assert opens(signed(typ="JWT"))
    assert opens(signed(typ="application/at+jwt"))
    assert opens(signed(claims(aud=["https://other.example", AUDIENCE])))
    assert opens(signed(claims(iat=now(-400), nbf=now(-400), exp=now(-20))))
    assert opens(signed(claims(nbf=now(20))))


def test_the_settings_choose_the_algorithms(issuer: IssuerServer, settings: Settings) -> None:
    settings.UAMP_JWT_ISSUERS = issuer.settings(algorithms=["EdDSA"], types=["JWT"])
    assert opens(signed(kid="ed", typ="JWT"))
    assert not opens(signed(kid="rsa", typ="JWT"))
    assert not opens(signed(kid="ed"))


def test_duplicate_members_and_odd_bytes_are_refused(issuer: IssuerServer) -> None:
    header = b'{"alg":"RS256","alg":"none","kid":"rsa","typ":"JWT"}'
    for part in (header, b"\xff\xfe", b"[]", b'{"alg":NaN}', b""):
        first = base64.urlsafe_b64encode(part).rstrip(b"=").decode()
        assert not opens(f"{first}.{signed().split('.', 1)[1]}")
    for odd in ("..", "a.b.c", "é.b.c", "a" * 9000 + ".b.c"):
        assert not opens(odd)


def test_unknown_keys_are_looked_for_once_a_minute(
    issuer: IssuerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        assert not opens(signed(kid=f"spray-{number}", key=RSA, algorithm="RS256"))
    assert opens(signed())
    assert issuer.asked == 1
    issuer.keys.append(public_jwk("new", RSA))
    fresh = signed(kid="new", key=RSA, algorithm="RS256")
    assert not opens(fresh)
    monkeypatch.setattr(jwks, "AGAIN_SECONDS", 0.0)
    assert opens(fresh)
    assert issuer.asked == 2
    # While the issuer cannot be reached, what is known stays good, for a day.
    issuer.keys = []
    monkeypatch.setattr(jwks, "FRESH_SECONDS", 0.0)
    issuer.is_broken = True
    assert opens(signed())
    monkeypatch.setattr(jwks, "KEPT_SECONDS", 0.0)
    assert not opens(signed())


def test_an_issuer_inside_the_network_is_not_asked(
    issuer: IssuerServer, settings: Settings
) -> None:
    settings.UAMP_FETCH_ALLOW_HOSTS = []
    assert not opens(signed())
    assert issuer.asked == 0


def test_a_subject_is_a_person_of_its_own(issuer: IssuerServer, settings: Settings) -> None:
    namesake = User.objects.create_user("Grace")
    principal = auth.verify_token(signed(), protocol="rest")
    user = User.objects.get(username=principal.username)
    assert user != namesake
    assert user.username.startswith("grace-")
    assert not user.has_usable_password()
    assert AuditRecord.objects.get().action == "person.made"
    assert auth.verify_token(signed(), protocol="rest").user_id == user.pk
    # The same subject of another issuer, and another case of it, are others.
    assert auth.verify_token(signed(claims(sub="8F3C")), protocol="rest").user_id != user.pk
    settings.UAMP_JWT_ISSUERS = issuer.settings(creates_people=False)
    assert opens(signed())
    assert not opens(signed(claims(sub="new")))
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert not opens(signed())
    assert ExternalIdentity.objects.count() == 2


def test_the_scopes_of_a_token_are_its_rights(issuer: IssuerServer, settings: Settings) -> None:
    def scopes(**changes: Any) -> frozenset[str]:
        rights: Rights = auth.verify_token(signed(claims(**changes)), protocol="rest").rights
        return rights.scopes

    assert scopes() == {"chats:read", "messages:write"}
    assert scopes(scope=None, scp=["chats:*", "other"]) == {"chats:*"}
    assert scopes(scope=None) == frozenset()
    settings.UAMP_JWT_ISSUERS = issuer.settings(scopes=["chats:*"], default_scopes=["chats:read"])
    assert scopes() == {"chats:read"}
    assert scopes(scope="*") == frozenset()
    assert scopes(scope=None) == {"chats:read"}


def test_a_session_continues_with_a_fresh_token_and_ends_alone_with_an_old_one(
    issuer: IssuerServer, dial: Dial, alice: Person, web: httpx.Client
) -> None:
    client = dial(alice)
    client.create_session(agent="echo", session={"id": "hers"})
    foreign = client.create_session(agent="echo", token=signed())["session_id"]
    # A token of another subject is not taken, and the old one stays.
    client.send("session.update", session_id=foreign, token=signed(claims(sub="other")))
    assert client.until("session.error")[-1]["error"]["code"] == "unauthorized"
    client.send("session.update", session_id=foreign, token=signed())
    client.expect("session.updated")
    assert output_text(client.answer("Still here", session_id=foreign)[-1]) == "Still here"
    short = claims(iat=now(-300), nbf=now(-300), exp=now(4))
    client.send("session.update", session_id=foreign, token=signed(short))
    client.expect("session.updated")
    ended = client.until("session.error")[-1]
    assert ended["error"]["code"] == "token_expiring"
    time.sleep(max(0.0, short["exp"] - time.time()))
    client.send("input.text", text="Late", session_id=foreign)
    assert client.until("session.error")[-1]["error"]["code"] == "token_expired"
    # The other session of the socket is not touched.
    assert output_text(client.answer("Mine", session_id="hers")[-1]) == "Mine"
    me = web.get("/api/v1/chats", headers={"Authorization": f"Bearer {signed()}"})
    assert me.status_code == 200
    expired = signed(claims(iat=now(-700), nbf=now(-700), exp=now(-40)))
    refused = web.get("/api/v1/chats", headers={"Authorization": f"Bearer {expired}"})
    assert (refused.status_code, refused.json()["code"]) == (401, "token_expired")


@pytest.mark.usefixtures("issuer")
def test_a_key_repeats_a_request_for_tokens_of_the_same_rights_alone(web: httpx.Client) -> None:
    def create(token: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "k"}
        return web.post("/api/v1/chats", json={"title": "Plans"}, headers=headers)

    may = claims(scope="chats:read chats:write")
    first, renewed = create(signed(may)), create(signed({**may, "exp": now(200), "jti": "2"}))
    assert (first.status_code, renewed.status_code) == (201, 201)
    assert renewed.headers["Idempotency-Replayed"] == "true"
    other = create(signed(claims(scope="chats:write")))
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    assert Chat.objects.count() == 1
