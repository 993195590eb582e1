"""The test vectors, read and written: each is accepted, made anew, or refused with its code."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import jwt
import pytest

from federation_app.envelope import limits
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.members.reading import envelope_of, plain_id, read_envelope
from federation_app.envelope.members.verifying import verify_envelope
from federation_app.envelope.names.identity import read_identity
from federation_app.envelope.names.manifests import (
    MANIFEST_TYPE,
    read_manifest,
    signed_document,
    signer_of_document,
)
from federation_app.envelope.signatures import canonical
from federation_app.envelope.signatures.jws import protected_header
from federation_app.envelope.signatures.signature import SIGNATURE_TYPE, signature_payload, signed
from federation_app.envelope.streams import framing
from tests.federation_app.envelope.vectors import (
    CLIENT,
    SIGNED,
    WORKER,
    keys_of,
    private_keys,
    vector,
    verified,
)

pytestmark = pytest.mark.any_database


@pytest.mark.parametrize("name", SIGNED)
def test_a_signed_envelope_is_verified_as_its_vector_says(name: str) -> None:
    case = vector(name)
    (record,) = framing.read_records(bytes.fromhex(case["ws_binary_frame_hex"]))
    envelope, key = verified(read_envelope(record), accepts_naive=False)

    content = canonical.without_signature(envelope.value)
    assert canonical.canonical(content).hex() == case["canonical_hex"]
    assert envelope.sha256 == case["sha256"]
    assert signature_payload(envelope.sha256).decode() == case["jws_payload"]
    assert (key.kid, key.algorithm) == (case["kid"], case["alg"])
    assert (canonical.naive(content) == canonical.canonical(content)) is case["naive_equals_jcs"]


@pytest.mark.parametrize("name", SIGNED)
def test_an_envelope_is_signed_as_its_vector_says(name: str) -> None:
    case = vector(name)
    signer = private_keys()[case["envelope"]["from"]]

    envelope = signed(canonical.without_signature(case["envelope"]), signer)

    assert protected_header(signer, SIGNATURE_TYPE) == case["jws_protected_b64u"]
    if signer.algorithm == "EdDSA":
        # ES256 has another signature each time.
        assert envelope["sig"] == case["sig"]
    header, _, signature = envelope["sig"].split(".")
    compact_jws = f"{header}.{case['jws_payload_b64u']}.{signature}"
    key = jwt.PyJWK(case["public_jwk"])
    payload = jwt.PyJWS().decode(compact_jws, key, algorithms=[signer.algorithm])
    assert payload.decode() == case["jws_payload"]
    assert framing.read_records(framing.framed(json.dumps(envelope).encode()))


def test_the_naive_form_is_accepted_only_where_it_is_allowed() -> None:
    case = vector("03-progress-ack-eddsa-jcs")
    signer = private_keys()[CLIENT]
    content = canonical.without_signature(case["envelope"])
    header = protected_header(signer, SIGNATURE_TYPE)
    payload = signature_payload(case["naive_python_json_dumps_sha256"])
    from federation_app.envelope.signatures.keys import encode64  # noqa: PLC0415 beside its only use

    signature = encode64(signer.sign(f"{header}.{encode64(payload)}".encode()))
    value = {**content, "sig": f"{header}..{signature}"}

    assert verified(value)[0].sha256 == case["sha256"]
    with pytest.raises(EnvelopeError) as refused:
        verified(value, accepts_naive=False)
    assert refused.value.code is EnvelopeCode.UNAUTHENTICATED


def test_the_attached_form_without_a_key_id_is_accepted() -> None:
    envelope, key = verified(vector("06-attached-form-no-kid")["envelope"])

    assert envelope.sha256 == vector("06-attached-form-no-kid")["sha256"]
    assert key.kid == "did:web:client.example#ed25519-1"


@pytest.mark.parametrize("case", vector("05-negative"), ids=lambda case: case["why"][:40])
def test_a_bad_envelope_is_refused_with_the_code_of_its_vector(case: dict[str, Any]) -> None:
    raw = case["raw"] if "raw" in case else json.dumps(case["envelope"])

    with pytest.raises(EnvelopeError) as refused:
        verified(read_envelope(raw))

    assert refused.value.code == case["expect_code"]


def test_a_manifest_is_verified_and_signed() -> None:
    case = vector("04-manifest-es256")
    assert signer_of_document(case["jws_compact"]) == WORKER
    manifest = read_manifest(case["jws_compact"], did=WORKER, keys=keys_of(WORKER))
    document = signed_document(manifest, private_keys()[WORKER], type_=MANIFEST_TYPE)

    assert document.rpartition(".")[0] == case["jws_compact"].rpartition(".")[0]
    assert read_manifest(document, did=WORKER, keys=keys_of(WORKER)) == manifest


def test_the_documents_of_names_are_where_the_vectors_say() -> None:
    for did, url in vector("keys")["did_web_urls"].items():
        assert read_identity(did).document_url == url


def test_an_id_is_known_in_each_of_its_spellings() -> None:
    value = vector(SIGNED[0])["envelope"]
    bare = value["id"].removeprefix("urn:uuid:").upper()

    assert envelope_of({**value, "id": bare}).id == envelope_of(value).id == plain_id(bare)


@pytest.mark.parametrize(("seconds", "accepted"), [(300, True), (301, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_clock_may_differ_by_five_minutes(seconds: int, sign: int, *, accepted: bool) -> None:
    envelope = envelope_of(vector(SIGNED[0])["envelope"])

    def verify() -> None:
        verify_envelope(
            envelope,
            keys=keys_of(CLIENT),
            receivers={WORKER},
            now=envelope.ts + timedelta(seconds=sign * seconds),
        )

    if accepted:
        verify()
        return
    with pytest.raises(EnvelopeError) as refused:
        verify()
    assert (refused.value.code, refused.value.detail) == (EnvelopeCode.UNAUTHENTICATED, "ts")


def test_an_envelope_has_at_most_its_bytes() -> None:
    value = {**vector(SIGNED[0])["envelope"], "ext": {"x": "y" * limits.EXTENSION_BYTES}}
    with pytest.raises(EnvelopeError) as refused:
        envelope_of(value)
    assert refused.value.code is EnvelopeCode.TOO_LARGE
    with pytest.raises(EnvelopeError) as refused:
        read_envelope(b"[" + b" " * limits.ENVELOPE_BYTES)
    assert refused.value.code is EnvelopeCode.TOO_LARGE
