"""Who opens a connection: a browser by cookie and Origin, a program by key, or a visitor.

The Origin rule: a handshake with an Origin must come from this site or
a trusted one, scheme, host and port alike; without an Origin the cookie does not count.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from http.cookies import SimpleCookie
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, get_user
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as WebSession
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed

from sessions_app.access import tickets
from sessions_app.access.principal import Principal
from sessions_app.models import ApiKey

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rest_framework.request import Request

KEY_USED_RESOLUTION: Final = timedelta(minutes=5)
_NOT_KNOWN: Final = (
    "The token is not known here, or was revoked. Check that it was copied whole, or make a new one"
    " on /account."
)


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

    @property
    def ticket(self) -> str:
        """The one-time ticket of `?ticket=` (sessions_app.access.tickets)."""
        return self.query.get("ticket", "")

    @property
    def payment_token(self) -> str:
        """The payment token of a program: X-Payment-Token, or `?payment_token=`."""
        return self.headers.get("x-payment-token", "") or self.query.get("payment_token", "")

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

    A good token or ticket wins over the cookie; a bad one is an error and never falls back to the
    cookie.
    Raises OriginError and AuthenticationError.
    """
    cookie_counts = handshake.origin_is_ours()
    if token := handshake.token:
        return replace(verify_token(token), address=handshake.address)
    if ticket := handshake.ticket:
        return replace(_principal_of_ticket(ticket), address=handshake.address)
    if cookie_counts:
        principal = _principal_of_cookie(handshake.headers.get("cookie", ""))
        if principal is not None:
            return replace(principal, address=handshake.address)
    return anonymous(address=handshake.address)


def of_user(user: User, *, web_session: str = "") -> Principal:
    """Return the principal of a person who signed in."""
    return Principal(
        key=f"user:{user.pk}",
        user_id=user.pk,
        username=user.get_username(),
        web_session=web_session,
    )


def anonymous(*, address: str = "") -> Principal:
    """Return a new visitor, whose key no other visitor has."""
    return Principal(key=f"anonymous:{secrets.token_hex(16)}", address=address)


def _principal_of_cookie(cookie: str) -> Principal | None:
    morsel = SimpleCookie(cookie).get(settings.SESSION_COOKIE_NAME)
    if morsel is None:
        return None
    engine = import_module(settings.SESSION_ENGINE)
    request = HttpRequest()
    request.session = engine.SessionStore(morsel.value)
    user = get_user(request)
    if not isinstance(user, User) or not user.is_active:
        return None
    return of_user(user, web_session=request.session.session_key or "")


def _principal_of_ticket(ticket: str) -> Principal:
    row = tickets.use(ticket)
    if row is not None:
        principal = of_user(row.user, web_session=row.web_session)
        if row.api_key is not None:
            expires_at = row.api_key.expires_at
            principal = replace(principal, api_key_id=row.api_key.pk, expires_at=expires_at)
        if not principal.is_expired and not unwelcome([principal]):
            return principal
    raise AuthenticationError(
        f"The ticket is not good here. It works once, within {tickets.TICKET_SECONDS} seconds."
    )


def verify_token(token: str) -> Principal:
    """Return whose API key this is; raises AuthenticationError (synchronous)."""
    if not token.isascii() or not token.isprintable():
        # No key has such characters, and not every database takes them in a question.
        raise AuthenticationError(_NOT_KNOWN)
    prefix, sha256 = ApiKey.split_secret(token)
    key = ApiKey.objects.select_related("user").filter(prefix=prefix).first()
    now = timezone.now()
    if (
        key is None
        or not secrets.compare_digest(key.sha256, sha256)
        or key.revoked_at is not None
        or not key.user.is_active
    ):
        raise AuthenticationError(_NOT_KNOWN)
    if key.expires_at is not None and key.expires_at <= now:
        raise AuthenticationError("The token has expired. Use a new one.", code="token_expired")
    # A write per request would make every read a write.
    if key.used_at is None or now - key.used_at > KEY_USED_RESOLUTION:
        ApiKey.objects.filter(pk=key.pk).update(used_at=now)
    return replace(of_user(key.user), api_key_id=key.pk, expires_at=key.expires_at)


def unwelcome(principals: Iterable[Principal]) -> list[Principal]:
    """Return who of these would not be let in any more.

    That is: who was deactivated or deleted, whose key was revoked, whose Django session ended (by
    a logout, by a change of the password, by its deletion or its age). It is read from the
    database, so that it holds whichever process made the change.
    """
    people = [principal for principal in principals if principal.user_id is not None]
    users = User.objects.filter(is_active=True).in_bulk({p.user_id for p in people})
    keys = set(
        ApiKey.objects.filter(
            pk__in={p.api_key_id for p in people if p.api_key_id is not None},
            revoked_at__isnull=True,
        ).values_list("pk", flat=True)
    )
    signed_in = _signed_in({p.web_session for p in people if p.web_session}, users)
    return [
        p
        for p in people
        if p.user_id not in users
        or (p.api_key_id is not None and p.api_key_id not in keys)
        or (p.web_session and signed_in.get(p.web_session) != p.user_id)
    ]


def _signed_in(web_sessions: Collection[str], users: Mapping[int, User]) -> dict[str, int]:
    """Return who is signed in in each of these Django sessions that stand."""
    if not web_sessions:
        return {}
    found: dict[str, int] = {}
    hashes = {str(pk): (pk, user.get_session_auth_hash()) for pk, user in users.items()}
    rows = WebSession.objects.filter(session_key__in=web_sessions, expire_date__gt=timezone.now())
    for row in rows:
        kept = row.get_decoded()
        pk, expected = hashes.get(str(kept.get(SESSION_KEY)), (0, ""))
        if pk and secrets.compare_digest(str(kept.get(HASH_SESSION_KEY, "")), expected):
            found[row.session_key] = pk
    return found


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
