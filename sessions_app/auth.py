"""Who is there: cookie and Origin for browsers, keys for programs, nobody for public agents (D8).

The Origin rule (notes/reliability.md §3.1): a handshake with an Origin must come from this site or
a trusted one, scheme, host and port alike; without an Origin the cookie does not count.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http.cookies import SimpleCookie
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed

from sessions_app.models import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rest_framework.request import Request

KEY_USED_RESOLUTION: Final = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """Who acts: a person (through a browser or a key), or an anonymous visitor."""

    key: str
    user_id: int | None = None
    username: str = ""
    api_key_id: int | None = None
    expires_at: datetime | None = None
    address: str = ""

    @property
    def is_anonymous(self) -> bool:
        """Whether nobody signed in."""
        return self.user_id is None

    @property
    def is_expired(self) -> bool:
        """Whether the token that was shown is good no longer."""
        return self.expires_at is not None and self.expires_at <= timezone.now()


class AuthenticationError(Exception):
    """A credential was shown and is not good; `code` is a UAMP error code."""

    def __init__(self, message: str, *, code: str = "unauthorized") -> None:
        super().__init__(message)
        self.code = code


class OriginError(Exception):
    """The page that opens the connection belongs to another site."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Handshake:
    """What a connection shows of itself, from an ASGI scope."""

    headers: Mapping[str, str]
    query: Mapping[str, str]
    secure: bool
    address: str

    @classmethod
    def of(cls, scope: Mapping[str, Any]) -> Handshake:
        """Read it from an ASGI scope; later duplicates of a header do not override the first."""
        headers: dict[str, str] = {}
        for name, value in scope.get("headers", ()):
            headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        secure = scope.get("scheme") in {"wss", "https"}
        if proxy := settings.SECURE_PROXY_SSL_HEADER:
            name, expected = proxy
            secure = headers.get(name.removeprefix("HTTP_").replace("_", "-").lower()) == expected
        client = scope.get("client") or ("", 0)
        return cls(
            headers=headers,
            query={name: values[0] for name, values in query.items()},
            secure=secure,
            address=str(client[0]),
        )

    @property
    def token(self) -> str:
        """The credential of a program: Authorization, X-API-Key, or `?token=` (webagents §2.9)."""
        kind, _, value = self.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and value.strip():
            return value.strip()
        for name in ("token", "access_token", "api_key"):
            if value := self.query.get(name, ""):
                return value
        return self.headers.get("x-api-key", "")

    def check_host(self) -> None:
        """Raise OriginError for a Host that is not ours: the Origin is compared with it."""
        domain, _ = split_domain_port(self.headers.get("host", ""))
        allowed = settings.ALLOWED_HOSTS or [".localhost", "127.0.0.1", "[::1]"]
        if not domain or not validate_host(domain, allowed):
            raise OriginError("This host name is not served here.")

    def origin_is_ours(self) -> bool:
        """Return whether the cookie counts; raise OriginError for a foreign or null Origin."""
        origin = self.headers.get("origin")
        if origin is None:
            return False
        self.check_host()
        own = f"{'https' if self.secure else 'http'}://{self.headers.get('host', '')}"
        if origin != own and origin not in settings.CSRF_TRUSTED_ORIGINS:
            raise OriginError("This page may not open a connection to this server.")
        return True


def identify(handshake: Handshake) -> Principal:
    """Return who opens a connection (synchronous, reads the database).

    A good token wins over the cookie; a bad one is an error and never falls back to the cookie.
    Raises OriginError and AuthenticationError.
    """
    cookie_counts = handshake.origin_is_ours()
    if token := handshake.token:
        return replace(verify_token(token), address=handshake.address)
    if cookie_counts and (user := _user_of_cookie(handshake.headers.get("cookie", ""))):
        return of_user(user, address=handshake.address)
    return anonymous(address=handshake.address)


def of_user(user: User, *, address: str = "") -> Principal:
    """Return the principal of a person who signed in."""
    return Principal(
        key=f"user:{user.pk}", user_id=user.pk, username=user.get_username(), address=address
    )


def anonymous(*, address: str = "") -> Principal:
    """Return a visitor of their own: nobody else has this key."""
    return Principal(key=f"anonymous:{secrets.token_hex(16)}", address=address)


def _user_of_cookie(cookie: str) -> User | None:
    morsel = SimpleCookie(cookie).get(settings.SESSION_COOKIE_NAME)
    if morsel is None:
        return None
    engine = import_module(settings.SESSION_ENGINE)
    request = HttpRequest()
    request.session = engine.SessionStore(morsel.value)
    user = get_user(request)
    return user if isinstance(user, User) and user.is_active else None


def verify_token(token: str) -> Principal:
    """Return whose API key this is; raises AuthenticationError (synchronous)."""
    if not token.isascii() or not token.isprintable():
        # No key has such characters, and not every database takes them in a question.
        raise AuthenticationError("The token is not known here. Check that it was copied whole.")
    prefix, sha256 = ApiKey.split_secret(token)
    key = ApiKey.objects.select_related("user").filter(prefix=prefix).first()
    now = timezone.now()
    if (
        key is None
        or not secrets.compare_digest(key.sha256, sha256)
        or key.revoked_at is not None
        or not key.user.is_active
    ):
        raise AuthenticationError("The token is not known here. Check that it was copied whole.")
    if key.expires_at is not None and key.expires_at <= now:
        raise AuthenticationError("The token has expired. Use a new one.", code="token_expired")
    # A write per request would make every read a write.
    if key.used_at is None or now - key.used_at > KEY_USED_RESOLUTION:
        ApiKey.objects.filter(pk=key.pk).update(used_at=now)
    return replace(of_user(key.user), api_key_id=key.pk, expires_at=key.expires_at)


def unwelcome(principals: Iterable[Principal]) -> list[Principal]:
    """Return who of these would not be let in any more: key revoked, person deactivated."""
    people = [principal for principal in principals if principal.user_id is not None]
    users = set(
        User.objects.filter(pk__in={p.user_id for p in people}, is_active=True).values_list(
            "pk", flat=True
        )
    )
    keys = set(
        ApiKey.objects.filter(
            pk__in={p.api_key_id for p in people if p.api_key_id is not None},
            revoked_at__isnull=True,
        ).values_list("pk", flat=True)
    )
    return [
        p
        for p in people
        if p.user_id not in users or (p.api_key_id is not None and p.api_key_id not in keys)
    ]


def create_api_key(user: User, *, name: str, scopes: Iterable[str] = ()) -> str:
    """Make a key for a person and return its secret, which is not kept."""
    secret = ApiKey.make_secret()
    prefix, sha256 = ApiKey.split_secret(secret)
    ApiKey.objects.create(user=user, name=name, prefix=prefix, sha256=sha256, scopes=list(scopes))
    return secret


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer <key>` for REST."""

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        """Return the key's owner; None lets the cookie speak; a bad key is an error."""
        parts = get_authorization_header(request).split()
        if len(parts) != 2 or parts[0].lower() != b"bearer":  # noqa: PLR2004 scheme and value
            return None
        try:
            principal = verify_token(parts[1].decode("latin-1"))
        except AuthenticationError as error:
            raise AuthenticationFailed(str(error), code=error.code) from error
        return User.objects.get(username=principal.username), principal

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 the interface's
        """Return the challenge that makes a refusal a 401."""
        return "Bearer"
