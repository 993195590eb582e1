"""The rate limits of envelopes (`UAMP_ENVELOPES_PER_MINUTE`), counted in three places.

- An address counts the envelopes from it that are refused, and is refused itself beyond its limit.
- A peer's name at an address counts what arrives in that name, before the signature is verified.
- A peer counts what it has signed. It is only looked at before that: a forger would otherwise use
  up the quota of a peer from another address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.exchange import admission
from sessions_app.access import rates

if TYPE_CHECKING:
    from federation_app.exchange.admission import Admitted
    from federation_app.models import Peer
    from sessions_app.access.rates import Quota

_KIND: Final = "envelopes"


class EnvelopeRates:
    """The rate limits of one client; without an `address`, only those of peers apply."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def check_address(self) -> None:
        """Raise EnvelopeError rate_limited if too many envelopes from the address were refused."""
        if self._address:
            _check(await self._count_address(0), least=1)

    async def count_refusal(self, error: EnvelopeError) -> None:
        """Count an envelope that was not admitted, unless it was only one too many."""
        if self._address and error.code is not EnvelopeCode.RATE_LIMITED:
            await self._count_address(1)

    def count_claim(self, peer: Peer, cost: int) -> None:
        """Count an unverified envelope for the peer's name at this address. Synchronous.

        Raises EnvelopeError rate_limited if it has no quota left, or the peer has none.
        """
        principal = admission.principal_of(peer, address=self._address)
        costs = {principal.counted_as: 0}
        if self._address:
            costs[f"{rates.visitors(self._address)},{principal.key}"] = cost
        own, *claims = rates.limiter().hit_each(_KIND, costs)
        _check(own, least=cost)
        for claim in claims:
            _check(claim)

    async def count(self, admitted: Admitted) -> None:
        """Count a verified envelope for its peer; raises EnvelopeError rate_limited."""
        principal = admission.principal_of(admitted.peer, address=self._address)
        cost = max(1, len(admitted.routes))
        _check(await rates.limiter().take(_KIND, principal.counted_as, cost=cost))

    async def _count_address(self, cost: int) -> Quota:
        return await rates.limiter().take(_KIND, rates.visitors(self._address), cost=cost)


def _check(quota: Quota, *, least: int = 0) -> None:
    """Raise EnvelopeError if a quota is spent, or has less than `least` left."""
    if not quota.allowed or quota.remaining < least:
        raise EnvelopeError(
            EnvelopeCode.RATE_LIMITED,
            "You send too many envelopes.",
            retry_after=quota.retry_after,
        )
