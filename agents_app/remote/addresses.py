"""Where remote agents may be: public and over https, or in UAMP_REMOTE_ALLOW_HOSTS."""

import ssl
from functools import partial

from django.conf import settings

from agents_app.outbound.rules import Policy, Target, check_url
from agents_app.providers.addresses import guarded_connector
from upp.providers.http.connections import HttpSession, MakeConnector, Sessions

DISCOVERY_BYTES = 1024 * 1024
DISCOVERY_SECONDS = 5.0
_MOST_PLACES = 4096

_sessions = Sessions()
_connectors: dict[tuple[str, bool, ssl.SSLContext | None], MakeConnector] = {}


def policy() -> Policy:
    """Return which addresses may be called, and what discovery reads of one."""
    return Policy(
        allowed=frozenset(name.lower() for name in settings.UAMP_REMOTE_ALLOW_HOSTS),
        own_hosts=tuple(name for name in settings.ALLOWED_HOSTS if name != "*"),
        seconds=DISCOVERY_SECONDS,
        max_bytes=DISCOVERY_BYTES,
    )


def target_of(url: str) -> Target:
    """Return where the address of a row leads; raises Unreachable."""
    return check_url(url, policy())


def session_of(target: Target, *, tls: ssl.SSLContext | None = None) -> HttpSession:
    """Return the running loop's connections to the place of a target, which agents there share.

    `tls` are other settings of TLS than those for servers of public authorities.
    """
    place = (target.place, target.is_allowed, tls)
    if place not in _connectors:
        if len(_connectors) >= _MOST_PLACES:
            _connectors.clear()
        _connectors[place] = partial(guarded_connector, target, tls=tls)
    return _sessions.session(_connectors[place])


async def close_remotes() -> None:
    """Close the running loop's connections to remote agents; for the end of the process."""
    await _sessions.aclose()
