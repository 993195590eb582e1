"""Where remote agents may be: at public https addresses, or in UAMP_REMOTE_ALLOW_HOSTS.

Peers need TLS there, too, except on a loopback address if UAMP_PEER_LOOPBACK_HTTP allows that.
"""

import ssl
from functools import partial

from django.conf import settings

from agents_app.outbound.rules import Cleartext, Policy, Target, check_url
from agents_app.providers.addresses import guarded_connector
from upp.providers.http.connections import HttpSession, MakeConnector, Sessions

DISCOVERY_BYTES = 1024 * 1024
DISCOVERY_SECONDS = 5.0
_MAX_PLACES = 4096

_sessions = Sessions()
_connectors: dict[tuple[str, bool, bool, ssl.SSLContext | None], MakeConnector] = {}


def policy(*, is_peer: bool = False) -> Policy:
    """Return the policy for addresses of remote agents or peers, with the limits of discovery."""
    cleartext = Cleartext.ALLOWED
    if is_peer:
        cleartext = Cleartext.LOOPBACK if settings.UAMP_PEER_LOOPBACK_HTTP else Cleartext.NONE
    return Policy(
        cleartext=cleartext,
        allowed=frozenset(name.lower() for name in settings.UAMP_REMOTE_ALLOW_HOSTS),
        own_hosts=tuple(name for name in settings.ALLOWED_HOSTS if name != "*"),
        seconds=DISCOVERY_SECONDS,
        max_bytes=DISCOVERY_BYTES,
    )


def target_of(url: str, *, is_peer: bool = False) -> Target:
    """Check the address of a row; raises Unreachable."""
    return check_url(url, policy(is_peer=is_peer))


def session_of(target: Target, *, tls: ssl.SSLContext | None = None) -> HttpSession:
    """Return the running loop's connections to a target, shared by all agents there.

    `tls` replaces the default settings, which trust public certificate authorities.
    """
    place = (target.place, target.is_allowed, target.is_loopback, tls)
    if place not in _connectors:
        if len(_connectors) >= _MAX_PLACES:
            _connectors.clear()
        _connectors[place] = partial(guarded_connector, target, tls=tls)
    return _sessions.session(_connectors[place])


async def close_remotes() -> None:
    """Close the running loop's connections to remote agents, at the end of the process."""
    await _sessions.aclose()
