"""AOAuth: access tokens for agents and programs, and discovery (docs/identity.md).

`POST /auth/token` accepts an OAuth 2.0 form (RFC 6749 §4.4, RFC 8693, RFC 7523 §2.1) and returns a
token of `bearer_tokens.access_tokens` or an RFC 6749 §5.2 error. Under `/agents/<name>` the token
is for that agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote_plus

from django.conf import settings
from django.http import JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from agents_app import selectors as agents
from agents_app.rest.problems import refusal
from agents_app.rest.rights import SCOPES, Rights, unknown_scopes
from agents_app.rest.views import address_of
from audit_app.record import AuditAction, record
from sessions_app.access import throttles
from sessions_app.access.auth import verify_token
from sessions_app.access.principal import AuthenticationError, Principal
from sessions_app.bearer_tokens import access_tokens
from sessions_app.models import KEY_CREDENTIAL, ApiKey
from signing_app import published, server_keys
from uamp.signatures import agent_owner
from uamp.types.inline_media import decode_base64

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

CLIENT_CREDENTIALS: Final = "client_credentials"
EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
ASSERTION: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 a type, not a secret
SUBJECT_TYPES: Final = (TOKEN_TYPE, "urn:ietf:params:oauth:token-type:jwt")
BODY_BYTES: Final = 32 * 1024
MAX_AGE: Final = 3600
KEYS_MAX_AGE: Final = 300
_TARGETS: Final = ("target", "audience", "resource")


class _GrantRefused(Exception):
    """An RFC 6749 §5.2 error; `http_status` 401 asks the client to authenticate."""

    def __init__(self, error: str, description: str, *, http_status: int = 400) -> None:
        super().__init__(description)
        self.error, self.http_status = error, http_status


@csrf_exempt
@require_POST
def token(request: HttpRequest, name: str = "") -> HttpResponse:
    """Return an access token or an error."""
    quota = throttles.count(request, "writes", None)
    if not quota.allowed:
        return _error(
            _GrantRefused(
                "temporarily_unavailable", "Too many requests. Try later.", http_status=429
            ),
            retry_after=quota.retry_after,
        )
    try:
        return _answer(_granted(request, _form(request), name))
    except _GrantRefused as refused:
        return _error(refused)


@require_safe
def configuration(request: HttpRequest, name: str = "") -> HttpResponse:
    """Return the endpoints that issue and verify tokens for this server or a public agent.

    The document follows OpenID Connect Discovery 1.0 and RFC 8414. The server is the issuer of all
    tokens.
    """
    if name and not _is_public(name):
        return refusal("not_found", instance=request.path)
    base = settings.UAMP_ISSUER
    issuer = f"{base}/agents/{quote(name, safe='')}" if name else base
    document = {
        "issuer": base,
        "token_endpoint": f"{issuer}/auth/token",
        "jwks_uri": f"{issuer}/.well-known/jwks.json",
        "grant_types_supported": [CLIENT_CREDENTIALS, EXCHANGE, ASSERTION],
        "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
        "scopes_supported": [*SCOPES],
        "response_types_supported": [],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": _algorithms(),
        "claims_supported": [
            "iss", "sub", "aud", "iat", "nbf", "exp", "jti", "scope", "client_id", "act",
        ],
        **({"agent": name, "agent_path": "/agents"} if name else {}),
    }  # fmt: skip
    return _public(document)


@require_safe
def agent_keys(request: HttpRequest, name: str) -> HttpResponse:
    """Return the public keys for verifying a public agent's answers and tokens.

    The server signs tokens, the agent its answers.
    """
    spec = agents.get_agent(name, viewer=None)
    if spec is None:
        return refusal("not_found", instance=request.path)
    return _public(published.keys_of(agent_owner(spec.id)), max_age=KEYS_MAX_AGE)


def _granted(
    request: HttpRequest, form: Mapping[str, str], name: str
) -> tuple[access_tokens.AccessGrant, bool]:
    """Return the grant, and whether it is a token exchange; raises _GrantRefused."""
    kind = form.get("grant_type", "")
    actor = None
    if kind == CLIENT_CREDENTIALS:
        subject = _client(request, form)
        if subject is None:
            raise _GrantRefused(
                "invalid_client", "Send client_id and client_secret.", http_status=401
            )
    elif kind == EXCHANGE:
        subject = _subject(form.get("subject_token"), form.get("subject_token_type"))
        actor = _client(request, form)
    elif kind == ASSERTION:
        subject = _subject(form.get("assertion"), SUBJECT_TYPES[1])
    elif not kind:
        raise _GrantRefused("invalid_request", "grant_type is missing.")
    else:
        raise _GrantRefused("unsupported_grant_type", "Only the listed grant types are supported.")
    grant = access_tokens.AccessGrant(
        user_id=subject.user_id or 0,
        scopes=_scopes(form.get("scope", ""), subject.rights),
        agent=_agent(form, name, subject),
        key_id=subject.api_key_id or 0,
        key_version=subject.key_version,
        actors=(
            *([] if actor is None else [(actor.credential, actor.key_version)]),
            *subject.actors,
        ),
        identity_id=subject.identity_id,
        expires_at=subject.expires_at,
    )
    if len(grant.actors) > access_tokens.MAX_DELEGATIONS:
        raise _GrantRefused("invalid_grant", "The token was passed on too often.")
    if actor is not None:
        target = grant.agent or "the server"
        facts = f"{actor.credential} for {target}: {' '.join(sorted(grant.scopes))}"
        record(
            None,
            AuditAction.TOKEN_DELEGATED,
            ("auth.user", str(grant.user_id)),
            detail=facts,
            address=address_of(request),
        )
    return grant, kind == EXCHANGE


def _subject(text: str | None, kind: str | None) -> Principal:
    if not text or kind not in SUBJECT_TYPES:
        raise _GrantRefused(
            "invalid_request", "Send a token, and its type where the grant has one."
        )
    try:
        return verify_token(text, protocol=None)
    except AuthenticationError as error:
        raise _GrantRefused("invalid_grant", str(error)) from None


def _client(request: HttpRequest, form: Mapping[str, str]) -> Principal | None:
    """Return the client that authenticates with its API key, or None if none does."""
    client_id, secret = _basic(request) or (form.get("client_id", ""), form.get("client_secret"))
    if not secret:
        return None
    prefix, _sha256 = ApiKey.split_secret(secret)
    try:
        client = verify_token(secret, protocol=None)
    except AuthenticationError:
        client = None
    if client is None or client.api_key_id is None or client.actors:
        raise _GrantRefused("invalid_client", "The client is not known here.", http_status=401)
    if client_id not in {prefix, f"{KEY_CREDENTIAL}{client.api_key_id}"}:
        raise _GrantRefused("invalid_client", "The client is not known here.", http_status=401)
    return client


def _basic(request: HttpRequest) -> tuple[str, str] | None:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = decode_base64(value).decode()
    except ValueError:
        raise _GrantRefused(
            "invalid_client", "The header cannot be read.", http_status=401
        ) from None
    client_id, _, secret = text.partition(":")
    return unquote_plus(client_id), unquote_plus(secret)


def _scopes(requested: str, rights: Rights) -> frozenset[str]:
    scopes = frozenset(requested.split()) or rights.scopes
    if unknown_scopes(scopes):
        raise _GrantRefused("invalid_scope", "A scope is not known.")
    if not all(rights.has(scope) for scope in scopes - {"*"}) or (
        "*" in scopes and "*" not in rights.scopes
    ):
        raise _GrantRefused(
            "invalid_scope", "The token would have more rights than what it is made of."
        )
    return scopes


def _agent(form: Mapping[str, str], name: str, subject: Principal) -> str:
    """Return the agent that the token is for, from the path or a parameter; "" is the server."""
    for parameter in _TARGETS:
        if target := form.get(parameter):
            try:
                target_name = access_tokens.agent_in(target)
            except ValueError as error:
                raise _GrantRefused("invalid_target", str(error)) from None
            if name and target_name.casefold() != name.casefold():
                raise _GrantRefused("invalid_target", "The path belongs to another agent.")
            name = target_name
    only = subject.rights.agents
    if not name and only is not None and len(only) == 1:
        # A token for one agent can only yield tokens for that agent.
        name = next(iter(only))
    if not name:
        return ""
    spec = agents.get_agent(name, viewer=subject.user_id)
    if spec is None or not subject.rights.may_ask(spec.id):
        raise _GrantRefused(
            "invalid_target", "There is no such agent, or the subject may not use it."
        )
    return spec.name


def _form(request: HttpRequest) -> dict[str, str]:
    if request.content_type != "application/x-www-form-urlencoded":
        raise _GrantRefused("invalid_request", "Send application/x-www-form-urlencoded.")
    if len(request.body) > BODY_BYTES:
        raise _GrantRefused("invalid_request", "The form is too large.")
    lists = dict(request.POST.lists())
    if any(len(values) > 1 for values in lists.values()):
        raise _GrantRefused("invalid_request", "A parameter is given twice.")
    return {name: str(values[0]) for name, values in lists.items()}


def _answer(granted: tuple[access_tokens.AccessGrant, bool]) -> HttpResponse:
    grant, is_exchange = granted
    made, lasts = access_tokens.issue(grant)
    body: dict[str, Any] = {
        "access_token": made,
        "token_type": "Bearer",
        "expires_in": lasts,
        "scope": " ".join(sorted(grant.scopes)),
    }
    if is_exchange:
        body["issued_token_type"] = TOKEN_TYPE
    return JsonResponse(body, headers={"Cache-Control": "no-store", "Pragma": "no-cache"})


def _error(refused: _GrantRefused, *, retry_after: int | None = None) -> HttpResponse:
    headers = {"Cache-Control": "no-store", "Pragma": "no-cache"}
    if refused.http_status == 401:  # noqa: PLR2004 an HTTP status is clearer as a number
        headers["WWW-Authenticate"] = 'Basic realm="token"'
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    body = {"error": refused.error, "error_description": str(refused)}
    return JsonResponse(body, status=refused.http_status, headers=headers)


def _public(document: Mapping[str, Any], *, max_age: int = MAX_AGE) -> HttpResponse:
    headers = {"Cache-Control": f"public, max-age={max_age}", "Access-Control-Allow-Origin": "*"}
    return JsonResponse(document, headers=headers)


def _is_public(name: str) -> bool:
    return agents.get_agent(name, viewer=None) is not None


def _algorithms() -> list[str]:
    return sorted({key.algorithm for key in server_keys.server_keys()})
