"""The keys of owners: made once, encrypted at rest, rotated, withdrawn, published."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from django.contrib.admin.utils import quote
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from audit_app.models import AuditRecord
from signing_app import owner_keys, published
from signing_app.keys import ALGORITHMS, UnusableKey, new_key, read_key
from signing_app.models import PublishedKey
from tests import factories
from tests.threads import join_threads
from uamp.signatures import agent_owner
from uamp.signatures.trust import LATE_SECONDS, distrust
from uamp_project.management.stored_keys import require_readable_keys

if TYPE_CHECKING:
    from pytest_django import Settings

pytestmark = pytest.mark.django_db

OWNER = agent_owner("agent_1")
CLAIMS = {"sub": "resp_1", "response_hash": "00"}


def jwk_of(kid: str) -> dict[str, Any] | None:
    return next(iter(published.keys_named([kid])["keys"]), None)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_a_key_signs_another_library_verifies_by_the_published_set(
    algorithm: str, settings: Settings
) -> None:
    settings.UAMP_SIGNATURE_ALGORITHM = algorithm
    signed = owner_keys.signing_key(OWNER).sign(CLAIMS, typ="response+jwt")
    header = jwt.get_unverified_header(signed)
    assert (header["alg"], header["typ"]) == (algorithm, "response+jwt")
    document = Client().get("/.well-known/jwks.json", {"kid": header["kid"]}).json()
    key = jwt.PyJWKSet.from_dict(document)[header["kid"]]
    assert jwt.decode(signed, key, algorithms=[algorithm]) == CLAIMS
    with pytest.raises(jwt.InvalidSignatureError):
        jwt.decode(signed[:-8] + "AAAAAAAA", key, algorithms=[algorithm])


def test_an_owner_has_one_key_and_owners_have_different_ones() -> None:
    first = owner_keys.signing_key(OWNER)
    owner_keys.forget()
    assert owner_keys.signing_key(OWNER).kid == first.kid
    assert owner_keys.signing_key(owner_keys.LOG).kid != first.kid
    assert owner_keys.owners() == [OWNER, owner_keys.LOG]


def test_the_private_half_is_encrypted_and_goes_with_the_rotation() -> None:
    first = owner_keys.signing_key(OWNER)
    row = PublishedKey.objects.get(pk=first.kid)
    assert "PRIVATE" not in row.secret
    assert first.pem.decode()[40:80] not in row.secret
    assert "d" not in row.jwk
    second = owner_keys.rotate(OWNER)
    row.refresh_from_db()
    assert (row.secret, row.retired_at is not None) == ("", True)
    assert owner_keys.signing_key(OWNER).kid == second.kid


def test_a_retired_key_is_published_with_its_times_and_a_withdrawn_one_is_not() -> None:
    old = owner_keys.signing_key(OWNER)
    owner_keys.rotate(OWNER)
    found = jwk_of(old.kid)
    assert found is not None
    assert found["iat"] <= found["exp"]
    assert owner_keys.withdraw(old.kid)
    assert not owner_keys.withdraw(old.kid)
    assert jwk_of(old.kid) is None


def test_a_key_that_signs_is_withdrawn_and_its_owner_gets_another() -> None:
    old = owner_keys.signing_key(OWNER)
    owner_keys.withdraw(old.kid)
    assert owner_keys.signing_key(OWNER).kid != old.kid


def test_another_algorithm_applies_with_the_next_rotation(settings: Settings) -> None:
    old = owner_keys.signing_key(OWNER)
    settings.UAMP_SIGNATURE_ALGORITHM = "ES256"
    owner_keys.forget()
    assert owner_keys.signing_key(OWNER).kid == old.kid
    new = owner_keys.rotate(OWNER)
    assert (old.algorithm, new.algorithm) == ("EdDSA", "ES256")
    assert jwk_of(old.kid) is not None
    assert owner_keys.signing_key(owner_keys.LOG, "EdDSA").algorithm == "EdDSA"


def test_processes_with_different_algorithms_sign_with_one_key(settings: Settings) -> None:
    for algorithm in ("EdDSA", "ES256") * 5:
        settings.UAMP_SIGNATURE_ALGORITHM = algorithm
        owner_keys.forget()
        owner_keys.signing_key(OWNER)
    assert PublishedKey.objects.count() == 1


def test_a_process_with_the_wrong_secret_destroys_no_key(settings: Settings) -> None:
    right, wrong = settings.SECRET_KEY, "another " + "1" * 50
    key = owner_keys.signing_key(OWNER)
    stored = PublishedKey.objects.get()
    for _ in range(5):
        settings.SECRET_KEY = wrong
        owner_keys.forget()
        with pytest.raises(owner_keys.UnreadableKey, match=key.kid):
            owner_keys.signing_key(OWNER)
        settings.SECRET_KEY = right
        owner_keys.forget()
        assert owner_keys.signing_key(OWNER).pem == key.pem
    assert PublishedKey.objects.get().secret == stored.secret
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = wrong, [right]
    owner_keys.forget()
    assert owner_keys.signing_key(OWNER).kid == key.kid
    assert owner_keys.unreadable_keys() == []


def test_a_key_from_the_future_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    key = owner_keys.signing_key(OWNER)
    owner_keys.forget()
    owner_keys.signing_key(OWNER)
    assert not caplog.text
    PublishedKey.objects.update(created_at=timezone.now() + timedelta(hours=1))
    owner_keys.forget()
    assert owner_keys.signing_key(OWNER).kid == key.kid
    assert f"the key {key.kid} of {OWNER} was created 3600 s in the future" in caplog.text


def test_an_answer_signed_after_a_rotation_by_another_process_is_trusted() -> None:
    """Another process has cached the key before it was rotated here."""
    old = owner_keys.signing_key(OWNER)
    new = owner_keys.rotate(OWNER)
    now = int(time.time())
    retired, current = jwk_of(old.kid), jwk_of(new.kid)
    assert retired is not None
    assert current is not None
    assert owner_keys.FRESH_SECONDS < LATE_SECONDS
    late = now + int(owner_keys.FRESH_SECONDS)
    assert distrust(retired, owner=OWNER, at=late) is None
    assert distrust(retired, owner=OWNER, at=now + LATE_SECONDS + 2) is not None
    assert distrust(current, owner=OWNER, at=now) is None


def test_no_process_starts_that_cannot_read_the_keys_until_they_are_replaced(
    settings: Settings,
) -> None:
    key = owner_keys.signing_key(OWNER)
    require_readable_keys()
    settings.SECRET_KEY = "another " + "1" * 50
    owner_keys.forget()
    readable = owner_keys.signing_key("receipts")
    for command in ("serve", "web", "worker"):
        with pytest.raises(CommandError, match=rf"{key.kid}.*rotate_signing_keys"):
            call_command(command)
    call_command("rotate_signing_keys", "--unreadable")
    require_readable_keys()
    assert owner_keys.signing_key(OWNER).kid != key.kid
    assert owner_keys.signing_key("receipts").kid == readable.kid
    assert jwk_of(key.kid) is not None


def test_a_key_that_signs_no_more_keeps_no_process_from_starting(settings: Settings) -> None:
    owner_keys.signing_key(OWNER)
    settings.SECRET_KEY = "another " + "1" * 50
    past = timezone.now() - timedelta(seconds=1)
    PublishedKey.objects.update(retired_at=past, vouches_until=past)
    require_readable_keys()
    PublishedKey.objects.update(vouches_until=timezone.now() + timedelta(hours=1))
    with pytest.raises(CommandError, match="rotate_signing_keys --unreadable"):
        require_readable_keys()
    call_command("rotate_signing_keys", "--unreadable")
    require_readable_keys()


def test_keys_of_agents_never_displace_those_of_other_purposes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(published, "MAX_AGENT_KEYS", 3)
    purposes = [owner_keys.LOG, "tree", "receipts", owner_keys.CARDS, "shares"]
    for owner in purposes:
        owner_keys.signing_key(owner, "EdDSA")
    newest = [owner_keys.signing_key(agent_owner(f"agent_{i}")).kid for i in range(5)][:1:-1]
    keys = Client().get("/.well-known/jwks.json").json()["keys"]
    owners = [key["uamp_owner"] for key in keys]
    assert set(purposes) < set(owners)
    assert [key["kid"] for key in keys if key["uamp_owner"].startswith("agent:")] == newest


@pytest.mark.django_db(transaction=True)
def test_threads_that_sign_first_at_once_agree_on_one_key() -> None:
    made: list[str] = []

    def sign() -> None:
        try:
            made.append(owner_keys.signing_key(OWNER).kid)
        finally:
            connection.close()

    threads = [threading.Thread(target=sign) for _ in range(4)]
    for thread in threads:
        thread.start()
    join_threads(threads)
    assert len(made) == 4
    assert len(set(made)) == 1


@pytest.mark.django_db(transaction=True)
def test_processes_that_rotate_at_once_leave_one_key_that_signs() -> None:
    owner_keys.signing_key(OWNER)
    start = threading.Barrier(3)
    made: list[str] = []

    def rotate() -> None:
        start.wait(120)
        try:
            made.append(owner_keys.rotate(OWNER).kid)
        finally:
            connection.close()

    threads = [threading.Thread(target=rotate) for _ in range(3)]
    for thread in threads:
        thread.start()
    join_threads(threads)
    (signing,) = PublishedKey.objects.filter(owner=OWNER, retired_at__isnull=True)
    assert len(set(made)) == 3
    assert signing.pk in made
    assert PublishedKey.objects.filter(owner=OWNER, withdrawn_at__isnull=True).count() == 4


def test_the_database_refuses_a_second_key_that_signs() -> None:
    owner_keys.signing_key(OWNER)
    other = new_key("EdDSA")
    with pytest.raises(IntegrityError), transaction.atomic():
        PublishedKey.objects.create(kid=other.kid, owner=OWNER, algorithm="EdDSA", jwk=other.jwk)


def test_keys_of_other_kinds_are_refused() -> None:
    with pytest.raises(UnusableKey):
        new_key("HS256")
    with pytest.raises(ValueError, match="PEM"):
        read_key(b"no key")


def test_many_and_long_key_ids_ask_for_nothing() -> None:
    answer = Client().get("/.well-known/jwks.json", {"kid": ["x" * 4000] * 90})
    assert (answer.status_code, answer.json()) == (200, {"keys": []})
    assert answer["Access-Control-Allow-Origin"] == "*"


def test_the_command_rotates_and_records_it() -> None:
    old = owner_keys.signing_key(OWNER)
    call_command("rotate_signing_keys")
    assert owner_keys.signing_key(OWNER).kid != old.kid
    assert AuditRecord.objects.filter(action="key.rotated").count() == 1
    with pytest.raises(CommandError, match="none"):
        call_command("rotate_signing_keys", "none")


def test_an_operator_rotates_and_withdraws_with_a_reason() -> None:
    old = owner_keys.signing_key(OWNER)
    client = Client()
    client.force_login(factories.user("root", is_staff=True, is_superuser=True))
    page = f"/admin/signing_app/publishedkey/{quote(old.kid)}"
    shown = client.get(f"{page}/change/").content.decode()
    assert old.kid in shown
    assert PublishedKey.objects.get(pk=old.kid).secret not in shown
    assert client.get("/admin/signing_app/publishedkey/").status_code == 200
    client.post(f"{page}/operate/rotate/", {"reason": "a drill"})
    assert owner_keys.signing_key(OWNER).kid != old.kid
    client.post(f"{page}/operate/withdraw/", {"reason": "it leaked"})
    assert jwk_of(old.kid) is None
    acts = AuditRecord.objects.filter(kind="signing_app.publishedkey").order_by("id")
    assert [(act.action, act.reason) for act in acts] == [
        ("key.rotated", "a drill"),
        ("key.revoked", "it leaked"),
    ]
