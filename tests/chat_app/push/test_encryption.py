"""Messages of RFC 8291, and the rules that decide about them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key

from chat_app.models import NotificationLevel, Participant, PersonSettings
from chat_app.push.encryption import encrypt, from_base64url, public_key, to_base64url
from chat_app.push.rules import is_quiet, notifies
from tests.push_service import PushBrowser

pytestmark = pytest.mark.any_database

# RFC 8291, section 5 and appendix A.
TEXT = b"When I grow up, I want to be a watermelon"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
RECEIVER = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml"
    "mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
    "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_rfc() -> None:
    sender = derive_private_key(int.from_bytes(from_base64url(SENDER)), SECP256R1())
    body = encrypt(
        TEXT,
        p256dh=from_base64url(P256DH),
        auth=from_base64url(AUTH),
        sender=sender,
        salt=from_base64url(SALT),
    )
    assert to_base64url(body) == BODY
    private = derive_private_key(int.from_bytes(from_base64url(RECEIVER)), SECP256R1())
    browser = PushBrowser("", private, from_base64url(AUTH))
    assert to_base64url(browser.public) == P256DH
    assert browser.decrypted(body) == TEXT


def test_only_the_browser_reads_a_message_and_no_two_are_alike() -> None:
    browser, other = PushBrowser(""), PushBrowser("")
    first, second = (encrypt(TEXT, p256dh=browser.public, auth=browser.auth) for _ in range(2))
    assert browser.decrypted(first) == browser.decrypted(second) == TEXT
    assert first[:16] != second[:16]
    assert first[21:86] != second[21:86]
    with pytest.raises(InvalidTag):
        other.decrypted(first)


@pytest.mark.parametrize(
    "data", [b"", b"\x04" * 64, b"\x04" * 65, b"\x02" + b"\x01" * 32, b"\x04" * 66]
)
def test_bytes_that_are_not_a_point_on_the_curve_are_not_a_key(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        public_key(data)


@pytest.mark.parametrize(
    ("begin", "end", "zone", "at", "quiet"),
    [
        ("22:00", "07:00", "Europe/Berlin", "21:30", True),
        ("22:00", "07:00", "Europe/Berlin", "20:59", False),
        ("22:00", "07:00", "Europe/Berlin", "05:59", True),
        ("22:00", "07:00", "Europe/Berlin", "06:00", False),
        ("12:00", "13:00", "UTC", "12:00", True),
        ("12:00", "13:00", "UTC", "13:00", False),
        ("12:00", "13:00", "Nowhere/None", "12:30", False),
        ("", "", "", "12:30", False),
    ],
)
def test_quiet_hours_are_those_of_the_persons_clock(
    begin: str,
    end: str,
    zone: str,
    at: str,
    quiet: bool,  # noqa: FBT001 a column
) -> None:
    hour, minute = map(int, at.split(":"))
    now = datetime(2026, 1, 15, hour, minute, tzinfo=UTC)
    settings = PersonSettings(quiet_from=begin, quiet_until=end, time_zone=zone)
    assert is_quiet(settings, now) is quiet


@pytest.mark.parametrize(
    ("level", "chat_level", "reason", "is_sent"),
    [
        ("mentions", None, "", False),
        ("mentions", None, "is_mention", True),
        ("mentions", None, "is_direct", True),
        ("mentions", None, "is_followed", True),
        ("all", None, "", True),
        ("none", None, "is_mention", False),
        ("none", "all", "", True),
        ("all", "mentions", "", False),
        ("all", "none", "is_direct", False),
    ],
)
def test_a_message_notifies_by_the_level_of_the_chat_or_the_person(
    level: str,
    chat_level: NotificationLevel | None,
    reason: str,
    is_sent: bool,  # noqa: FBT001 a column
) -> None:
    reasons = {name: name == reason for name in ("is_direct", "is_mention", "is_followed")}
    settings = PersonSettings(notifications=level)
    member = Participant(notifications=chat_level)
    assert notifies(member, settings, **reasons) is is_sent
    member.muted_at = datetime(2026, 1, 1, tzinfo=UTC)
    assert not notifies(member, settings, **reasons)
