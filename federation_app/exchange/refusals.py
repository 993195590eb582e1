"""The limits of envelopes: how many a peer may send, and how many may be refused.

An envelope with a valid signature, receiver and time counts for its peer, even if it is refused. A
refused one without these counts against the address that it came from: anyone can send it.

If a trusted peer passed it on (`UAMP-Relayed-By`), it counts against that address for its claimed
sender alone, so that one member of a hub cannot block the others. The header can be false, but an
address gains no more by it than another limit for each peer. Senders that are not trusted peers
count together: none of their envelopes would be accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.members.reading import claims_of
from federation_app.exchange import admission
from federation_app.peers import registry
from sessions_app import database
from sessions_app.access import rates

if TYPE_CHECKING:
    from federation_app.exchange.admission import Admitted
    from federation_app.models import Peer
    from sessions_app.access.rates import Quota

_KIND: Final = "envelopes"
_UNKNOWN: Final = 0
"""Stands for the senders that are not trusted peers."""


async def admit(raw: bytes, *, address: str, relays: tuple[str, ...]) -> Admitted:
    """Admit an envelope within the limits; raises EnvelopeError.

    `address` is the client's, '' for none, and `relays` are the servers that passed it on.
    """
    name = rates.visitors(address) if address else ""
    if name and relays:
        name = await database.run(_relayed, name, relays[-1], raw)
    if name:
        _check(await rates.limiter().take(_KIND, name, cost=0), least=1)
    try:
        admitted = await database.run(admission.admit, raw)
    except admission.PeerRefused as refused:
        await _count(refused.peer, 1)
        raise refused.error from None
    except EnvelopeError:
        if name:
            await rates.limiter().take(_KIND, name)
        raise
    await _count(admitted.peer, max(1, len(admitted.routes)))
    return admitted


def _relayed(visitors: str, relay: str, raw: bytes) -> str:
    """Return the name under which a relayed envelope counts if it is refused."""
    sender, _ = claims_of(raw)
    peers = registry.trusted_peers().filter(did__in={relay, sender})
    by_name = dict(peers.values_list("did", "pk"))
    if relay not in by_name:
        return visitors
    return f"{visitors} {by_name[relay]} {by_name.get(sender, _UNKNOWN)}"


async def _count(peer: Peer, cost: int) -> None:
    """Count envelopes for the peer that signed them; raises EnvelopeError rate_limited."""
    name = admission.principal_of(peer).counted_as
    _check(await rates.limiter().take(_KIND, name, cost=cost))


def _check(quota: Quota, *, least: int = 0) -> None:
    """Raise EnvelopeError if a quota is spent, or has less than `least` left."""
    if not quota.allowed or quota.remaining < least:
        raise EnvelopeError(
            EnvelopeCode.RATE_LIMITED,
            "You send too many envelopes.",
            retry_after=quota.retry_after,
        )
