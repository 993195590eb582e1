"""The rights of a principal in protocols, refused as UAMP does: each dialect has words for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agents_app.rest.rights import MissingRight
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from sessions_app.access.principal import Principal

_OF_UAMP: Final = frozenset({"websocket", "sse", "batch", "delegate"})


def protocol_of(transport: str) -> str:
    """Return the protocol (`rights.PROTOCOLS`) of a session's transport."""
    return "uamp" if transport in _OF_UAMP else transport


def forbidden(missing: MissingRight) -> RemoteProtocolError:
    """Return the refusal of a credential; its details name the scope that it lacks."""
    details = {"scope": missing.scope} if missing.scope else None
    return RemoteProtocolError(ErrorCode.FORBIDDEN, str(missing), details=details)


def check_scope(principal: Principal, scope: str) -> None:
    """Raise RemoteProtocolError forbidden where the credential has no scope."""
    try:
        principal.rights.check(scope)
    except MissingRight as missing:
        raise forbidden(missing) from None


def check_reads_all(principal: Principal) -> None:
    """Raise RemoteProtocolError forbidden for a credential of certain chats, in lists of others."""
    if principal.rights.chats is not None:
        raise forbidden(
            MissingRight(
                "This credential is for certain chats. Read them over UAMP or REST, by their ids."
            )
        )
