"""The names of this server and its agents, and the key with which they sign. Synchronous.

The server is `did:web:HOST`, an agent `did:web:HOST:agents:NAME`; UAMP_FEDERATION_HOST is the host.
All of them sign with one key of `signing_app`, which has a key id under each name. The next key is
in the documents for ANNOUNCED_FOR before it signs envelopes. The key before it signs the documents
that list the next one (`names.trust`, rule 4) until RETIRED_FOR later, so that peers which knew
only that one follow.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from django.conf import settings
from django.utils import timezone

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.names.identity import WebIdentity, identity_at
from federation_app.envelope.signatures.keys import EDDSA, EnvelopeKey, VerificationKey, key_of_jwk
from signing_app import owner_keys, published

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY_OWNER: Final = "federation"
ANNOUNCED_FOR: Final = timedelta(days=1)
"""How long a key is published before it signs envelopes."""
RETIRED_FOR: Final = timedelta(days=7)
"""How long a retired key stays in the DID document, and signs the documents."""
OVERLAP: Final = owner_keys.Overlap(
    algorithm=EDDSA, announced_for=ANNOUNCED_FOR, vouches_for=RETIRED_FOR
)
_AGENTS: Final = "agents"


def own_identity(agent: str = "") -> WebIdentity:
    """Return the identity of the server, or of an agent.

    Raises EnvelopeError not_found if the server has no name, or if the agent's cannot be a DID.
    """
    if not settings.UAMP_FEDERATION_HOST:
        raise EnvelopeError(EnvelopeCode.NOT_FOUND, "This server has no name for envelopes.")
    path = (_AGENTS, quote(agent, safe="")) if agent else ()
    try:
        return identity_at(settings.UAMP_FEDERATION_HOST, *path)
    except EnvelopeError:
        raise EnvelopeError(
            EnvelopeCode.NOT_FOUND, "The name cannot be one of envelopes.", detail="did"
        ) from None


def receiver_among(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first of these DIDs that is ours, with its agent; '' is the default agent."""
    server = own_identity().did
    prefix = f"{server}:{_AGENTS}:"
    for did in names:
        if did == server:
            return did, ""
        if did.startswith(prefix) and (agent := did.removeprefix(prefix)) and ":" not in agent:
            return did, agent
    return None


def own_signer(did: str) -> EnvelopeKey:
    """Return the key that signs for one of our names."""
    key: Any = owner_keys.signing_key(KEY_OWNER, EDDSA)
    return EnvelopeKey(f"{did}#{key.kid}", key.private)


def document_signer(did: str) -> EnvelopeKey:
    """Return the key that signs the manifest and the hub of one of our names.

    That is the oldest key that vouches for those after it.
    """
    key: Any = owner_keys.vouching_key(KEY_OWNER, EDDSA)
    return EnvelopeKey(f"{did}#{key.kid}", key.private)


def own_keys(did: str) -> list[VerificationKey]:
    """Return the keys in the DID document of one of our names, the newest first."""
    own_signer(did)
    oldest = (timezone.now() - RETIRED_FOR).timestamp()
    keys: list[VerificationKey] = []
    for jwk in published.keys_of(KEY_OWNER)["keys"]:
        if jwk.get("kty") == "RSA" or jwk.get("exp", oldest + 1) < oldest:
            continue
        if "iat" in jwk:
            # Keys without `iat` belong to the server itself, and sign tokens rather than envelopes.
            keys.append(key_of_jwk(jwk, kid=f"{did}#{jwk['kid']}"))
    return keys
