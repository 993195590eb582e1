"""Authentication of connections: browsers, programs with a key, and visitors.

A key or ticket is accepted from any page, since the page has to know it. Without one, the Origin
decides. If it is this site's or a trusted one (same scheme, host and port), the cookie counts.
Other allowed origins are treated as visitors. Without an Origin, the cookie is ignored.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
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

from agents_app.remote import hops
from sessions_app.access import signed_tokens, tickets
from sessions_app.access.principal import AuthenticationError, Principal, PrincipalKind
from sessions_app.access.stored_keys import ended_actors, find_key
from sessions_app.bearer_tokens import verification
from sessions_app.bearer_tokens.people import ended_identities
from sessions_app.models import KEY_CREDENTIAL, ApiKey
from telemetry import access_log

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sessions_app.models import Ticket

_HEADER_KEYS: Final = ("x-api-key", "api-key")
_QUERY_KEYS: Final = ("token", "access_token", "api_key")
SUBPROTOCOL_KEY: Final = "openai-insecure-api-key."
"""A subprotocol with this prefix is a key, not a dialect, and is never selected by the server."""
KEY_USED_RESOLUTION: Final = timedelta(minutes=5)
_NOT_KNOWN: Final = (
    "The token is unknown or was revoked. Check that you copied all of it, or create a new one"
    " on /account."
)

CERTIFICATE_KEY: Final = "uamp.client_certificate"
"""The key in an ASGI scope for the name in the client's certificate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundSessions:
    """The only agent whose sessions a client secret may open, and their configuration."""

    agent: str
    config: Mapping[str, Any]


class OriginError(Exception):
    """A page of another site tried to open a connection without a key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Handshake:
    """The credentials of a connection, read from an ASGI scope."""

    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, str] = field(repr=False)
    secure: bool
    address: str
    # The name in the client's certificate, if a trusted proxy has verified one.
    certificate: str = ""
    # The subprotocols offered by a WebSocket client, in order; one may be its key.
    subprotocols: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, scope: Mapping[str, Any]) -> Handshake:
        """Parse an ASGI scope; the first of duplicate headers counts."""
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
            certificate=scope.get(CERTIFICATE_KEY, ""),
            subprotocols=tuple(scope.get("subprotocols", ())),
        )

    @classmethod
    def of_request(cls, request: HttpRequest) -> Handshake:
        """Parse a Django request, even one handled without ASGI."""
        scope = {
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1", "replace"))
                for name, value in request.headers.items()
            ],
            "query_string": request.META.get("QUERY_STRING", "").encode("latin-1", "replace"),
            "scheme": request.scheme,
            "client": (request.META.get("REMOTE_ADDR", ""), 0),
        }
        return cls.of(scope)

    def principal(self, caller: Principal) -> Principal:
        """Return the principal with the client's address and number of forwarding servers."""
        principal = replace(caller, address=self.address, servers=self.servers)
        access_log.note(principal=principal.counted_as)
        return principal

    @property
    def servers(self) -> int:
        """How many servers forwarded the request (docs/agents.md#remote-agents)."""
        return hops.read_hops(self.headers.get(hops.HEADER.lower()))

    @property
    def token(self) -> str:
        """The program's key, from any place where clients may send one (webagents §2.9).

        Those are the places of `header_token`, then the query, then the subprotocol in which web
        pages send a key for OpenAI's Realtime API. The first key wins.
        """
        if token := self.header_token:
            return token
        for name in _QUERY_KEYS:
            if value := self.query.get(name, ""):
                return value
        for offered in self.subprotocols:
            if offered.startswith(SUBPROTOCOL_KEY):
                return offered.removeprefix(SUBPROTOCOL_KEY)
        return ""

    @property
    def header_token(self) -> str:
        """The program's key from a header: Authorization, X-API-Key or api-key."""
        kind, _, value = self.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and value.strip():
            return value.strip()
        for name in _HEADER_KEYS:
            if value := self.headers.get(name, "").strip():
                return value
        return ""

    @property
    def dialects(self) -> tuple[str, ...]:
        """The offered subprotocols from which the server may select, without any that is a key."""
        return tuple(
            protocol for protocol in self.subprotocols if not protocol.startswith(SUBPROTOCOL_KEY)
        )

    @property
    def ticket(self) -> str:
        """The one-time ticket in `?ticket=` (sessions_app.access.tickets)."""
        return self.query.get("ticket", "")

    @property
    def payment_token(self) -> str:
        """The program's payment token: X-Payment-Token or `?payment_token=`."""
        return self.headers.get("x-payment-token", "") or self.query.get("payment_token", "")

    @property
    def base_url(self) -> str:
        """This server's address as used by the client, `https://host`; raises OriginError."""
        self.check_host()
        return f"{'https' if self.secure else 'http'}://{self.headers['host']}"

    def check_host(self) -> None:
        """Raise OriginError for a foreign Host, since the Origin is compared with it."""
        domain, _ = split_domain_port(self.headers.get("host", ""))
        allowed = settings.ALLOWED_HOSTS or [".localhost", "127.0.0.1", "[::1]"]
        if not domain or not validate_host(domain, allowed):
            raise OriginError("This host name is not served here.")

    def origin_is_ours(self) -> bool:
        """Return whether the cookie counts; raises OriginError for a forbidden Origin."""
        origin = self.headers.get("origin")
        if origin is None:
            return False
        if origin == self.base_url or origin in settings.CSRF_TRUSTED_ORIGINS:
            return True
        if not {origin, "*"}.intersection(settings.UAMP_CORS_ORIGINS):
            raise OriginError("This page may not open a connection to this server without a key.")
        return False


