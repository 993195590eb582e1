"""Ids of events, messages and responses: random, one of a kind, but no secrets (UAMP §4).

There is one in each of the many frames of an answer: no system call for it. Ids that protect what
they name, as those of sessions, are not made here.
"""

from __future__ import annotations

import os
from random import Random
from typing import Final

# A UUID of version 4 has 122 free bits; these are the others.
_FREE_BITS: Final = 0xFFFFFFFF_FFFF_0FFF_3FFF_FFFFFFFFFFFF
_VERSION_4: Final = 0x00000000_0000_4000_8000_000000000000
# A generator of its own: a tool or a library that calls random.seed() would repeat ids, and so
# would a worker that was forked with the state of its parent.
_random: Final = Random()  # noqa: S311 an id is no secret
os.register_at_fork(after_in_child=_random.seed)


def new_event_id() -> str:
    """Return a new event id, a random UUID of version 4."""
    digits = f"{_random.getrandbits(128) & _FREE_BITS | _VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def new_hex() -> str:
    """Return 128 random bits as 32 hexadecimal digits."""
    return f"{_random.getrandbits(128):032x}"
