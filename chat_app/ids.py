"""Ids of events, messages and responses: random and unique, but not secret (UAMP §4).

Every frame of an answer needs one, so generating them makes no system call. Ids that protect what
they name, such as those of sessions, are not made here.
"""

from __future__ import annotations

import os
from random import Random
from typing import Final

# A version 4 UUID has 122 free bits; the other six are fixed.
_FREE_BITS: Final = 0xFFFFFFFF_FFFF_0FFF_3FFF_FFFFFFFFFFFF
_VERSION_4: Final = 0x00000000_0000_4000_8000_000000000000
# A private generator: if a tool or library called random.seed(), or a worker were forked with its
# parent's state, ids would repeat.
_random: Final = Random()  # noqa: S311 an id is no secret
os.register_at_fork(after_in_child=_random.seed)


def new_event_id() -> str:
    """Return a new event id, a random version 4 UUID."""
    digits = f"{_random.getrandbits(128) & _FREE_BITS | _VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def new_hex() -> str:
    """Return 128 random bits as 32 hexadecimal digits."""
    return f"{_random.getrandbits(128):032x}"
