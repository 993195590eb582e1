"""The test vectors of the signed envelope: keys that are public by construction, and envelopes."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from federation_app.envelope.members.reading import Envelope, envelope_of
from federation_app.envelope.members.verifying import verify_envelope
from federation_app.envelope.names.identity import keys_of_document
from federation_app.envelope.signatures.keys import EnvelopeKey, VerificationKey, decode64

FOLDER = Path(__file__).resolve().parents[2] / "vectors" / "envelope"
CLIENT = "did:web:client.example"
WORKER = "did:web:worker.example"
SIGNED = ("01-ask-eddsa-minimal", "02-inform-es256-full", "03-progress-ack-eddsa-jcs")


@cache
def vector(name: str) -> Any:
    """Return a file of vectors."""
    return json.loads((FOLDER / f"{name}.json").read_bytes())


def private_keys() -> dict[str, EnvelopeKey]:
    """Return the private keys by the DID of their owner."""
    keys = {}
    for jwk in vector("keys")["keys"]:
        secret = decode64(jwk["d"])
        key: Any = (
            Ed25519PrivateKey.from_private_bytes(secret)
            if jwk["kty"] == "OKP"
            else derive_private_key(int.from_bytes(secret), SECP256R1())
        )
        keys[jwk["kid"].partition("#")[0]] = EnvelopeKey(jwk["kid"], key)
    return keys


def keys_of(did: str) -> list[VerificationKey]:
    """Return the public keys of a DID, from its document; none of an unknown one."""
    document = vector("keys")["did_documents"].get(did)
    return [] if document is None else keys_of_document(document, did)


def verified(value: Any, *, accepts_naive: bool = True) -> tuple[Envelope, VerificationKey]:
    """Return an envelope that a receiver of the vectors accepts a moment after it was signed."""
    envelope = value if isinstance(value, Envelope) else envelope_of(value)
    key = verify_envelope(
        envelope,
        keys=keys_of(envelope.sender),
        receivers={CLIENT if envelope.sender == WORKER else WORKER},
        now=envelope.ts + timedelta(seconds=5),
        accepts_naive=accepts_naive,
    )
    return envelope, key
