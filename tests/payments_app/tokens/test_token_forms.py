"""The forms of payment tokens, their keys, and what is no token or a forged one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from payments_app import services
from payments_app.models import PaymentToken
from payments_app.tokens import endings, secret_forms
from payments_app.tokens import lookup as token_lookup
from payments_app.tokens.lookup import TokenRefused
from signing_app import published, server_keys
from tests.payments_app.funded_accounts import new_key
from tests.payments_app.tokens.issued_tokens import expire, issue, refusal, rich, wallet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_django import Settings

    from signing_app.keys import SigningKey

pytestmark = pytest.mark.django_db


# --- Forms ---


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_a_token_is_an_account_with_its_owners_money_in_it(form: str) -> None:
    ada = rich()
    token = issue(ada, "1.5", form=form)
    token_account = token_lookup.resolve(token.token)
    assert (token_account.id, str(token_account.available), token_account.owner_id) == (
        token.id,
        "1.5",
        ada.pk,
    )
    assert (token_account.depth, token_account.asset, token_account.per_use) == (0, "USD", None)
    assert wallet(ada) == "8.5"
    assert token_lookup.by_id(token.id) == token_account


def test_only_a_hash_of_the_secret_is_kept() -> None:
    token = issue(rich())
    row = PaymentToken.objects.filter(pk=token.id).values().get()
    assert token.token.startswith("ptok_")
    assert token.token.removeprefix("ptok_") not in json.dumps(row, default=str)


def test_the_same_key_gives_the_same_token_and_moves_money_once() -> None:
    ada = rich()
    first = issue(ada, key="k")
    again = issue(ada, key="k")
    assert (again.token, again.id, again.replayed) == (first.token, first.id, True)
    assert wallet(ada) == "9"
    with pytest.raises(services.IdempotencyConflict):
        issue(ada, key="k", name="other")
    with pytest.raises(services.IdempotencyConflict):
        issue(ada, "2", key="k")


def test_the_key_of_another_person_is_another_key() -> None:
    assert issue(rich("ada"), key="k").id != issue(rich("bob"), key="k").id


def test_a_jwt_says_what_the_reference_clients_read() -> None:
    ada = rich()
    token = issue(ada, "1.25", form="jwt", audience=["echo"])
    key = jwt.PyJWK(published.all_keys()["keys"][0])
    claims = jwt.decode(token.token, key, algorithms=["RS256"], audience="echo")
    assert claims["payment"] == {
        "balance": 1.25,
        "balance_exact": "1.25",
        "currency": "USD",
        "scheme": "token",
        "max_depth": 5,
    }
    assert (claims["sub"], claims["jti"], claims["aud"]) == (str(ada.pk), token.id, ["echo"])
    assert 3595 <= claims["exp"] - claims["iat"] <= 3601


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_a_token_is_taken_in_base64_too(form: str) -> None:
    token = issue(rich(), form=form)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(token.token.encode()).decode()
        assert token_lookup.resolve(encoded).id == token.id
        assert token_lookup.resolve(encoded.rstrip("=")).id == token.id


# --- Refusals ---


@pytest.mark.parametrize(
    "secret",
    ["", " ", "ptok_", "ptok_unknown", "a.b.c", "...", "x" * 9000, "tök", "Zm9v", "sk-1234"],
)
def test_a_malformed_token_is_invalid(secret: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        token_lookup.resolve(secret)
    assert caught.value.code == "token_invalid"


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_an_expired_token_says_so(form: str) -> None:
    token = issue(rich(), form=form)
    expire(token)
    assert refusal(token.token) == "token_expired"


def test_an_expired_jwt_says_so_before_its_row_is_read() -> None:
    token = issue(rich(), form="jwt")
    claims = jwt.decode(token.token, options={"verify_signature": False})
    key = server_keys.server_keys()[0]
    late = jwt.encode(
        {**claims, "exp": claims["iat"] - 1},
        key.private,
        "RS256",
        headers={"kid": key.kid, "typ": secret_forms.TYPE},
    )
    assert refusal(late) == "token_expired"


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_a_revoked_token_is_invalid(form: str) -> None:
    ada = rich()
    token = issue(ada, form=form)
    endings.revoke(token_id=token.id, user_id=ada.pk)
    assert refusal(token.token) == "token_invalid"
    with pytest.raises(TokenRefused):
        token_lookup.by_id(token.id)


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_a_token_is_spent_by_its_audience_only(form: str) -> None:
    token = issue(rich(), form=form, audience=["echo", "helper"])
    assert token_lookup.resolve(token.token, agent="helper").id == token.id
    assert refusal(token.token, agent="stranger") == "token_invalid"
    with pytest.raises(TokenRefused):
        token_lookup.by_id(token.id, agent="stranger")


def forged(
    change: Callable[[dict[str, Any]], tuple[dict[str, Any], Any, str, dict[str, Any]]],
) -> str:
    """Return the JWT of a good token, made anew with other claims, key, algorithm and header."""
    token = issue(rich(), form="jwt")
    claims = jwt.decode(token.token, options={"verify_signature": False})
    payload, key, algorithm, header = change(claims)
    headers = {"typ": secret_forms.TYPE, **header}
    return jwt.encode(payload, key, algorithm=algorithm, headers=headers)


def own_key() -> SigningKey:
    return server_keys.server_keys()[0]


def test_a_good_jwt_made_anew_by_the_test_is_taken() -> None:
    key = own_key()
    again = forged(lambda claims: (claims, key.private, "RS256", {"kid": key.kid}))
    assert token_lookup.resolve(again).depth == 0


def test_a_jwt_without_a_signature_is_invalid() -> None:
    key = own_key()
    assert refusal(forged(lambda c: (c, None, "none", {"kid": key.kid}))) == "token_invalid"


def test_a_jwt_signed_with_the_public_key_as_a_password_is_invalid() -> None:
    key = own_key()
    pem = key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def by_hand(claims: dict[str, Any]) -> str:
        # PyJWT refuses to sign like this, an attacker does not.
        def part(data: bytes) -> bytes:
            return base64.urlsafe_b64encode(data).rstrip(b"=")

        head = json.dumps({"alg": "HS256", "typ": secret_forms.TYPE, "kid": key.kid}).encode()
        signed = part(head) + b"." + part(json.dumps(claims).encode())
        return (signed + b"." + part(hmac.new(pem, signed, hashlib.sha256).digest())).decode()

    token = issue(rich(), form="jwt")
    claims = jwt.decode(token.token, options={"verify_signature": False})
    assert refusal(by_hand(claims)) == "token_invalid"


def test_a_jwt_of_a_foreign_key_is_invalid_whatever_it_says_of_itself() -> None:
    foreign = generate_private_key(public_exponent=65537, key_size=2048)
    ours = own_key().kid
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(foreign.public_key()))
    for header in ({"kid": ours}, {"kid": "foreign"}, {}, {"kid": ours, "jwk": jwk}):
        token = issue(rich(new_key()), form="jwt")
        claims = jwt.decode(token.token, options={"verify_signature": False})
        headers = {"typ": secret_forms.TYPE, **header}
        assert refusal(jwt.encode(claims, foreign, "RS256", headers=headers)) == "token_invalid"


@pytest.mark.parametrize(
    "typ",
    ["JWT", "at+jwt", "webhook+jwt", "response+jwt", "receipt+jwt", "Payment+JWT", "", None, 7],
)
def test_a_jwt_of_ours_of_another_type_is_invalid(typ: Any) -> None:
    """The keys that sign payment tokens sign access tokens and webhooks too."""
    key = own_key()
    header = {"alg": "RS256", "kid": key.kid, "typ": typ}
    claims = forged(lambda c: (c, key.private, key.algorithm, {"kid": key.kid})).split(".")[1]

    def part(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    signed = f"{part(json.dumps(header).encode())}.{claims}"
    signature = key.private.sign(signed.encode(), PKCS1v15(), SHA256())  # type: ignore[call-arg,arg-type]
    assert refusal(f"{signed}.{part(signature)}") == "token_invalid"


@pytest.mark.parametrize(
    "change",
    [{"iss": "https://elsewhere.example"}, {"iss": None}, {"jti": None}, {"payment": None}],
    ids=["foreign issuer", "no issuer", "no id", "not for payments"],
)
def test_a_jwt_of_ours_with_other_claims_is_invalid(change: dict[str, Any]) -> None:
    key = own_key()

    def altered(claims: dict[str, Any]) -> Any:
        payload = {k: v for k, v in {**claims, **change}.items() if v is not None}
        return payload, key.private, "RS256", {"kid": key.kid}

    assert refusal(forged(altered)) == "token_invalid"


def test_an_opaque_tokens_id_in_a_jwt_is_invalid() -> None:
    opaque = issue(rich("bob"))
    key = own_key()
    forged_token = forged(
        lambda c: ({**c, "jti": opaque.id}, key.private, "RS256", {"kid": key.kid})
    )
    assert refusal(forged_token) == "token_invalid"


# --- Keys ---


def pem_file(path: Path, *, rsa: bool) -> str:
    private = (
        generate_private_key(public_exponent=65537, key_size=2048)
        if rsa
        else Ed25519PrivateKey.generate()
    )
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return str(path)


def test_a_new_key_signs_and_the_old_one_still_verifies(tmp_path: Path, settings: Settings) -> None:
    old, new = pem_file(tmp_path / "a.pem", rsa=True), pem_file(tmp_path / "b.pem", rsa=False)
    ada = rich()
    settings.UAMP_SIGNING_KEYS = [old]
    before = issue(ada, form="jwt")
    settings.UAMP_SIGNING_KEYS = [new, old]
    after = issue(ada, form="jwt")
    assert jwt.get_unverified_header(before.token)["alg"] == "RS256"
    assert jwt.get_unverified_header(after.token)["alg"] == "EdDSA"
    assert {token_lookup.resolve(token.token).id for token in (before, after)} == {
        before.id,
        after.id,
    }
    assert [key["alg"] for key in published.all_keys()["keys"]] == ["EdDSA", "RS256"]
    settings.UAMP_SIGNING_KEYS = [new]
    assert refusal(before.token) == "token_invalid"


def test_the_published_keys_have_no_private_half(tmp_path: Path, settings: Settings) -> None:
    settings.UAMP_SIGNING_KEYS = [
        pem_file(tmp_path / "a.pem", rsa=True),
        pem_file(tmp_path / "b.pem", rsa=False),
    ]
    for key in published.all_keys()["keys"]:
        assert not {"d", "p", "q", "dp", "dq", "qi"} & set(key)
        assert key["use"] == "sig"


@pytest.mark.parametrize("bits", [1024, 2040])
def test_a_weak_key_is_refused(bits: int, tmp_path: Path, settings: Settings) -> None:
    private = generate_private_key(public_exponent=65537, key_size=bits)
    path = tmp_path / "weak.pem"
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    settings.UAMP_SIGNING_KEYS = [str(path)]
    with pytest.raises(ValueError, match="2048"):
        server_keys.server_keys()
