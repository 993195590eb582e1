"""The header that counts the servers a request has passed, which stops loops across servers."""

import re

HEADER = "X-UAMP-Hops"
"""Sent with each request to a remote agent: how many servers have passed the request on."""
MAX_HOPS = 999
_NUMBER = re.compile(r"[0-9]{1,3}")


def read_hops(value: str | None) -> int:
    """Return the number in a header: 0 if it is missing, MAX_HOPS if it is invalid."""
    if value is None:
        return 0
    return int(value) if _NUMBER.fullmatch(value.strip()) else MAX_HOPS
