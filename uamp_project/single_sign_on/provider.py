"""The configured provider as Authlib's client: code flow with PKCE (S256), state and nonce."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from authlib.integrations.base_client import OAuthError
from authlib.integrations.django_client import OAuth
from django.conf import settings
from joserfc.errors import JoseError
from requests import RequestException

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

SECONDS: Final = 10.0
"""The timeout of each request to the provider."""
LEEWAY_SECONDS: Final = 60
SUBJECT_CHARS: Final = 255


class SignInFailed(Exception):
    """The provider did not sign the person in; the text is for the log."""


def is_configured() -> bool:
    """Return whether people may sign in with a provider."""
    return bool(settings.UAMP_OIDC_ISSUER)


def begin(request: HttpRequest, callback: str) -> HttpResponse:
    """Return the redirect to the provider; raises SignInFailed if it cannot be reached."""
    try:
        redirect: HttpResponse = _client().authorize_redirect(request, callback)
    except (RequestException, OAuthError, RuntimeError, ValueError) as error:
        raise SignInFailed(str(error)) from error
    return redirect


def finish(request: HttpRequest) -> dict[str, Any]:
    """Exchange the code for an ID token, and return the token's verified claims.

    Issuer and audience must match the settings, nonce and state this browser's session. Raises
    SignInFailed.
    """
    client = _client()
    claims_options = {
        "iss": {"essential": True, "values": [settings.UAMP_OIDC_ISSUER]},
        "aud": {"essential": True, "values": [settings.UAMP_OIDC_CLIENT_ID]},
    }
    try:
        answer = client.authorize_access_token(
            request, claims_options=claims_options, leeway=LEEWAY_SECONDS
        )
    except (RequestException, OAuthError, JoseError, RuntimeError, ValueError, KeyError) as error:
        raise SignInFailed(f"{type(error).__name__}: {error}") from error
    claims = answer.get("userinfo")
    subject = claims.get("sub") if claims else None
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_CHARS:
        raise SignInFailed("the provider sent no ID token with a subject")
    return dict(claims)


def forget() -> None:
    """Clear the cached metadata of the provider (between tests)."""
    _made.cache_clear()


def _client() -> Any:
    return _made(
        settings.UAMP_OIDC_ISSUER,
        settings.UAMP_OIDC_CLIENT_ID,
        settings.UAMP_OIDC_CLIENT_SECRET,
        " ".join(settings.UAMP_OIDC_SCOPES),
    )


@lru_cache(maxsize=2)
def _made(issuer: str, client_id: str, client_secret: str, scopes: str) -> Any:
    return OAuth().register(
        "oidc",
        client_id=client_id,
        client_secret=client_secret,
        server_metadata_url=f"{issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": scopes,
            "code_challenge_method": "S256",
            "default_timeout": SECONDS,
            # Without a secret, this is a public client, which PKCE secures.
            "token_endpoint_auth_method": "client_secret_basic" if client_secret else "none",
        },
    )
