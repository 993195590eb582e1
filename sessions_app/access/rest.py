"""Token authentication of REST requests. Django itself handles the cookie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed

from sessions_app.access.auth import Handshake, verify_token
from sessions_app.access.principal import AuthenticationError
from telemetry import access_log

if TYPE_CHECKING:
    from rest_framework.request import Request

    from sessions_app.access.principal import Principal


class TokenAuthentication(BaseAuthentication):
    """Authenticates REST requests by a token in a header, never in a URL, which is logged."""

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        """Return the token's owner; None means to use the cookie; an invalid token is an error.

        Raises MissingRight if the token is not valid for REST.
        """
        token = Handshake.of_request(request._request).header_token  # noqa: SLF001 the public request has no scope
        if not token:
            return None
        try:
            principal = verify_token(token, protocol="rest")
        except AuthenticationError as error:
            raise AuthenticationFailed(str(error), code=error.code) from error
        access_log.note(principal=principal.counted_as)
        return User.objects.get(username=principal.username), principal

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 the interface's
        """Return the challenge that turns a refusal into a 401."""
        return "Bearer"
