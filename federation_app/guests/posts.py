"""Envelopes about shared chats, signed and ready to post. Synchronous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from django.utils import timezone

from federation_app import own_names
from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.envelope.members.writing import new_envelope
from federation_app.guests import accounts
from federation_app.guests.contents import GUESTS_TYPE
from federation_app.message_notes import shorten
from federation_app.peers.quotas import KIB

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
    """Return an envelope for a peer about a shared chat, signed now.

    A text for which the envelope has no room is shortened, in `members`.
    """
    raw = _signed(peer, intent, members)
    surplus = len(raw) - _largest(peer)
    if surplus > 0 and (place := _text_in(members)) is not None:
        text, host = place[0][place[1]], own_names.own_identity().authority
        shorter = shorten(text, host, room=_size(text) - surplus, size=_size)
        place[0][place[1]] = shorter
        raw = _signed(peer, intent, members)
    base = peer.address or f"https://{accounts.host_of(peer)}"
    return SignedPost(peer_id=peer.pk, url=f"{base.rstrip('/')}/v1/messages", raw=raw)


def _signed(peer: Peer, intent: Intent, members: dict[str, Any]) -> bytes:
    value = new_envelope(
        own_names.own_signer(own_names.own_identity().did),
        to=[peer.did],
        intent=intent,
        content=msgspec.json.encode(members).decode(),
        now=timezone.now(),
        type_=GUESTS_TYPE,
    )
    return msgspec.json.encode(value)


def _largest(peer: Peer) -> int:
    """Return the bytes of the largest envelope that a peer accepts, by its manifest.

    The manifest limits the body, which is smaller than its envelope.
    """
    kib = peer.manifest.get("limits", {}).get("max_body_kb")
    return ENVELOPE_BYTES if kib is None else min(ENVELOPE_BYTES, kib * KIB)


def _text_in(members: dict[str, Any]) -> tuple[dict[str, Any], str] | None:
    """Return the member with the text of a message, and its name; None if there is none."""
    event = members.get("event", {})
    for holder, name in ((members, "text"), (event, "content"), (event.get("message"), "content")):
        if holder is not None and name in holder:
            return holder, name
    return None


def _size(text: str) -> int:
    """Return the bytes of a text in an envelope: JSON in a string of JSON."""
    return len(msgspec.json.encode(msgspec.json.encode(text).decode()))
