"""Payment tokens: who may spend what, in which form, for how long, and where the rest goes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from functools import partial
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
from payments_app.services import InsufficientFunds
from payments_app.tokens import endings, secret_forms, top_ups
from payments_app.tokens import lookup as token_lookup
from payments_app.tokens.lookup import TokenRefused
from signing_app import published, server_keys
from tests.payments_app.funded_accounts import authorize, fees, new_key, usd
from tests.payments_app.tokens.issued_tokens import delegate, expire, issue, race, rich, wallet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_django import DjangoDbBlocker, Settings

    from payments_app.tokens.issuance import IssuedToken
    from signing_app.keys import SigningKey

pytestmark = pytest.mark.django_db


def refusal(secret: str, **more: str) -> str:
    with pytest.raises(TokenRefused) as caught:
        token_lookup.resolve(secret, **more)
    assert secret not in str(caught.value)
    return caught.value.code


# --- Forms ---


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_a_token_is_an_account_with_its_owners_money_in_it(form: str) -> None:
    ada = rich()
    made = issue(ada, "1.5", form=form)
    found = token_lookup.resolve(made.token)
    assert (found.id, str(found.available), found.owner_id) == (made.id, "1.5", ada.pk)
    assert (found.depth, found.asset, found.per_use) == (0, "USD", None)
    assert wallet(ada) == "8.5"
    assert token_lookup.by_id(made.id) == found


def test_only_a_hash_of_the_secret_is_kept() -> None:
    made = issue(rich())
    row = PaymentToken.objects.filter(pk=made.id).values().get()
    assert made.token.startswith("ptok_")
    assert made.token.removeprefix("ptok_") not in json.dumps(row, default=str)


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
    made = issue(ada, "1.25", form="jwt", audience=["echo"])
    key = jwt.PyJWK(published.all_keys()["keys"][0])
    claims = jwt.decode(made.token, key, algorithms=["RS256"], audience="echo")
    assert claims["payment"] == {
        "balance": 1.25,
        "balance_exact": "1.25",
        "currency": "USD",
        "scheme": "token",
        "max_depth": 5,
    }
    assert (claims["sub"], claims["jti"], claims["aud"]) == (str(ada.pk), made.id, ["echo"])
    assert 3595 <= claims["exp"] - claims["iat"] <= 3601


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_a_token_is_taken_in_base64_too(form: str) -> None:
    made = issue(rich(), form=form)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(made.token.encode()).decode()
        assert token_lookup.resolve(encoded).id == made.id
        assert token_lookup.resolve(encoded.rstrip("=")).id == made.id


# --- Refusals ---


@pytest.mark.parametrize(
    "secret",
    ["", " ", "ptok_", "ptok_unknown", "a.b.c", "...", "x" * 9000, "tök", "Zm9v", "sk-1234"],
)
def test_what_is_no_token_is_invalid(secret: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        token_lookup.resolve(secret)
    assert caught.value.code == "token_invalid"


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_an_expired_token_says_so(form: str) -> None:
    made = issue(rich(), form=form)
    expire(made)
    assert refusal(made.token) == "token_expired"


def test_an_expired_jwt_says_so_before_its_row_is_read() -> None:
    made = issue(rich(), form="jwt")
    claims = jwt.decode(made.token, options={"verify_signature": False})
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
    made = issue(ada, form=form)
    endings.revoke(token_id=made.id, user_id=ada.pk)
    assert refusal(made.token) == "token_invalid"
    with pytest.raises(TokenRefused):
        token_lookup.by_id(made.id)


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_a_token_is_spent_by_its_audience_only(form: str) -> None:
    made = issue(rich(), form=form, audience=["echo", "helper"])
    assert token_lookup.resolve(made.token, agent="helper").id == made.id
    assert refusal(made.token, agent="stranger") == "token_invalid"
    with pytest.raises(TokenRefused):
        token_lookup.by_id(made.id, agent="stranger")


def forged(
    change: Callable[[dict[str, Any]], tuple[dict[str, Any], Any, str, dict[str, Any]]],
) -> str:
    """Return the JWT of a good token, made anew with other claims, key, algorithm and header."""
    made = issue(rich(), form="jwt")
    claims = jwt.decode(made.token, options={"verify_signature": False})
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

    made = issue(rich(), form="jwt")
    claims = jwt.decode(made.token, options={"verify_signature": False})
    assert refusal(by_hand(claims)) == "token_invalid"


def test_a_jwt_of_a_foreign_key_is_invalid_whatever_it_says_of_itself() -> None:
    foreign = generate_private_key(public_exponent=65537, key_size=2048)
    ours = own_key().kid
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(foreign.public_key()))
    for header in ({"kid": ours}, {"kid": "foreign"}, {}, {"kid": ours, "jwk": jwk}):
        made = issue(rich(new_key()), form="jwt")
        claims = jwt.decode(made.token, options={"verify_signature": False})
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
    made = forged(lambda c: ({**c, "jti": opaque.id}, key.private, "RS256", {"kid": key.kid}))
    assert refusal(made) == "token_invalid"


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
    assert {token_lookup.resolve(made.token).id for made in (before, after)} == {
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


# --- Passed on ---


def test_a_child_takes_its_money_from_its_parent() -> None:
    ada = rich()
    parent = issue(ada, "1", per_use=usd("0.3"))
    child = delegate(parent, "0.4")
    assert [str(token_lookup.resolve(t.token).available) for t in (parent, child)] == ["0.6", "0.4"]
    found = token_lookup.resolve(child.token, agent="helper")
    assert (found.owner_id, found.depth, found.per_use) == (ada.pk, 1, usd("0.3"))
    assert refusal(child.token, agent="echo") == "token_invalid"
    assert wallet(ada) == "9"


def test_more_than_the_parent_has_is_refused_with_what_it_has() -> None:
    parent = issue(rich(), "0.2")
    with pytest.raises(InsufficientFunds, match=r"available: 0\.2"):
        delegate(parent, "0.3")
    assert PaymentToken.objects.count() == 1


def test_a_child_ends_with_its_parent_at_the_latest() -> None:
    parent = issue(rich(), expires_in=100)
    assert delegate(parent, expires_in=1000).expires_at == parent.expires_at
    assert delegate(parent).expires_at == parent.expires_at
    sooner = delegate(parent, expires_in=10)
    assert sooner.expires_at < parent.expires_at


def test_a_child_is_not_for_an_agent_that_the_parent_is_not_for() -> None:
    parent = issue(rich(), audience=["echo"])
    assert delegate(parent, to="echo").audience == ("echo",)
    for to, audience in (("stranger", ()), ("echo", ["stranger"])):
        with pytest.raises(TokenRefused) as caught:
            delegate(parent, to=to, audience=audience)
        assert caught.value.code == "token_invalid"


def test_a_token_is_passed_on_five_times_and_not_six() -> None:
    token = issue(rich())
    for depth in range(1, 6):
        token = delegate(token, "0.1")
        assert token.depth == depth
    with pytest.raises(TokenRefused, match="at most 5"):
        delegate(token, "0.1")


@pytest.mark.parametrize("end", ["expired", "revoked"])
def test_a_token_that_ended_is_not_passed_on(end: str) -> None:
    ada = rich()
    parent = issue(ada)
    if end == "expired":
        expire(parent)
    else:
        endings.revoke(token_id=parent.id, user_id=ada.pk)
    with pytest.raises(TokenRefused):
        delegate(parent)


# --- Top-up ---


def test_a_top_up_moves_more_into_the_same_token() -> None:
    ada = rich()
    made = issue(ada)
    for _ in range(2):
        top_ups.top_up(key="once", token_id=made.id, user_id=ada.pk, amount=usd("2"))
    assert str(token_lookup.resolve(made.token).available) == "3"
    assert wallet(ada) == "7"


def test_a_token_is_topped_up_by_its_owner_only_and_while_it_lasts() -> None:
    ada, bob = rich("ada"), rich("bob")
    made = issue(ada)
    with pytest.raises(token_lookup.UnknownToken):
        top_ups.top_up(key="k", token_id=made.id, user_id=bob.pk, amount=usd("1"))
    expire(made)
    with pytest.raises(TokenRefused):
        top_ups.top_up(key="k", token_id=made.id, user_id=ada.pk, amount=usd("1"))
    assert (wallet(ada), wallet(bob)) == ("9", "10")


# --- Ends ---


def hold(token: IssuedToken, amount: str) -> str:
    return authorize(key=new_key(), account_id=token.account_id, amount=usd(amount)).hold_id


def test_revoking_gives_back_what_is_not_held_and_ends_the_children() -> None:
    ada = rich()
    parent = issue(ada, "2")
    child = delegate(parent, "1")
    held = hold(child, "0.25")
    assert endings.revoke(token_id=parent.id, user_id=ada.pk) == usd("1.75")
    assert wallet(ada) == "9.75"
    assert refusal(child.token) == "token_invalid"
    with pytest.raises(InsufficientFunds):
        hold(child, "0.01")
    services.capture(key="c", hold_id=held, amount=usd("0.2"), splits=[fees("0.2")], release=True)
    assert endings.return_available() == 1
    assert wallet(ada) == "9.8"
    assert services.audit().clean


def test_what_a_child_has_left_goes_back_to_a_parent_that_lasts() -> None:
    ada = rich()
    parent = issue(ada, "2")
    child = delegate(parent, "1")
    endings.revoke(token_id=child.id, user_id=ada.pk)
    assert str(token_lookup.resolve(parent.token).available) == "2"
    assert wallet(ada) == "8"


def test_the_sweep_gives_back_what_expired_once() -> None:
    ada = rich()
    made, lasting = issue(ada, "2"), issue(ada, "1")
    assert endings.return_available() == 0
    expire(made)
    assert [endings.return_available(), endings.return_available()] == [1, 0]
    assert wallet(ada) == "9"
    assert PaymentToken.objects.get(pk=made.id).closed_at is not None
    assert str(token_lookup.resolve(lasting.token).available) == "1"


def test_the_periodic_job_gives_back_what_expired() -> None:
    ada = rich()
    made = issue(ada, "2")
    held = authorize(key="h", account_id=made.account_id, amount=usd("0.5"), expires_in=0.001)
    expire(made)
    time.sleep(0.003)
    services.expire_and_audit()
    assert (wallet(ada), held.amount) == ("10", usd("0.5"))


def test_a_refund_to_a_token_that_is_done_with_comes_back_too() -> None:
    ada = rich()
    made = issue(ada, "1")
    paid = services.capture(
        key="c", hold_id=hold(made, "1"), amount=usd("1"), splits=[fees("1")], release=True
    )
    expire(made)
    endings.return_available()
    services.refund(key="r", transfer_id=paid.transfer_ids[0], by=None, reason="wrong")
    assert endings.return_available() == 0
    assert endings.return_available(thorough=True) == 1
    assert wallet(ada) == "10"


def test_a_stranger_sees_and_ends_nothing() -> None:
    ada, bob = rich("ada"), rich("bob")
    made = issue(ada)
    with pytest.raises(token_lookup.UnknownToken):
        endings.revoke(token_id=made.id, user_id=bob.pk)
    with pytest.raises(token_lookup.UnknownToken):
        endings.tree(made.id, bob.pk)
    assert endings.tokens_of(bob.pk) == []
    assert token_lookup.resolve(made.token).id == made.id


def test_the_tree_shows_all_that_was_passed_on() -> None:
    ada = rich()
    root = issue(ada, "3", name="trip")
    left, right = delegate(root, "1", to="a", audience=["c"]), delegate(root, "1", to="b")
    leaf = delegate(left, "0.5", to="c")
    endings.revoke(token_id=right.id, user_id=ada.pk)
    tree = endings.tree(root.id, ada.pk)
    assert (tree.id, tree.name, str(tree.available)) == (root.id, "trip", "2")
    assert [(c.id, c.status) for c in tree.children] == [(left.id, "active"), (right.id, "revoked")]
    assert [c.id for c in tree.children[0].children] == [leaf.id]
    assert [t.id for t in endings.tokens_of(ada.pk)][-1] == root.id


@pytest.mark.parametrize(
    "fields",
    [
        {"expires_in": 0},
        {"expires_in": -1},
        {"expires_in": 1e12},
        {"form": "paper"},
        {"name": "x" * 101},
        {"audience": [""]},
        {"audience": ["x"] * 51},
    ],
    ids=str,
)
def test_a_token_that_cannot_be_is_not_made(fields: dict[str, Any]) -> None:
    ada = rich()
    with pytest.raises(ValueError, match=r"token|name|audience"):
        issue(ada, **fields)
    assert wallet(ada) == "10"


# --- Races ---


@pytest.mark.django_db(transaction=True)
def test_two_holds_on_a_token_for_one_are_one(django_db_blocker: DjangoDbBlocker) -> None:
    made = issue(rich(), "1")
    found = race(django_db_blocker, *[lambda: hold(made, "1")] * 4)
    assert sum(isinstance(one, str) for one in found) == 1
    assert sum(isinstance(one, InsufficientFunds) for one in found) == 3


@pytest.mark.django_db(transaction=True)
def test_passing_on_and_revoking_at_once_leaves_no_child_behind(
    django_db_blocker: DjangoDbBlocker,
) -> None:
    ada = rich()
    for _ in range(5):
        parent = issue(ada, "1")
        race(
            django_db_blocker,
            partial(delegate, parent, "0.5"),
            partial(endings.revoke, token_id=parent.id, user_id=ada.pk),
            partial(delegate, parent, "0.3"),
        )
        children = PaymentToken.objects.filter(parent_id=parent.id)
        assert all(child.revoked_at is not None for child in children)
        assert wallet(ada) == "10"
    assert services.audit().clean


@pytest.mark.django_db(transaction=True)
def test_the_same_key_at_once_is_one_token(django_db_blocker: DjangoDbBlocker) -> None:
    ada = rich()
    found = race(django_db_blocker, *[lambda: issue(ada, key="same").token] * 4)
    assert len(set(map(str, found))) == 1
    assert wallet(ada) == "9"
