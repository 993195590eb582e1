"""Verification of tokens in events, for sessions and registered agents (UAMP §10.3)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from agents_app.rest.rights import MissingRight
from sessions_app import database
from sessions_app.access import auth
from sessions_app.access.principal import AuthenticationError
from sessions_app.access.protocol_rights import forbidden, protocol_of
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from sessions_app.access.principal import Principal
    from sessions_app.connection.client_connection import ClientConnection


async def verified(token: str, connection: ClientConnection) -> Principal:
    """Return the principal of a token.

    Raises RemoteProtocolError: unauthorized, token_expired, or forbidden if the token is not for
    the connection's protocol.
    """
    verify = partial(auth.verify_token, token, protocol=protocol_of(connection.transport))
    try:
        principal = await database.run(verify)
    except AuthenticationError as error:
        raise RemoteProtocolError(ErrorCode(error.code), str(error)) from None
    except MissingRight as missing:
        raise forbidden(missing) from None
    return replace(principal, address=connection.principal.address)
