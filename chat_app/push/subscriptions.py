"""The browsers to which a person's notifications are sent. Synchronous."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents_app.outbound.rules import Unreachable, check_url, current_policy
from chat_app.models import PushSubscription
from chat_app.push.encryption import AUTH_BYTES, from_base64url, public_key, to_base64url

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import QuerySet

DEVICES_MAX: Final = 20
"""One more browser of a person replaces the one that subscribed first."""
_TRIES: Final = 3
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrom", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "Mac"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


class InvalidSubscription(ValueError):
    """A field of a subscription is invalid; `field` names it, the message is for the client."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def check(*, endpoint: str, p256dh: str, auth: str) -> None:
    """Raise InvalidSubscription unless messages can be sent with this address and these keys."""
    try:
        check_url(endpoint, current_policy())
    except Unreachable:
        text = "The address of a push service must be an https URL on the internet."
        raise InvalidSubscription("endpoint", text) from None
    try:
        public_key(from_base64url(p256dh))
    except ValueError:
        text = "This is not a public key on P-256, as 65 bytes in base64url."
        raise InvalidSubscription("p256dh", text) from None
    try:
        has_length = len(from_base64url(auth)) == AUTH_BYTES
    except ValueError:
        has_length = False
    if not has_length:
        raise InvalidSubscription("auth", "This is not a secret of 16 bytes in base64url.")


def subscribe(
    user: User,
    *,
    session_key: str,
    endpoint: str,
    p256dh: str,
    auth: str,
    server_key: str,
    user_agent: str,
) -> tuple[PushSubscription, bool]:
    """Store a checked subscription of the browser of a session; return whether it is new.

    An address that another person of the browser had subscribed is theirs no more.
    """
    values = {
        "session_id": session_key,
        "endpoint": endpoint,
        "p256dh": to_base64url(from_base64url(p256dh)),
        "auth": to_base64url(from_base64url(auth)),
        "server_key": server_key,
        "device": device_name(user_agent),
    }
    digest = hashlib.sha256(endpoint.encode()).hexdigest()
    for _ in range(_TRIES):
        try:
            with transaction.atomic():
                rows = PushSubscription.objects.filter(endpoint_sha256=digest)
                rows.exclude(user=user).delete()
                if rows.update(**values, failures=0):
                    return rows.get(), False
                row = PushSubscription.objects.create(user=user, endpoint_sha256=digest, **values)
                _drop_oldest(user)
                return row, True
        except (IntegrityError, PushSubscription.DoesNotExist):
            # Another request stored or removed it at the same time.
            continue
    raise RuntimeError("No request could store the subscription.")


def subscriptions_of(user: User) -> QuerySet[PushSubscription]:
    """Return a person's subscriptions, newest first."""
    return PushSubscription.objects.filter(user=user).order_by("-created_at", "-pk")


def remove(user: User, subscription_id: int) -> bool:
    """Remove a person's subscription; return whether there was one."""
    return bool(PushSubscription.objects.filter(user=user, pk=subscription_id).delete()[0])


def end_with_account(sender: object, instance: User, **_: Any) -> None:
    """Remove the subscriptions of a person who is deactivated (a receiver of `post_save`)."""
    del sender
    if not instance.is_active:
        PushSubscription.objects.filter(user=instance).delete()


def is_signed_in(row: PushSubscription) -> bool:
    """Return whether the browser is still signed in as the person; needs `user` selected."""
    session = Session.objects.filter(pk=row.session_id, expire_date__gt=timezone.now()).first()
    if session is None or not row.user.is_active:
        return False
    data = session.get_decoded()
    expected = row.user.get_session_auth_hash()
    return str(data.get(SESSION_KEY)) == str(row.user_id) and secrets.compare_digest(
        str(data.get(HASH_SESSION_KEY, "")), expected
    )


def device_name(user_agent: str) -> str:
    """Return a browser and system such as "Firefox on Linux"."""
    text = user_agent[:512]
    browser = next((name for sign, name in _BROWSERS if re.search(rf"\b{sign}", text)), "Browser")
    system = next((name for sign, name in _SYSTEMS if sign in text), "")
    return f"{browser} on {system}" if system else browser


def _drop_oldest(user: User) -> None:
    ids = subscriptions_of(user).values_list("pk", flat=True)[:DEVICES_MAX]
    PushSubscription.objects.filter(user=user).exclude(pk__in=list(ids)).delete()
