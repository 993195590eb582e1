"""Ids of messages and of the states that hold them: random UUIDs, unique but not secret.

A conversation needs many at once, so they are made without a system call each. The generator is
private to this module: otherwise a program that calls `random.seed()` would get repeated ids.
"""

import os
from random import Random

# A version 4 UUID has 122 free bits; these are the others.
_FREE_BITS = 0xFFFFFFFF_FFFF_0FFF_3FFF_FFFFFFFFFFFF
_VERSION_4 = 0x00000000_0000_4000_8000_000000000000
_random = Random()  # noqa: S311 ids are not secrets
# A forked child would repeat its parent's ids. Windows has no fork.
getattr(os, "register_at_fork", dict)(after_in_child=_random.seed)


def new_id() -> str:
    """Return a new random UUID of version 4 as text."""
    digits = f"{_random.getrandbits(128) & _FREE_BITS | _VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
