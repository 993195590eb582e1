"""The limits of envelopes: how many a peer may send, and how many may be refused.

An envelope with a valid signature, receiver and time counts for its peer, even if it is refused.
The quota of the peer is checked before the signature, but taken after it: anyone could use it up
otherwise. Before the signature, an envelope counts for the pair of its address and the peer that it
names.

A refused envelope that no peer signed counts against the address that it came from. If a trusted
peer passed it on (`UAMP-Relayed-By`), it counts against that address for its claimed sender alone,
so that one member of a hub cannot block the others. The header can be false, but an address gains
no more by it than a limit for each peer. Senders that are not trusted peers count together:
none of their envelopes would be accepted.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Final

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.members.reading import claims_of
from federation_app.exchange import admission
from federation_app.peers import registry
from federation_app.peers.reading import with_keys
from sessions_app import database
from sessions_app.access import rates

if TYPE_CHECKING:
    from federation_app.exchange.admission import Admitted
    from federation_app.models import Peer
    from sessions_app.access.rates import Quota

_KIND: Final = "envelopes"
_UNKNOWN: Final = 0
"""Stands for the senders that are not trusted peers."""


class _PeerBusy(EnvelopeError):
    """The peer that an envelope names has no quota left."""


async def admit(raw: bytes, *, address: str, relays: tuple[str, ...]) -> Admitted:
    """Admit an envelope within the limits; raises EnvelopeError.

    `address` is the client's, '' for none, and `relays` are the servers that passed it on.
    """
    visitors = rates.visitors(address) if address else ""
    refusals = visitors
    if visitors and relays:
        refusals = await database.run(_relayed, visitors, relays[-1], raw)
    if refusals:
        _check(await rates.limiter().take(_KIND, refusals, cost=0), least=1)
    try:
        # The claim counts once, even if the admission is repeated after fetching keys.
        count_claim = cache(partial(_count_claim, visitors))
        admitted = await with_keys(admission.admit, raw, on_claim=count_claim)
    except admission.PeerRefused as refused:
        await count(refused.peer, 1)
        raise refused.error from None
    except EnvelopeError as error:
        # A busy peer does not use up the refusals of others at its address.
        if refusals and not isinstance(error, _PeerBusy):
            await rates.limiter().take(_KIND, refusals)
        raise
    await count(admitted.peer, max(1, len(admitted.routes)))
    return admitted


def _relayed(visitors: str, relay: str, raw: bytes) -> str:
    """Return the name under which a relayed envelope counts if it is refused."""
    sender, _ = claims_of(raw)
    peers = registry.trusted_peers().filter(did__in={relay, sender})
    by_name = dict(peers.values_list("did", "pk"))
    if relay not in by_name:
        return visitors
    return f"{visitors} {by_name.get(sender, _UNKNOWN)}"


def _count_claim(visitors: str, peer: Peer, cost: int) -> None:
    """Count an unverified envelope for the peer's name at its address. Synchronous.

    Raises EnvelopeError rate_limited if the pair has no quota left, and _PeerBusy if the peer has
    none.
    """
    principal = admission.principal_of(peer)
    costs = {principal.counted_as: 0}
    if visitors:
        costs[f"{visitors},{principal.key}"] = cost
    own_quota, *pairs = rates.limiter().hit_each(_KIND, costs)
    _check(own_quota, least=cost, error=_PeerBusy)
    for pair in pairs:
        _check(pair)


async def count(peer: Peer, cost: int) -> None:
    """Count envelopes for the peer that signed them; raises EnvelopeError rate_limited."""
    name = admission.principal_of(peer).counted_as
    _check(await rates.limiter().take(_KIND, name, cost=cost))


def _check(quota: Quota, *, least: int = 0, error: type[EnvelopeError] = EnvelopeError) -> None:
    """Raise EnvelopeError if a quota is spent, or has less than `least` left."""
    if not quota.allowed or quota.remaining < least:
        raise error(
            EnvelopeCode.RATE_LIMITED,
            "You send too many envelopes.",
            retry_after=quota.retry_after,
        )
