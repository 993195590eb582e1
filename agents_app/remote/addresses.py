"""Where remote agents may be: at public https addresses, or in UAMP_REMOTE_ALLOW_HOSTS."""

import ssl
from functools import partial

from django.conf import settings

from agents_app.outbound.rules import Policy, Target, check_url
from agents_app.providers.addresses import guarded_connector
from upp.providers.http.connections import HttpSession, MakeConnector, Sessions

DISCOVERY_BYTES = 1024 * 1024
DISCOVERY_SECONDS = 5.0
_MAX_PLACES = 4096

_sessions = Sessions()
_connectors: dict[tuple[str, bool, ssl.SSLContext | None], MakeConnector] = {}


def policy() -> Policy:
    """Return the policy for addresses of remote agents, with the limits of discovery."""
    return Policy(
        allowed=frozenset(name.lower() for name in settings.UAMP_REMOTE_ALLOW_HOSTS),
        own_hosts=tuple(name for name in settings.ALLOWED_HOSTS if name != "*"),
        seconds=DISCOVERY_SECONDS,
        max_bytes=DISCOVERY_BYTES,
    )


def target_of(url: str) -> Target:
    """Check the address of a row; raises Unreachable."""
    return check_url(url, policy())


def session_of(target: Target, *, tls: ssl.SSLContext | None = None) -> HttpSession:
    """Return the running loop's connections to a target, shared by all agents there.

    `tls` replaces the default settings, which trust public certificate authorities.
    """
    place = (target.place, target.is_allowed, tls)
    if place not in _connectors:
        if len(_connectors) >= _MAX_PLACES:
            _connectors.clear()
        _connectors[place] = partial(guarded_connector, target, tls=tls)
    return _sessions.session(_connectors[place])


async def close_remotes() -> None:
    """Close the running loop's connections to remote agents, at the end of the process."""
    await _sessions.aclose()
