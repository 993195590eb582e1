"""People with second factors, at the level of requests, and an authenticator app."""

from __future__ import annotations

import base64
import re
import time
from typing import TYPE_CHECKING

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from django.test import Client

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test.client import _MonkeyPatchedWSGIResponse as Response

PASSWORD = "password"
SECRET = base64.b32encode(bytes(range(20))).decode()


def code(secret: str = SECRET, *, later: int = 0) -> str:
    """Return the code that an app shows, `later` periods of 30 seconds from now."""
    hotp = HOTP(base64.b32decode(secret), 6, SHA1())  # noqa: S303 as in RFC 6238
    return hotp.generate(int(time.time()) // 30 + later).decode()


def add_app(user: User) -> None:
    """Give a person an authenticator app with SECRET."""
    TOTP.activate(user, SECRET)


def add_recovery_codes(user: User) -> list[str]:
    """Give a person recovery codes, and return them."""
    return list(RecoveryCodes.activate(user).generate_codes())


def factors(user: User) -> list[str]:
    """Return the types of a person's second factors."""
    rows = Authenticator.objects.filter(user=user).order_by("type")
    return list(rows.values_list("type", flat=True))


def sign_in(user: User, client: Client | None = None, **fields: str) -> Client:
    """Send name and password; a person with a second factor is not signed in yet."""
    client = client or Client()
    client.post("/login", {"username": user.username, "password": PASSWORD, **fields})
    return client


def confirm(client: Client) -> None:
    """Enter the password that changes need."""
    answer = client.post("/account/security/confirm", {"password": PASSWORD})
    assert answer.status_code == 302, answer.content


def is_signed_in(client: Client) -> bool:
    """Return whether the session is a person's."""
    return client.get("/account").status_code == 200


def new_secret(client: Client) -> str:
    """Open the page that adds an app, and return the key that it shows."""
    page = client.get("/account/security/app")
    match = re.search(r'id="totp-key">([A-Z2-7]+)<', page.content.decode())
    assert match is not None, page.content
    return match[1]


def errors(answer: Response) -> str:
    """Return the text of a page, for messages."""
    return str(answer.content.decode())
