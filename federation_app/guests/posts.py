"""Envelopes about shared chats, signed and ready to post. Synchronous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from django.utils import timezone

from federation_app import own_names
from federation_app.envelope.members.writing import new_envelope
from federation_app.guests import accounts
from federation_app.guests.contents import GUESTS_TYPE

if TYPE_CHECKING:
    from federation_app.envelope.members.reading import Intent
    from federation_app.models import Peer


@dataclass(frozen=True, kw_only=True)
class SignedPost:
    """A signed envelope, and where to post it."""

    peer_id: int
    url: str
    raw: bytes


def sign(peer: Peer, intent: Intent, members: dict[str, Any]) -> SignedPost:
    """Return an envelope for a peer about a shared chat, signed now."""
    value = new_envelope(
        own_names.own_signer(own_names.own_identity().did),
        to=[peer.did],
        intent=intent,
        content=msgspec.json.encode(members).decode(),
        now=timezone.now(),
        type_=GUESTS_TYPE,
    )
    base = peer.address or f"https://{accounts.host_of(peer)}"
    return SignedPost(
        peer_id=peer.pk,
        url=f"{base.rstrip('/')}/v1/messages",
        raw=msgspec.json.encode(value),
    )
