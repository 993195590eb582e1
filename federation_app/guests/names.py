"""Names of people across servers: `name@host`, where the host names a peer or this server."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from federation_app import own_names
from federation_app.envelope.errors import EnvelopeError, malformed
from federation_app.envelope.names.identity import identity_at

NAME_CHARS: Final = 150
"""The most characters of a full name, which has to fit into a username."""
OWN_CHARS: Final = 128
"""The most characters of the name on their server."""
_NAME: Final = re.compile(rf"[\w.@+-]{{1,{OWN_CHARS}}}")


class FullName(NamedTuple):
    """A person's name on their server, and that server."""

    name: str
    host: str

    def __str__(self) -> str:
        return f"{self.name}@{self.host}"


def read_name(text: str) -> FullName:
    """Parse a full name; raises EnvelopeError malformed.

    Hosts are ASCII in lower case, so that none looks like another one.
    """
    name, sign, host = text.rpartition("@")
    if len(text) > NAME_CHARS or not sign or _NAME.fullmatch(name) is None:
        raise malformed("A person on another server must be given as name@host.", detail="name")
    try:
        identity = identity_at(host)
    except EnvelopeError:
        raise malformed("The name's host is not a valid host name.", detail="name") from None
    return FullName(name, identity.authority)


def own_host() -> str:
    """Return the host of this server's people; raises EnvelopeError not_found."""
    return own_names.own_identity().authority
