"""A batch that is sent again under its `Idempotency-Key` goes on with the session of the first.

The key and the bytes of the body name the session, so that the same request finds it and another
request under the same key does not. Events without an id get one of the key: what they led to the
first time is their answer, and is paid once. A visitor's session has no name that a client may
choose; for visitors the header has no meaning.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING, Any, Final

from sessions_app.opening import find_session

if TYPE_CHECKING:
    from sessions_app.auth import Principal

HEADER: Final = "Idempotency-Key"
_NAMESPACE: Final = uuid.UUID("5f0d8f4a-6a0f-5b8e-9c53-0f6f8f2f6f5d")


async def under_key(
    key: str, principal: Principal, body: bytes, events: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the events of a batch as they are to be taken; unchanged where there is no key."""
    if not key or principal.is_anonymous:
        return events
    digest = hashlib.sha256(b"\n".join((key.encode(), body))).hexdigest()
    return [await _named(event, principal, digest, place) for place, event in enumerate(events)]


async def _named(
    event: dict[str, Any], principal: Principal, digest: str, place: int
) -> dict[str, Any]:
    named = {"event_id": str(uuid.uuid5(_NAMESPACE, f"{digest}:{place}")), **event}
    session = event.get("session") or {}
    opens = event.get("type") == "session.create" and not event.get("resume")
    if not opens or not isinstance(session, dict) or session.get("id"):
        return named
    session_id = f"batch-{digest[:40]}-{place}"
    named["session"] = {**session, "id": session_id}
    known = await find_session(session_id, principal)
    if known is not None:
        # What the first batch led to is its repeated events' answer: no need to replay the log.
        named["resume"] = {"session_id": session_id, "after": known.last_seq}
    return named
