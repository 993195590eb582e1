"""Checks of a principal's rights, refused with UAMP errors that each dialect translates."""

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
    """Convert a missing right to its error; the details name the missing scope."""
    details = {"scope": missing.scope} if missing.scope else None
    return RemoteProtocolError(ErrorCode.FORBIDDEN, str(missing), details=details)


def check_scope(principal: Principal, scope: str) -> None:
    """Raise RemoteProtocolError forbidden if the credential lacks the scope."""
    try:
        principal.rights.check(scope)
    except MissingRight as missing:
        raise forbidden(missing) from None


def check_reads_all(principal: Principal) -> None:
    """Raise RemoteProtocolError forbidden if the credential is limited to certain chats."""
    if principal.rights.chats is not None:
        raise forbidden(
            MissingRight(
                "This credential is restricted to certain chats. "
                "Read them over UAMP or REST, by their ids."
            )
        )
