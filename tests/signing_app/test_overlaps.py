"""Keys that others pin: announced, then signing, then vouching, and deleted in the end."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.admin.utils import quote
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection
from django.test import Client
from django.utils import timezone

from signing_app import owner_keys, published
from signing_app.models import PublishedKey
from tests import factories
from tests.threads import join_threads

if TYPE_CHECKING:
    from pytest_django import Settings

pytestmark = pytest.mark.django_db

OWNER = "pinned"
DAY, WEEK = timedelta(days=1), timedelta(days=7)


@pytest.fixture(autouse=True)
def overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the keys of OWNER overlap."""
    made = owner_keys.Overlap(algorithm="ES256", announced_for=DAY, vouches_for=WEEK)
    monkeypatch.setitem(owner_keys._overlaps, OWNER, made)


def pass_time(passed: timedelta) -> None:
    """Let time pass for all keys."""
    for row in PublishedKey.objects.all():
        for name in ("created_at", "retired_at", "vouches_until"):
            if (at := getattr(row, name)) is not None:
                setattr(row, name, at - passed)
        row.save()
    owner_keys.forget()


def signs() -> str:
    return owner_keys.signing_key(OWNER, "ES256").kid


def vouches() -> str:
    return owner_keys.vouching_key(OWNER, "ES256").kid


def published_kids() -> set[str]:
    return {key["kid"] for key in published.keys_of(OWNER)["keys"] if key["uamp_owner"] == OWNER}


def test_a_key_is_announced_then_signs_and_the_one_before_it_vouches() -> None:
    old = signs()
    assert vouches() == old
    new = owner_keys.rotate(OWNER)
    assert new.algorithm == "ES256"
    assert (signs(), vouches(), published_kids()) == (old, old, {old, new.kid})
    # Both are valid for the overlap: the new one signs envelopes, the old one the documents.
    pass_time(DAY)
    assert (signs(), vouches()) == (new.kid, old)
    pass_time(WEEK - timedelta(minutes=1))
    assert (signs(), vouches()) == (new.kid, old)
    assert owner_keys.forget_private_halves(10) == 0
    pass_time(timedelta(minutes=1))
    assert (signs(), vouches()) == (new.kid, new.kid)
    assert owner_keys.forget_private_halves(10) == 1
    assert PublishedKey.objects.get(pk=old).secret == ""
    assert owner_keys.forget_private_halves(10) == 0


def test_the_oldest_of_several_keys_vouches() -> None:
    kids = [signs()]
    for _ in range(3):
        kids.append(owner_keys.rotate(OWNER).kid)
        pass_time(DAY)
    assert (signs(), vouches()) == (kids[-1], kids[0])
    pass_time(timedelta(days=5))
    assert (signs(), vouches()) == (kids[-1], kids[1])


def test_a_key_that_is_announced_is_not_rotated() -> None:
    signs()
    new = owner_keys.rotate(OWNER)
    assert owner_keys.signs_from(OWNER) is not None
    assert owner_keys.rotate(OWNER).kid == new.kid
    assert PublishedKey.objects.filter(owner=OWNER).count() == 2


def test_too_many_rotations_are_refused() -> None:
    # A week has room for seven; a test of the bound needs keys that vouch for longer.
    longer = owner_keys.Overlap(algorithm="ES256", announced_for=DAY, vouches_for=4 * WEEK)
    owner_keys.overlapping(OWNER, longer)
    signs()
    for _ in range(owner_keys.MAX_VOUCHING_KEYS):
        owner_keys.rotate(OWNER)
        pass_time(DAY)
    before = published_kids()
    with pytest.raises(owner_keys.TooManyRotations):
        owner_keys.rotate(OWNER)
    with pytest.raises(CommandError, match="too often"):
        call_command("rotate_signing_keys", OWNER)
    assert published_kids() == before


@pytest.mark.django_db(transaction=True)
def test_processes_that_rotate_at_once_announce_one_key() -> None:
    old = signs()
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
    assert len(made) == 3
    assert published_kids() == {old, *made}
    assert len(set(made)) == 1
    assert (signs(), vouches()) == (old, old)


def test_a_withdrawn_key_neither_signs_nor_vouches() -> None:
    old = signs()
    new = owner_keys.rotate(OWNER).kid
    assert owner_keys.withdraw(old)
    assert (signs(), vouches(), published_kids()) == (new, new, {new})
    assert PublishedKey.objects.get(pk=old).secret == ""
    # One that vouches only.
    third = owner_keys.rotate(OWNER).kid
    pass_time(DAY)
    assert (signs(), vouches()) == (third, new)
    assert owner_keys.withdraw(new)
    assert (signs(), vouches()) == (third, third)


@pytest.mark.parametrize("by", ["command", "admin"])
def test_unreadable_keys_neither_sign_nor_vouch_until_they_are_rotated(
    settings: Settings, by: str
) -> None:
    old = signs()
    new = owner_keys.rotate(OWNER).kid
    owner_keys.forget()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another " + "1" * 50, []
    for sign in (signs, vouches):
        with pytest.raises(owner_keys.UnreadableKey):
            sign()
    assert set(owner_keys.unreadable_keys(OWNER)) == {old, new}
    if by == "command":
        call_command("rotate_signing_keys", OWNER)
    else:
        client = Client()
        client.force_login(factories.user("root", is_staff=True, is_superuser=True))
        page = f"/admin/signing_app/publishedkey/{quote(new)}/operate/rotate/"
        client.post(page, {"reason": "SECRET_KEY was lost"})
    third = signs()
    assert third not in {old, new}
    assert vouches() == third
    assert published_kids() == {old, new, third}


def test_the_database_keeps_no_private_half_of_a_retired_key_that_does_not_vouch() -> None:
    old = signs()
    with pytest.raises(IntegrityError):
        PublishedKey.objects.filter(pk=old).update(retired_at=timezone.now())


def test_the_command_and_an_operator_announce_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    old = signs()
    call_command("rotate_signing_keys", OWNER)
    (new,) = published_kids() - {old}
    start = owner_keys.signs_from(OWNER)
    assert start is not None
    assert (
        f"{OWNER} signs with {new} (ES256) from {start:%Y-%m-%d %H:%M}" in capsys.readouterr().out
    )
    call_command("rotate_signing_keys", OWNER)
    assert "already has a new key" in capsys.readouterr().out
    client = Client()
    client.force_login(factories.user("root", is_staff=True, is_superuser=True))
    page = f"/admin/signing_app/publishedkey/{quote(new)}/operate/rotate/"
    client.post(page, {"reason": "a drill"})
    assert published_kids() == {old, new}
    pass_time(DAY)
    client.post(page, {"reason": "a drill"})
    assert len(published_kids()) == 3
    assert signs() == new
