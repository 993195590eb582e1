"""Verification of an envelope for its receiver: signature, audience, time (envelope §4, §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.limits import TIME_WINDOW_SECONDS
from federation_app.envelope.members.reading import check_time
from federation_app.envelope.signatures.signature import verify_signature

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from federation_app.envelope.members.reading import Envelope
    from federation_app.envelope.signatures.keys import VerificationKey


def verify_envelope(
    envelope: Envelope,
    *,
    keys: Iterable[VerificationKey],
    receivers: Collection[str],
    now: datetime,
    seconds: int = TIME_WINDOW_SECONDS,
    accepts_naive: bool = True,
) -> VerificationKey:
    """Return the key that signed an envelope for one of these receivers; raises EnvelopeError.

    `keys` are those of the sender; `seconds` is the tolerance for its clock. The signature is
    checked first, so that the sender of an altered envelope learns nothing about its receiver.
    """
    key = verify_signature(
        envelope.digests(accepts_naive=accepts_naive),
        envelope.sig,
        sender=envelope.sender,
        keys=keys,
    )
    if not set(receivers).intersection(envelope.to):
        raise EnvelopeError(
            EnvelopeCode.UNAUTHORIZED, "The envelope is for another receiver.", detail="to"
        )
    check_time(envelope.ts, now, seconds=seconds)
    return key
