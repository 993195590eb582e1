"""Repeated batches: an `Idempotency-Key` continues the session of the first attempt.

The session's id is derived from the key, the bytes of the body, and the agent and chat named by
path and headers, so the same request finds it and a different request under the same key does not.
Events without an id get one derived from the key: the reply is their original outcome, which is
paid only once. A batch that arrives while the first one is opening its session is refused and must
be repeated.

A visitor has no identity, and their sessions are open to every client that knows the id. A
visitor's paid batch is identified by its key, body and payment, in a digest with the server's
secret: only the server can compute its id, and only a client that sends all three receives it.
Tokens are secrets. Payments on a chain are public, so they count only together with the sender's
address. For a visitor's batch without a payment the header is ignored, since another visitor could
send the same batch.
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
    names: tuple[str, ...],
) -> tuple[Principal, list[dict[str, Any]]]:
    """Return a batch's principal and events prepared for repeats; unchanged without a key.

    `names` are those that path and headers give for the session.
    """
    key = request.headers.get(HEADER, "")
    if not key:
        return principal, events
    content = b"\n".join((key.encode(), *(_digest(part.encode()) for part in names), request.body))
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
    """Return the text that identifies a visitor's payment for a batch; empty without a payment."""
    if any(event.get("token") for event in events):
        # Its sessions belong to a person.
        return ()
    sent = x402.payment_in_headers(request.headers)
    beside = request.GET.get("payment_token", "")
    if sent is None and not beside and not any(event.get("payment_token") for event in events):
        return ()
    # A token in an event is part of the body.
    parts = [beside] if sent is None else [beside, sent.value]
    if sent is not None and not sent.is_secret:
        parts.append(principal.counted_as)
    return tuple(_digest(part.encode()) for part in parts)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


async def is_begun(event: dict[str, Any], principal: Principal) -> bool:
    """Return whether a concurrent copy of the batch has just opened the event's session."""
    session = event.get("session")
    session_id = session.get("id") if isinstance(session, dict) else None
    if not isinstance(session_id, str) or not session_id.startswith(_PREFIX):
        return False
    return await find_session(session_id, principal) is not None


def key_in_use_response(path: str) -> HttpResponse:
    """Return the 409 for a batch that is concurrent with the first one under its key."""
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
        # A visitor's choice of id is ignored.
        return named
    session_id = _session_id(digest, place)
    named["session"] = {**session, "id": session_id}
    existing = await find_session(session_id, principal)
    if existing is not None:
        # Repeated events return the first batch's outcome, so the log need not be replayed.
        named["resume"] = {"session_id": session_id, "after": existing.last_seq}
    return named
