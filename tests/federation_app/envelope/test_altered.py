"""Every member of an envelope altered, removed, doubled and of another type; bad signatures."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given, settings
from hypothesis import strategies as st

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.members.reading import envelope_of, read_envelope
from federation_app.envelope.signatures.canonical import without_signature
from federation_app.envelope.signatures.jws import sign_compact
from federation_app.envelope.signatures.keys import EnvelopeKey, encode64, key_of_jwk
from federation_app.envelope.signatures.signature import SIGNATURE_TYPE, signature_payload, signed
from tests.federation_app.envelope.vectors import CLIENT, WORKER, private_keys, vector, verified

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.any_database

FULL = vector("02-inform-es256-full")["envelope"]
MINIMAL = vector("01-ask-eddsa-minimal")["envelope"]
REFUSED = {EnvelopeCode.MALFORMED, EnvelopeCode.UNAUTHENTICATED}
Path = tuple[str | int, ...]


def places(value: Any, path: Path = ()) -> list[Path]:
    """Return the paths of all members and elements of a value."""
    children: list[tuple[str | int, Any]] = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    )
    return [
        place for key, child in children for place in [(*path, key), *places(child, (*path, key))]
    ]


def changed(value: Any, path: Path, change: Callable[[Any, str | int], Any]) -> Any:
    """Return a copy in which the holder of a place was changed."""
    copy = json.loads(json.dumps(value))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    change(holder, path[-1])
    return copy


def setting(other: Any) -> Callable[[Any, str | int], None]:
    """Return a change that puts another value in a place."""

    def change(holder: Any, key: str | int) -> None:
        holder[key] = other

    return change


def refusal_of(value: Any) -> EnvelopeCode:
    """Return the code with which an envelope is refused."""
    with pytest.raises(EnvelopeError) as refused:
        verified(read_envelope(value) if isinstance(value, str) else value)
    return refused.value.code


@pytest.mark.parametrize("path", places(FULL), ids=lambda path: ".".join(map(str, path)))
def test_a_member_that_is_removed_or_of_another_type_is_refused(path: Path) -> None:
    assert refusal_of(changed(FULL, path, lambda holder, key: holder.pop(key))) in REFUSED
    others: list[Any] = [None, True, 7, -1, 1.5, "", "x", [], {}, [[]], {"a": None}]
    for other in others:
        altered = changed(FULL, path, setting(other))
        if altered != FULL:
            assert refusal_of(altered) in REFUSED


def doubling(value: Any, path: Path) -> str:
    """Return a value as JSON in which the member at a path occurs twice."""
    if not path:
        return json.dumps(value)
    if isinstance(value, list):
        items = [doubling(item, path[1:] if n == path[0] else ()) for n, item in enumerate(value)]
        return f"[{','.join(items)}]"
    members: list[str] = []
    for key, child in value.items():
        is_on_path = key == path[0]
        member = f"{json.dumps(key)}:{doubling(child, path[1:] if is_on_path else ())}"
        members += [member] * (2 if is_on_path and len(path) == 1 else 1)
    return f"{{{','.join(members)}}}"


MEMBERS = [path for path in places(FULL) if isinstance(path[-1], str)]


@pytest.mark.parametrize("path", MEMBERS, ids=lambda path: ".".join(map(str, path)))
def test_a_member_that_is_doubled_is_malformed(path: Path) -> None:
    assert refusal_of(doubling(FULL, path)) is EnvelopeCode.MALFORMED


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_an_envelope_with_one_other_byte_is_refused(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from([FULL, MINIMAL]))
    raw = bytearray(json.dumps(source, ensure_ascii=False, separators=(",", ":")).encode())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))

    with pytest.raises(EnvelopeError) as refused:
        verified(read_envelope(bytes(raw)))

    assert refused.value.code in {*REFUSED, EnvelopeCode.TOO_LARGE}


@settings(max_examples=150, deadline=None)
@given(sig=st.text(alphabet="ABab01-_.=+/ \u00e9", max_size=120))
def test_a_text_that_is_not_a_signature_is_refused(sig: str) -> None:
    assert refusal_of({**MINIMAL, "sig": sig}) in REFUSED


def header(**members: Any) -> str:
    """Return a header in base64url."""
    return encode64(json.dumps(members, separators=(",", ":")).encode())


def with_header(members: dict[str, Any], sign: Callable[[bytes], bytes] | None = None) -> Any:
    """Return the minimal envelope, signed rightly under a header of these members."""
    signer = private_keys()[CLIENT]
    sha256 = envelope_of(MINIMAL).sha256
    protected, payload = header(**members), encode64(signature_payload(sha256))
    signature = (sign or signer.sign)(f"{protected}.{payload}".encode())
    return {**MINIMAL, "sig": f"{protected}..{encode64(signature)}"}


KID = "did:web:client.example#ed25519-1"


def test_the_headers_that_are_good() -> None:
    for members in (
        {"alg": "EdDSA"},
        {"alg": "Ed25519", "kid": KID},
        {"alg": "EdDSA", "kid": KID, "typ": "application/UAMP+jws"},
    ):
        verified(with_header(members))


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"kid": KID},
        {"alg": "none"},
        {"alg": "RS256", "kid": KID},
        {"alg": "ES256", "kid": KID},
        {"alg": "ES384", "kid": KID},
        {"alg": "eddsa", "kid": KID},
        {"alg": "Ed448", "kid": KID},
        {"alg": ["EdDSA"], "kid": KID},
        {"alg": "EdDSA", "kid": ""},
        {"alg": "EdDSA", "kid": None},
        {"alg": "EdDSA", "kid": f"{WORKER}#p256-1"},
        {"alg": "EdDSA", "kid": "did:web:client.example#ed25519-2"},
        {"alg": "EdDSA", "kid": f"{KID}{'1' * 700}"},
        {"alg": "EdDSA", "kid": KID, "typ": "manifest+jws"},
        {"alg": "EdDSA", "kid": KID, "typ": "JWT"},
        {"alg": "EdDSA", "kid": KID, "b64": False, "crit": ["b64"]},
        {"alg": "EdDSA", "kid": KID, "b64": True},
        {"alg": "EdDSA", "kid": KID, "jku": "https://evil.example/keys"},
        {"alg": "EdDSA", "kid": KID, "x5c": ["AAAA"]},
        {"alg": "EdDSA", "kid": KID, "cty": "json"},
        {"alg": "EdDSA", "kid": KID, "iat": 1},
    ],
    ids=json.dumps,
)
def test_another_header_is_refused(members: dict[str, Any]) -> None:
    assert refusal_of(with_header(members)) is EnvelopeCode.UNAUTHENTICATED


def test_signatures_of_other_keys_lengths_and_encodings_are_refused() -> None:
    good, strange = private_keys(), ed25519.Ed25519PrivateKey.generate()
    p256 = good[WORKER].key
    assert isinstance(p256, ec.EllipticCurvePrivateKey)
    rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    right = good[CLIENT].sign
    for sign in (
        strange.sign,
        lambda data: rsa_key.sign(data, PKCS1v15(), SHA256()),
        lambda data: right(data)[:-1],
        lambda data: right(data) + b"\0",
        lambda _: b"",
        lambda _: bytes(64),
        lambda data: right(b"x" + data),
    ):
        code = refusal_of(with_header({"alg": "EdDSA", "kid": KID}, sign))
        assert code is EnvelopeCode.UNAUTHENTICATED
    for sign in (
        # DER, which JWS does not use (RFC 7518 §3.4).
        lambda data: p256.sign(data, ec.ECDSA(SHA256())),
        lambda data: ec.generate_private_key(ec.SECP256R1()).sign(data, ec.ECDSA(SHA256())),
        lambda _: bytes(64),
        lambda _: b"\xff" * 64,
    ):
        protected = header(alg="ES256", kid=f"{WORKER}#p256-1", typ=SIGNATURE_TYPE)
        payload = encode64(signature_payload(envelope_of(FULL).sha256))
        signature = encode64(sign(f"{protected}.{payload}".encode()))
        code = refusal_of({**FULL, "sig": f"{protected}..{signature}"})
        assert code is EnvelopeCode.UNAUTHENTICATED


def test_a_signature_has_one_spelling() -> None:
    assert MINIMAL["sig"].endswith("A")
    # The last character has four bits that belong to no byte.
    assert refusal_of({**MINIMAL, "sig": f"{MINIMAL['sig'][:-1]}B"}) in REFUSED


def test_the_signature_of_another_envelope_or_document_is_refused() -> None:
    signer = private_keys()[CLIENT]
    other = signed({**MINIMAL, "intent": "cancel"}, signer)
    assert refusal_of({**MINIMAL, "sig": other["sig"]}) is EnvelopeCode.UNAUTHENTICATED
    payload = signature_payload(envelope_of(MINIMAL).sha256)
    manifest = sign_compact(payload, signer, type_="manifest+jws", detached=True)
    assert refusal_of({**MINIMAL, "sig": manifest}) is EnvelopeCode.UNAUTHENTICATED
    forged = signed({**without_signature(MINIMAL), "from": WORKER}, signer)
    with pytest.raises(EnvelopeError) as refused:
        verified(forged)
    assert refused.value.code is EnvelopeCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    "jwk",
    [
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {"kty": "oct", "k": "AAAA"},
        {"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"},
        {"kty": "OKP", "crv": "X25519", "x": encode64(bytes(32))},
        {"kty": "OKP", "crv": "Ed25519", "x": encode64(bytes(31))},
        {"kty": "OKP", "crv": "Ed25519", "x": base64.b64encode(bytes(range(32))).decode()},
        {"kty": "EC", "crv": "P-256", "x": encode64(bytes(32)), "y": encode64(bytes(32))},
        {"kty": "OKP", "crv": "Ed25519", "x": encode64(bytes(32)), "use": "enc"},
        {"kty": "OKP", "crv": "Ed25519", "x": encode64(bytes(32)), "alg": "ES256"},
        {"kty": "OKP", "crv": "Ed25519", "x": encode64(bytes(32)), "d": encode64(bytes(32))},
        {"kty": "OKP", "crv": "Ed25519", "x": encode64(bytes(32)), "key_ops": ["sign"]},
    ],
    ids=lambda jwk: f"{jwk['kty']}-{len(jwk)}",
)
def test_a_key_of_another_kind_is_refused(jwk: dict[str, Any]) -> None:
    with pytest.raises(EnvelopeError):
        key_of_jwk(jwk, kid=KID)


def test_a_key_and_its_jwk_are_the_same() -> None:
    for key in private_keys().values():
        assert isinstance(key, EnvelopeKey)
        public = key.public()
        again = key_of_jwk(public.jwk(), kid=public.kid)
        assert again.verifies(key.sign(b"x"), b"x")
        assert not again.verifies(key.sign(b"x"), b"y")
