"""The stored addresses of peers, compared with the rules for them as they are now."""

from __future__ import annotations

import ipaddress

from agents_app.models import Agent, AgentKind
from agents_app.models.agents import ENVELOPES
from agents_app.outbound.rules import Unreachable, check_addresses
from agents_app.remote.addresses import target_of
from federation_app.models import Peer


def refused_addresses() -> list[str]:
    """Return a line for each address of a peer, or of an agent there, that may not be called.

    Names are not looked up. Synchronous.
    """
    peers = Peer.objects.filter(revoked_at=None).order_by("did")
    agents = Agent.objects.filter(kind=AgentKind.REMOTE, protocol__in=ENVELOPES).order_by("name")
    places = {
        (f"peer {did}", address): None
        for did, *addresses in peers.values_list("did", "address", "documents_address")
        for address in addresses
        if address
    } | {(f"agent {name}", url): None for name, url in agents.values_list("name", "url")}
    return [
        f"{name} at {address}: {reason}"
        for name, address in places
        if (reason := _refusal(address))
    ]


def _refusal(address: str) -> str:
    """Return why an address may not be called; '' if it may."""
    try:
        target = target_of(address, is_peer=True)
        if _is_ip(target.host):
            check_addresses(target, [target.host])
    except Unreachable as error:
        return error.reason
    return ""


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
