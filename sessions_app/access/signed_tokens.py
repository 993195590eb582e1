"""The principal of a signed token: this server's own (AOAuth), or a configured issuer's.

Details of a refusal are logged; the client only learns that its token is invalid or has expired.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from django.contrib.auth.models import User

from agents_app import selectors as agents
from agents_app.rest.rights import Rights, unknown_scopes
from sessions_app.access.principal import AuthenticationError, Principal, PrincipalKind
from sessions_app.access.stored_keys import ended_actors
from sessions_app.bearer_tokens import access_tokens, jwks, people, verification
from sessions_app.bearer_tokens.issuers import issuers
from sessions_app.bearer_tokens.verification import Header, TokenExpired, TokenInvalid
from sessions_app.models import ApiKey

logger = logging.getLogger(__name__)

_NOT_GOOD: Final = "The token is not valid here. Ask its issuer for a new one."
_EXPIRED: Final = "The token has expired. Use a new one."


def principal_of(token: str) -> Principal:
    """Return the principal of a token; raises AuthenticationError (synchronous).

    A subject's first token may create an account, and the issuer's keys may have to be fetched.
    """
    try:
        header = verification.read_header(token)
        if access_tokens.is_ours(header):
            return _of_grant(access_tokens.verify(token, header))
        return _of_issuer(token, header)
    except TokenExpired as error:
        raise AuthenticationError(_EXPIRED, code="token_expired") from error
    except TokenInvalid as error:
        logger.info("a signed token was refused: %s", error)
        raise AuthenticationError(_NOT_GOOD) from error


def _of_issuer(token: str, header: Header) -> Principal:
    issuer = issuers().get(header.issuer)
    if issuer is None:
        raise TokenInvalid(f"its issuer {header.issuer[:100]!r} is not in UAMP_JWT_ISSUERS")
    key = jwks.key_of(issuer, header.kid)
    if key is None:
        raise TokenInvalid(f"its issuer has no key {header.kid[:40]!r} that can be used")
    claims = verification.verify(
        token,
        key,
        header=header,
        algorithms=issuer.algorithms,
        types=issuer.types,
        issuer=issuer.issuer,
        audience=issuer.audience,
    )
    subject = claims["sub"]
    identity = people.identity_of(issuer.issuer, subject)
    if identity is None and issuer.creates_people:
        people.make_person(issuer.issuer, subject, claims, name_claim=issuer.username_claim)
        identity = people.identity_of(issuer.issuer, subject)
    if identity is None or not identity.user.is_active:
        raise TokenInvalid("its subject has no active account here")
    user = identity.user
    claimed_scopes = verification.scopes_in(claims)
    scopes = frozenset(issuer.default_scopes) if claimed_scopes is None else claimed_scopes
    limit = Rights(scopes=frozenset(issuer.scopes))
    supported_scopes = scopes - set(unknown_scopes(scopes))
    rights = Rights(
        scopes=frozenset(scope for scope in supported_scopes if limit.includes(_only(scope)))
    )
    return Principal(
        key=PrincipalKind.PERSON.key(user.pk),
        user_id=user.pk,
        username=user.get_username(),
        rights=rights,
        identity_id=identity.pk,
        expires_at=verification.expiry(claims),
    )


def _of_grant(grant: access_tokens.AccessGrant) -> Principal:
    """Return the principal of this server's token, if the secret that it derives from is valid.

    It is limited to the key's current rights.
    """
    user = User.objects.filter(pk=grant.user_id, is_active=True).first()
    if user is None:
        raise TokenInvalid("its subject has no active account here")
    key = ApiKey.objects.filter(pk=grant.key_id, user=user, revoked_at__isnull=True).first()
    if grant.key_id and (key is None or not key.accepts(grant.key_version)):
        raise TokenInvalid("the secret that it was issued with is no longer valid")
    if ended_actors(grant.actors):
        raise TokenInvalid("a secret that passed it on is no longer valid")
    if grant.identity_id is not None and people.ended_identities([grant.identity_id]):
        raise TokenInvalid("its subject no longer has an account here")
    # Derived from another issuer's token, it has the granted scopes and expires with that token.
    rights = Rights(scopes=grant.scopes) if key is None else key.rights
    scopes = frozenset(scope for scope in grant.scopes if rights.includes(_same(rights, scope)))
    rights = replace(rights, scopes=scopes)
    if grant.agent:
        spec = agents.get_agent(grant.agent, viewer=grant.user_id)
        if spec is None or not rights.may_ask(spec.id):
            raise TokenInvalid("its agent no longer exists")
        rights = replace(rights, agents=frozenset({spec.id}))
    return Principal(
        key=PrincipalKind.PERSON.key(user.pk),
        user_id=user.pk,
        username=user.get_username(),
        api_key_id=None if key is None else key.pk,
        key_version=grant.key_version,
        credential="" if key is None else key.credential,
        rights=rights,
        actors=grant.actors,
        identity_id=grant.identity_id,
        expires_at=grant.expires_at,
    )


def _only(scope: str) -> Rights:
    return Rights(scopes=frozenset({scope}))


def _same(rights: Rights, scope: str) -> Rights:
    return replace(rights, scopes=frozenset({scope}))