def identify(handshake: Handshake, *, protocol: str | None) -> Principal:
    """Return the principal of a connection (synchronous, reads the database).

    A valid token or ticket takes precedence over the cookie; an invalid one is an error and never
    falls back to it. `protocol` is one of `rights.PROTOCOLS`, or None for discovery. Raises
    OriginError, AuthenticationError, and MissingRight if the credential is not valid for the
    protocol.
    """
    if token := handshake.token:
        return handshake.principal(verify_token(token, protocol=protocol))
    if ticket := handshake.ticket:
        principal = _principal_of_ticket(ticket)
        _check_protocol(principal, protocol)
        return handshake.principal(principal)
    if handshake.origin_is_ours():
        signed_in = _principal_of_cookie(handshake.headers.get("cookie", ""))
        if signed_in is not None:
            return handshake.principal(signed_in)
    return handshake.principal(anonymous())


def identify_bound(
    handshake: Handshake, *, protocol: str
) -> tuple[Principal, BoundSessions | None]:
    """Like `identify`, but also accept a client secret and return its restrictions.

    Raises like `identify`.
    """
    if not handshake.token.startswith(tickets.BOUND_PREFIX):
        return identify(handshake, protocol=protocol), None
    row = tickets.find_secret(handshake.token)
    principal = None if row is None else _principal_of_row(row)
    if row is None or principal is None:
        raise AuthenticationError("The client secret is invalid or has expired. Request a new one.")
    principal.rights.check_protocol(protocol)
    return (
        handshake.principal(principal),
        BoundSessions(agent=row.agent, config=row.config),
    )


def of_user(user: User, *, web_session: str = "") -> Principal:
    """Return the principal of a signed-in person."""
    return Principal(
        key=PrincipalKind.PERSON.key(user.pk),
        user_id=user.pk,
        username=user.get_username(),
        web_session=web_session,
    )


def anonymous(*, address: str = "") -> Principal:
    """Return a new visitor with a unique key."""
    return Principal(key=PrincipalKind.VISITOR.key(secrets.token_hex(16)), address=address)


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
    if row is not None and (principal := _principal_of_row(row)) is not None:
        return principal
    raise AuthenticationError(
        f"The ticket is not valid. It works once, within {tickets.TICKET_SECONDS} seconds."
    )


def _principal_of_row(row: Ticket) -> Principal | None:
    """Return the principal that requested a ticket; None if its credential is now invalid."""
    principal = of_user(row.user, web_session=row.web_session)
    if row.api_key is not None:
        principal = replace(
            principal,
            api_key_id=row.api_key.pk,
            key_version=row.key_version,
            credential=row.api_key.credential,
            rights=row.api_key.rights,
            expires_at=row.api_key.expires_at,
        )
    principal = tickets.limited(principal, row)
    return None if principal.is_expired or unwelcome([principal]) else principal


def verify_token(token: str, *, protocol: str | None) -> Principal:
    """Return the principal of a token (synchronous).

    Raises AuthenticationError, and MissingRight if the token is not valid for the protocol. None
    means discovery, which belongs to no protocol.
    """
    signed = verification.looks_signed(token)
    principal = signed_tokens.principal_of(token) if signed else _verified_key(token)
    _check_protocol(principal, protocol)
    return principal


