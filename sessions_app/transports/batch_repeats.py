"""A batch that is sent again under its `Idempotency-Key` goes on with the session of the first.

The key, the bytes of the body and the agent and chat that path and headers name, name the session,
so that the same request finds it and another request under the same key does not. Events without an
id get one of the key: what they led to the first time is their answer, and is paid once. A batch
that comes while the first one opens its session is sent back, to come again.

A visitor has no name, and their session is open to each client that knows its id. Their paid batch
is known by its key, its body and its payment, in a digest with the server's secret: only the server
can compute its id, which a client that sends all three receives. A token is a secret. A payment on
a chain is public, so that it counts together with the address that it comes from. For a visitor's
batch without a payment the header has no meaning: another visitor could send the same.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django.utils.crypto import salted_hmac

from agents_app.rest.problems import refusal
from payments_app import x402
from sessions_app.handlers.sessions import find_session

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from sessions_app.access.principal import Principal

HEADER: Final = "Idempotency-Key"
RETRY_SECONDS: Final = 1
_PREFIX: Final = "batch-"
_NAMESPACE: Final = uuid.UUID("5f0d8f4a-6a0f-5b8e-9c53-0f6f8f2f6f5d")


async def under_key(
    request: HttpRequest,
    principal: Principal,
    events: list[dict[str, Any]],
    *,
    asked: tuple[str, ...],
) -> tuple[Principal, list[dict[str, Any]]]:
    """Return who sends a batch and its events, as they are to be taken; unchanged without a key.

    `asked` is what path and headers name for the session.
    """
    key = request.headers.get(HEADER, "")
    if not key:
        return principal, events
    content = b"\n".join((key.encode(), *(_digest(one.encode()) for one in asked), request.body))
    if principal.is_visitor:
        payment = _payment(request, principal, events)
        if not payment:
            return principal, events
        whole = b"\n".join((*payment, content))
        digest = salted_hmac(__name__, whole, algorithm="sha256").hexdigest()
        principal = replace(principal, repeat=_session_id(digest, ""))
    else:
        digest = hashlib.sha256(content).hexdigest()
    named = [await _named(event, principal, digest, place) for place, event in enumerate(events)]
    return principal, named


def _payment(
    request: HttpRequest, principal: Principal, events: list[dict[str, Any]]
) -> tuple[bytes, ...]:
    """Return what a visitor pays a batch with; nothing where the batch brings no payment."""
    if any(event.get("token") for event in events):
        # Its sessions are a person's.
        return ()
    sent = x402.sent(request.headers)
    beside = request.GET.get("payment_token", "")
    if sent is None and not beside and not any(event.get("payment_token") for event in events):
        return ()
    # A token in an event is in the body.
    shown = [beside] if sent is None else [beside, sent.value]
    if sent is not None and not sent.is_secret:
        shown.append(principal.counted_as)
    return tuple(_digest(one.encode()) for one in shown)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


async def is_begun(event: dict[str, Any], principal: Principal) -> bool:
    """Return whether the same batch, sent at the same time, has just opened an event's session."""
    session = event.get("session")
    session_id = session.get("id") if isinstance(session, dict) else None
    if not isinstance(session_id, str) or not session_id.startswith(_PREFIX):
        return False
    return await find_session(session_id, principal) is not None


def in_use(path: str) -> HttpResponse:
    """Return the 409 of a batch that came at the same time as the first one of its key."""
    return refusal(
        "idempotency_key_in_use",
        instance=path,
        retry_after=RETRY_SECONDS,
    )


def _session_id(digest: str, place: int | str) -> str:
    return f"{_PREFIX}{digest[:40]}-{place}"


async def _named(
    event: dict[str, Any], principal: Principal, digest: str, place: int
) -> dict[str, Any]:
    named = {"event_id": str(uuid.uuid5(_NAMESPACE, f"{digest}:{place}")), **event}
    session = event.get("session") or {}
    opens = event.get("type") == "session.create" and not event.get("resume")
    if not opens or not isinstance(session, dict):
        return named
    if session.get("id") and not principal.is_visitor:
        # A visitor's choice of an id counts for nothing.
        return named
    session_id = _session_id(digest, place)
    named["session"] = {**session, "id": session_id}
    known = await find_session(session_id, principal)
    if known is not None:
        # What the first batch led to is its repeated events' answer: no need to replay the log.
        named["resume"] = {"session_id": session_id, "after": known.last_seq}
    return named
