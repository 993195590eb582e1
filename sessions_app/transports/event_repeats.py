"""Repeated requests of other protocols: `batch_repeats` for events that are not JSON yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

import uamp
from sessions_app.transports import batch_repeats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from sessions_app.access.principal import Principal

E = TypeVar("E", bound=uamp.Event)


async def under_key(
    request: HttpRequest,
    principal: Principal,
    create: uamp.SessionCreate,
    events: Sequence[E],
    *,
    names: tuple[str, ...],
) -> tuple[Principal, uamp.SessionCreate, list[E]]:
    """Return a request's principal and events prepared for repeats; unchanged without a key.

    `names` are those that path and headers give for the session.
    """
    if not request.headers.get(batch_repeats.HEADER, ""):
        return principal, create, list(events)
    plain = [uamp.to_dict(create), *map(uamp.to_dict, events)]
    principal, (opening, *named) = await batch_repeats.under_key(
        request, principal, plain, names=names
    )
    # The key is ignored for a visitor's request without a payment.
    scoped = [
        msgspec.structs.replace(event, event_id=name.get("event_id"))
        for event, name in zip(events, named, strict=True)
    ]
    return principal, _opening(create, opening), scoped


def _opening(create: uamp.SessionCreate, named: dict[str, Any]) -> uamp.SessionCreate:
    session_id = (named.get("session") or {}).get("id")
    resume = named.get("resume")
    return msgspec.structs.replace(
        create,
        event_id=named.get("event_id"),
        session=msgspec.structs.replace(create.session, id=session_id),
        resume=None if resume is None else msgspec.convert(resume, uamp.Resume),
    )
