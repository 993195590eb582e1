"""Signed agent cards (A2A 1.0 §8.4): a detached JWS over the canonical form of a card.

The canonical form is RFC 8785 of the card as ProtoJSON writes it: without its signatures, and
without what is empty. A merged card has the signature of its 1.0 members, since clients of 1.0 read
no others.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import Any, Final

from django.conf import settings

from sessions_app import database
from signing_app.owner_keys import CARDS, signing_key
from uamp.signatures import canonical

TYPE: Final = "JOSE"
"""The `typ` of the header, which A2A fixes; the keys of cards sign nothing else."""

KEPT_MAX: Final = 1000
"""How many signatures a process keeps: ES256 would give a card another ETag each time."""

_signatures: Final[OrderedDict[tuple[str, bytes], dict[str, str]]] = OrderedDict()
_lock: Final = threading.Lock()


async def signed_card(card: dict[str, Any]) -> dict[str, Any]:
    """Return a card of A2A 1.0 with the server's signature."""
    return await database.run(_signed, card)


def _signed(card: dict[str, Any]) -> dict[str, Any]:
    key = signing_key(CARDS)
    payload = canonical_card(card)
    name = (key.kid, hashlib.sha256(payload).digest())
    with _lock:
        signature = _signatures.get(name)
    if signature is None:
        jku = f"{settings.UAMP_ISSUER}/.well-known/jwks.json"
        protected, _, value = key.sign_bytes(payload, typ=TYPE, jku=jku).split(".")
        signature = {"protected": protected, "signature": value}
        with _lock:
            # Another thread may have signed the card in the meantime.
            signature = _signatures.setdefault(name, signature)
            while len(_signatures) > KEPT_MAX:
                _signatures.popitem(last=False)
    return {**card, "signatures": [signature]}


def canonical_card(card: dict[str, Any]) -> bytes:
    """Return the bytes of a card of A2A 1.0 that are signed."""
    plain = {name: value for name, value in card.items() if name != "signatures"}
    return canonical(_without_empty(plain, is_message=True))


def _without_empty(value: Any, *, is_message: bool) -> Any:
    """Return a value without empty members; None if nothing is left of it.

    A message of Protocol Buffers has no members that are false or 0 either; free-form `params` do.
    """
    if isinstance(value, dict):
        pairs = (
            (name, _without_empty(member, is_message=is_message and name != "params"))
            for name, member in value.items()
        )
        return {name: member for name, member in pairs if member is not None} or None
    if isinstance(value, list):
        members = (_without_empty(member, is_message=is_message) for member in value)
        return [member for member in members if member is not None] or None
    if value == "" or (is_message and not value):
        return None
    return value
