"""Capability tokens (envelope §6.2): issued to a peer, sent in its envelopes, and revoked.

A token is a JWT that this server signs with a key of its own purpose, for itself. Only its id and
claims are stored, so that it can be listed and revoked. It narrows the envelopes that carry it, and
gives no rights; the questions of a peer with `asks_need_token` are refused without one.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

from agents_app.selectors import agent_named
from federation_app import own_names
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed, unauthenticated
from federation_app.envelope.members.reading import Intent
from federation_app.envelope.names.tokens import (
    CAPABILITY_TYPE,
    issuer_of,
    signed_token,
    verify_token,
)
from federation_app.envelope.signatures.keys import EDDSA, EnvelopeKey, VerificationKey, key_of_jwk
from federation_app.models import CapabilityToken
from signing_app import owner_keys, published

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from federation_app.envelope.members.reading import Envelope
    from federation_app.models import Peer

KEY_OWNER: Final = "capabilities"
MAX_HOURS: Final = 366 * 24
DEFAULT_HOURS: Final = 24
MAX_AGENTS: Final = 20
KEPT_FOR: Final = timedelta(days=30)
"""How long an expired token stays in the list, revoked or not."""
TOKEN_CHARS: Final = 4096
"""A server of this kind stores a token of at most this length."""


def issue(
    peer: Peer, *, intents: Collection[Intent], agents: Sequence[str], hours: int
) -> tuple[CapabilityToken, str]:
    """Issue a token for envelopes of a peer; return its row and the token, which is not stored.

    It covers some intents to some agents, or to every name of this server. Raises EnvelopeError.
    """
    server = own_names.own_identity().did
    names = [_agent(name) for name in dict.fromkeys(agents)]
    if not intents or not 0 < hours <= MAX_HOURS or len(names) > MAX_AGENTS:
        raise malformed(
            f"A token needs an intent, at most {MAX_AGENTS} agents, and 1 to {MAX_HOURS} hours.",
            detail="cap_token",
        )
    audience = sorted({own_names.own_identity(name).did for name in names}) or [server]
    key: Any = owner_keys.signing_key(KEY_OWNER, EDDSA)
    now = timezone.now()
    row = CapabilityToken(
        id=str(uuid.uuid4()),
        peer=peer,
        audience=audience,
        intents=sorted(intents),
        created_at=now,
        expires_at=now + timedelta(hours=hours),
    )
    token = signed_token(
        EnvelopeKey(f"{server}#{key.kid}", key.private),
        issuer=server,
        subject=peer.did,
        audience=audience,
        scope=" ".join(f"uamp:{intent}" for intent in row.intents),
        now=now,
        seconds=hours * 3600,
        token_id=row.pk,
    )
    if len(token) > TOKEN_CHARS:
        raise malformed("The names of the agents are too long.", detail="cap_token")
    row.save(force_insert=True)
    return row, token


def revoke(row: CapabilityToken) -> bool:
    """Stop accepting a token; return False if it was already revoked."""
    rows = CapabilityToken.objects.filter(pk=row.pk, revoked_at__isnull=True)
    return bool(rows.update(revoked_at=timezone.now()))


def forget_expired(limit: int) -> int:
    """Delete tokens that expired KEPT_FOR ago; return how many were deleted."""
    rows = CapabilityToken.objects.filter(expires_at__lt=timezone.now() - KEPT_FOR)
    expired = list(rows.order_by("expires_at").values_list("pk", flat=True)[:limit])
    return CapabilityToken.objects.filter(pk__in=expired).delete()[0] if expired else 0


def check(envelope: Envelope, *, receiver: str, peer: Peer) -> None:
    """Raise EnvelopeError unless the token of a verified envelope is ours and covers it.

    Most peers need none.
    """
    if not envelope.cap_token:
        if peer.asks_need_token and envelope.intent is Intent.ASK:
            raise EnvelopeError(
                EnvelopeCode.UNAUTHORIZED,
                "Questions need a capability token issued by this server.",
                detail="cap_token",
            )
        return
    server = own_names.own_identity().did
    if issuer_of(envelope.cap_token) != server:
        raise unauthenticated(
            "The capability token was issued by another server.", detail="cap_token"
        )
    claims = verify_token(
        envelope.cap_token,
        audiences={receiver, server},
        now=timezone.now(),
        keys=_keys(server),
        types={CAPABILITY_TYPE},
        seconds=MAX_HOURS * 3600,
    )
    if claims.subject != envelope.sender:
        raise unauthenticated("The capability token belongs to another sender.", detail="cap_token")
    valid = CapabilityToken.objects.filter(pk=claims.token_id, peer=peer, revoked_at__isnull=True)
    if not valid.exists():
        raise unauthenticated("The capability token was revoked.", detail="cap_token")
    claims.check_scope(envelope.intent)


def _agent(name: str) -> str:
    """Return the name of an agent as it is written in its DID; raises EnvelopeError not_found."""
    agent = agent_named(name)
    if agent is None:
        raise EnvelopeError(
            EnvelopeCode.NOT_FOUND, f"There is no agent {name[:64]!r}.", detail="agent"
        )
    return agent.name


def _keys(server: str) -> list[VerificationKey]:
    """Return the keys of this purpose, without those of the server that are listed with them.

    Earlier releases rotated to the algorithm of UAMP_SIGNATURE_ALGORITHM: no token has an RSA key.
    """
    return [
        key_of_jwk(jwk, kid=f"{server}#{jwk['kid']}")
        for jwk in published.keys_of(KEY_OWNER)["keys"]
        if jwk["uamp_owner"] == KEY_OWNER and jwk.get("kty") != "RSA"
    ]