def _check_protocol(principal: Principal, protocol: str | None) -> None:
    if protocol is not None:
        principal.rights.check_protocol(protocol)


def _verified_key(token: str) -> Principal:
    if not token.isascii() or not token.isprintable():
        # Keys contain no such characters, and some databases reject them in queries.
        raise AuthenticationError(_NOT_KNOWN)
    prefix, sha256 = ApiKey.split_secret(token)
    key = find_key(prefix)
    now = timezone.now()
    if key is None or key.revoked_at is not None or not key.is_active:
        raise AuthenticationError(_NOT_KNOWN)
    version, expires_at = key.version, key.expires_at
    if not secrets.compare_digest(key.sha256, sha256):
        if not secrets.compare_digest(key.previous_sha256, sha256) or key.previous_until is None:
            raise AuthenticationError(_NOT_KNOWN)
        # The secret was replaced, but the previous one remains valid for a while.
        version -= 1
        ends = [at for at in (expires_at, key.previous_until) if at is not None]
        expires_at = min(ends)
    if expires_at is not None and expires_at <= now:
        raise AuthenticationError("The token has expired. Use a new one.", code="token_expired")
    # Writing on every request would turn every read into a write.
    if key.used_at is None or now - key.used_at > KEY_USED_RESOLUTION:
        ApiKey.objects.filter(pk=key.pk).update(used_at=now)
    return Principal(
        key=PrincipalKind.PERSON.key(key.user_id),
        user_id=key.user_id,
        username=key.username,
        api_key_id=key.pk,
        key_version=version,
        credential=f"{KEY_CREDENTIAL}{key.pk}",
        rights=key.rights,
        expires_at=expires_at,
    )


def unwelcome(principals: Iterable[Principal]) -> list[Principal]:
    """Return the principals that would no longer be admitted.

    These are people who were deactivated or deleted, whose key, or that of one who passed their
    token on, was revoked or has a new secret, or whose Django session ended (by sign-out, password
    change, deletion or age). All of this is read from the database, so it does not matter which
    process made the change.
    """
    people = [principal for principal in principals if principal.kind is PrincipalKind.PERSON]
    users = User.objects.filter(is_active=True).in_bulk({p.user_id for p in people})
    keys = _secrets_in_force({p.api_key_id for p in people if p.api_key_id is not None})
    signed_in = _signed_in({p.web_session for p in people if p.web_session}, users)
    parted = ended_identities(p.identity_id for p in people if p.identity_id is not None)
    gone = ended_actors(actor for p in people for actor in p.actors)
    return [
        p
        for p in people
        if p.user_id not in users
        or (p.api_key_id is not None and (p.api_key_id, p.key_version) not in keys)
        or (p.web_session and signed_in.get(p.web_session) != p.user_id)
        or not gone.isdisjoint(p.actors)
        or p.identity_id in parted
    ]


def _secrets_in_force(key_ids: Collection[int]) -> set[tuple[int, int]]:
    """Return the valid (key, version) pairs of these keys' secrets."""
    rows = ApiKey.objects.filter(pk__in=key_ids, revoked_at__isnull=True)
    now, pairs = timezone.now(), set()
    for pk, version, previous_until in rows.values_list("pk", "version", "previous_until"):
        pairs.add((pk, version))
        if previous_until is not None and previous_until > now:
            pairs.add((pk, version - 1))
    return pairs


def _signed_in(web_sessions: Collection[str], users: Mapping[int, User]) -> dict[str, int]:
    """Return the person signed in to each of these Django sessions that is still valid."""
    if not web_sessions:
        return {}
    by_session: dict[str, int] = {}
    hashes = {str(pk): (pk, user.get_session_auth_hash()) for pk, user in users.items()}
    rows = WebSession.objects.filter(session_key__in=web_sessions, expire_date__gt=timezone.now())
    for row in rows:
        data = row.get_decoded()
        pk, expected = hashes.get(str(data.get(SESSION_KEY)), (0, ""))
        if pk and secrets.compare_digest(str(data.get(HASH_SESSION_KEY, "")), expected):
            by_session[row.session_key] = pk
    return by_session


def create_api_key(user: User, *, name: str) -> str:
    """Create a key for a person and return its secret, which is not stored."""
    secret = ApiKey.make_secret()
    prefix, sha256 = ApiKey.split_secret(secret)
    ApiKey.objects.create(user=user, name=name, prefix=prefix, sha256=sha256)
    return secret
