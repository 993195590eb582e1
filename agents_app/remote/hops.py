"""The header that counts the servers on the way of a request: it ends loops across servers."""

import re

HEADER = "X-UAMP-Hops"
"""How many servers passed a request on, on each request to a remote agent."""
MOST = 999
_NUMBER = re.compile(r"[0-9]{1,3}")


def read_hops(value: str | None) -> int:
    """Return the number in a header; 0 where there is none, and MOST for what is no number."""
    if value is None:
        return 0
    return int(value) if _NUMBER.fullmatch(value.strip()) else MOST
