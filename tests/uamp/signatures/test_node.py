"""Signed documents verify in another language; each verifier refuses forged ones.

The forgeries are one table: Python, the module of the pages and the crypto of node read it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, SECP521R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as on_curve
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from signing_app.keys import ALGORITHMS, new_key
from tests.uamp.signatures.node_crypto import BROWSER, verified_by_node
from uamp.logs.checkpoint import LogHead, sign_checkpoint
from uamp.signatures import TYPE, check_answer, output_of, request_of, sha256_of, text_sha256

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.filterwarnings("ignore:The RSA key"),
]

KEYS = {algorithm: new_key(algorithm) for algorithm in ALGORITHMS}
TEXT = "Um zw\u00f6lf \U0001f55b"
ITEMS: list[dict[str, Any]] = [
    {"type": "text", "text": TEXT},
    {"type": "audio", "duration_ms": 1500.25},
]
QUESTION: dict[str, Any] = {
    "id": "msg_q",
    "role": "user",
    "content": "Wann?",
    "content_items": [],
    "salt": "qXq1Vd0vN5x2bV9Jm3Yw7A",
}
ANSWER: dict[str, Any] = {
    "id": "msg_a",
    "role": "assistant",
    "response_id": "resp_1",
    "content": TEXT,
    "content_items": ITEMS,
}
CLAIMS: dict[str, Any] = {
    "iss": "https://chat.example.org",
    "sub": "agent_1",
    "agent": "clock",
    "chat_id": "chat_1",
    "jti": "resp_1",
    "iat": 1_000,
    "response_hash": text_sha256(TEXT),
    "output_hash": sha256_of(output_of(TEXT, ITEMS)),
    "request_hash": sha256_of(request_of(QUESTION)),
    "message_id": "msg_a",
    "request_id": "msg_q",
}
OWNED = [{**key.jwk, "uamp_owner": "agent:agent_1"} for key in KEYS.values()]


def document(signature: Any, keys: list[dict[str, Any]], **members: Any) -> dict[str, Any]:
    return {
        "kind": "answer",
        "message": {**ANSWER, **members, "signature": signature},
        "question": QUESTION,
        "keys": keys,
        "chat_id": "chat_1",
    }


def part(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def signing_input(**header: Any) -> str:
    members = {name: value for name, value in header.items() if value is not None}
    return f"{part(members)}.{part(CLAIMS)}"


def confused() -> Iterator[tuple[str, Any, list[dict[str, Any]]]]:
    """Yield signatures with other algorithms: why, the signature, the keys."""
    for alg in ("none", "None", "NONE", "nOnE"):
        first = signing_input(alg=alg, kid=KEYS["RS256"].kid, typ=TYPE)
        for tail in ("", part(b"\0"), KEYS["RS256"].sign(CLAIMS, typ=TYPE).rpartition(".")[2]):
            yield f"{alg} with {len(tail)} characters", f"{first}.{tail}", OWNED
    for name, key in KEYS.items():
        public = key.private.public_key()
        pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        for alg, digest in (("HS256", "sha256"), ("HS384", "sha384"), ("HS512", "sha512")):
            first = signing_input(alg=alg, kid=key.kid, typ=TYPE)
            for secret in (pem, pem.strip(), der, json.dumps(key.jwk).encode(), b""):
                mac = hmac.digest(secret, first.encode(), digest)
                yield f"{alg} by the public key of {name}", f"{first}.{part(mac)}", OWNED
                # The key says that it is one of HMAC.
                hmac_keys = [{**key.jwk, "alg": alg}]
                yield f"{alg} and a key of {name} for it", f"{first}.{part(mac)}", hmac_keys
    shared = {"kty": "oct", "k": part(b"0" * 32), "kid": "s"}
    for alg in ("HS256", *ALGORITHMS):
        first = signing_input(alg=alg, kid="s", typ=TYPE)
        mac = hmac.digest(b"0" * 32, first.encode(), "sha256")
        yield f"a secret as a key of {alg}", f"{first}.{part(mac)}", [{**shared, "alg": alg}]
    for alg in ("RS384", "RS512", "PS256", "PS384"):
        signature = jwt.encode(
            CLAIMS,
            KEYS["RS256"].private,
            algorithm=alg,
            headers={"kid": KEYS["RS256"].kid, "typ": TYPE},
        )
        yield alg, signature, OWNED
        yield f"{alg} and its key", signature, [{**KEYS["RS256"].jwk, "alg": alg}]
    first = signing_input(alg="RS256", kid=KEYS["RS256"].kid, typ=TYPE)
    rsa_key = KEYS["RS256"].private
    assert isinstance(rsa_key, rsa.RSAPrivateKey)
    pss = rsa_key.sign(first.encode(), padding.PSS(padding.MGF1(SHA256()), 32), SHA256())
    yield "PSS that says RS256", f"{first}.{part(pss)}", OWNED
    for algorithm, other in (("RS256", "EdDSA"), ("EdDSA", "ES256"), ("ES256", "RS256")):
        first = signing_input(alg=algorithm, kid=KEYS[other].kid, typ=TYPE)
        tail = KEYS[algorithm].sign(CLAIMS, typ=TYPE).rpartition(".")[2]
        yield f"{algorithm} with the kid of {other}", f"{first}.{tail}", OWNED


def other_keys() -> Iterator[tuple[str, Any, list[dict[str, Any]]]]:
    """Yield signatures of keys that do not fit."""
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 it has to be weak
    jwk = {**RSAAlgorithm.to_jwk(weak.public_key(), as_dict=True), "kid": "w", "alg": "RS256"}
    headers = {"kid": "w", "typ": TYPE}
    yield "RSA of 1024 bits", jwt.encode(CLAIMS, weak, algorithm="RS256", headers=headers), [jwk]
    for curve, alg in ((SECP384R1(), "ES384"), (SECP521R1(), "ES512")):
        large = on_curve(curve)
        jwk = {**ECAlgorithm.to_jwk(large.public_key(), as_dict=True), "kid": "w"}
        signature = jwt.encode(CLAIMS, large, algorithm=alg, headers=headers)
        yield alg, signature, [{**jwk, "alg": alg}]
        yield f"a key of {alg} for ES256", signature, [{**jwk, "alg": "ES256"}]
    for name, key in KEYS.items():
        good = key.sign(CLAIMS, typ=TYPE)
        for why, wrong in (
            ("of another algorithm", {"alg": "PS256"}),
            ("without an algorithm", {"alg": None}),
            ("for encryption", {"use": "enc"}),
            ("of another type", {"kty": "oct"}),
            ("with a private half", {"d": part(b"\1" * 32)}),
            ("of another agent", {"uamp_owner": "agent:agent_2"}),
            ("of tokens", {"uamp_owner": "server"}),
        ):
            yield f"a key of {name} {why}", good, [{**key.jwk, **wrong}]
        for member in {"n", "e", "x", "y", "kty"} & key.jwk.keys():
            incomplete_key = {field: value for field, value in key.jwk.items() if field != member}
            yield f"a key of {name} without {member}", good, [incomplete_key]
            yield f"a key of {name} with another {member}", good, [{**key.jwk, member: "AQAC"}]
        another = new_key(name)
        renamed = {**another.jwk, "kid": key.kid}
        yield f"another key of {name} under the same kid", good, [renamed]
        yield f"another key of {name} before the right one", good, [renamed, key.jwk]


def encodings() -> Iterator[tuple[str, Any, list[dict[str, Any]]]]:
    """Yield signatures of other encodings and lengths."""
    for name, key in KEYS.items():
        good = key.sign(CLAIMS, typ=TYPE)
        head, body, tail = good.split(".")
        raw = base64.urlsafe_b64decode(tail + "==")
        zeros, ones = b"\0" * len(raw), b"\xff" * len(raw)
        for why, signature in (
            ("padded", f"{good}="),
            ("padded everywhere", f"{head}==.{body}==.{tail}=="),
            ("with a line feed", f"{good}\n"),
            ("with a line feed before it", f"\n{good}"),
            ("with spaces", f"{head} .{body}.{tail}"),
            ("with NUL", f"{head}.{body}.{tail}\0"),
            ("in base64", f"{head}.{body}.{base64.b64encode(raw + ones[:3]).decode()}"),
            ("in hex", f"{head}.{body}.{raw.hex()}"),
            ("twice encoded", f"{head}.{body}.{part(tail.encode())}"),
            ("with other last bits", f"{head}.{body}.{tail[:-1]}{chr(ord(tail[-1]) + 1)}"),
            ("in full-width letters", good.translate({ord("A"): "\uff21", ord("a"): "\uff41"})),
            ("with another dot", f"{head}\u2024{body}\u2024{tail}"),
            ("detached", f"{head}..{tail}"),
            ("of two parts", f"{head}.{body}"),
            ("of four parts", f"{good}.{tail}"),
            ("of five parts", f"{good}.{tail}.{tail}"),
            ("as JSON", json.dumps({"protected": head, "payload": body, "signature": tail})),
            ("as an object", {"protected": head, "payload": body, "signature": tail}),
            ("as an array", [good]),
            ("as a number", 7),
            ("of 9,000 characters", f"{head}.{body}.{tail}{'A' * 9_000}"),
        ):
            yield f"{name} {why}", signature, OWNED
        for length in (0, 1, len(raw) - 1, len(raw) + 1, 2 * len(raw)):
            yield f"{name} of {length} bytes", f"{head}.{body}.{part((raw + raw)[:length])}", OWNED
        yield f"{name} of zeros", f"{head}.{body}.{part(zeros)}", OWNED
        yield f"{name} of ones", f"{head}.{body}.{part(ones)}", OWNED
        yield f"{name} reversed", f"{head}.{body}.{part(raw[::-1])}", OWNED
        for typ in ("JWT", "at+jwt", "receipt+jwt", "uamp+jws", "Response+JWT", "response+jwt "):
            yield f"{name} as {typ}", key.sign(CLAIMS, typ=typ), OWNED
        for more in ({"crit": ["exp"]}, {"b64": False}, {"jwk": key.jwk}, {"jku": "https://x"}):
            headers = {"kid": key.kid, "typ": TYPE, **more}
            signature = jwt.encode(CLAIMS, key.private, algorithm=name, headers=headers)
            yield f"{name} with {next(iter(more))}", signature, OWNED
    head, body, tail = KEYS["ES256"].sign(CLAIMS, typ=TYPE).split(".")
    raw = base64.urlsafe_b64decode(tail + "==")
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    yield "ES256 as DER", f"{head}.{body}.{part(der)}", OWNED


def test_no_forgery_is_verified() -> None:
    """By Python, by the module of the pages, and by the crypto of node."""
    forgeries = [*confused(), *other_keys(), *encodings()]
    documents = [document(signature, keys) for _, signature, keys in forgeries]
    assert len(documents) > 200
    good = [document(key.sign(CLAIMS, typ=TYPE), OWNED) for key in KEYS.values()]
    by_python = [
        check_answer(document["message"], document["keys"], chat_id="chat_1").state
        for document in (*documents, *good)
    ]
    by_pages = verified_by_node([*documents, *good], BROWSER)
    by_node = verified_by_node([*documents, *good])
    assert by_python[-3:] == by_pages[-3:] == ["valid"] * 3
    assert by_node[-3:] == [True] * 3
    bad = {"changed", "unknown_key"}
    for (why, _, _), python, pages, node in zip(
        forgeries, by_python[:-3], by_pages[:-3], by_node[:-3], strict=True
    ):
        assert python in bad, (why, python)
        # A browser of today knows all three algorithms.
        assert pages in bad, (why, pages)
        assert node is False, why


def test_a_changed_answer_is_not_verified_by_node() -> None:
    signature = KEYS["EdDSA"].sign(CLAIMS, typ=TYPE)
    changes: list[dict[str, Any]] = [
        {"content": TEXT.replace("z", "Z")},
        {"content": TEXT.replace("\u00f6", "o\u0308")},
        {"content_items": [ITEMS[0]]},
        {"content_items": [ITEMS[0], {**ITEMS[1], "duration_ms": 1500.2500000000002}]},
        {"id": "msg_b"},
        {"response_id": "resp_2"},
    ]
    documents = [document(signature, OWNED, **change) for change in changes]
    question = {**QUESTION, "content": "Wann?\u200b"}
    documents += [{**document(signature, OWNED), "question": question}]
    assert verified_by_node(documents) == [False] * (len(changes) + 1)


def test_a_signed_head_is_verified_by_node() -> None:
    key = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
    public = key.public_key().public_bytes_raw()
    head = LogHead(
        server="chat.example", chat_id="chat_1", seq=7, chain_hash=hashlib.sha256().digest(), at=1
    )
    note = sign_checkpoint(head, public_key=public, sign=key.sign)
    keys = [{"kty": "OKP", "crv": "Ed25519", "x": part(public)}]
    notes = [note, note.replace("\n7\n", "\n8\n"), note.replace("time 1", "time 2")]
    documents = [{"kind": "head", "note": note, "keys": keys} for note in notes]
    documents.append({"kind": "head", "note": note, "keys": [KEYS["EdDSA"].jwk]})
    assert verified_by_node(documents) == [True, False, False, False]


def test_envelopes_are_verified_by_node(pytestconfig: pytest.Config) -> None:
    folder: Path = pytestconfig.rootpath / "tests" / "vectors" / "envelope"

    def read(name: str) -> Any:
        return json.loads((folder / f"{name}.json").read_bytes())

    keys = [
        {name: value for name, value in jwk.items() if name != "d"} for jwk in read("keys")["keys"]
    ]
    names = ["01-ask-eddsa-minimal", "02-inform-es256-full", "03-progress-ack-eddsa-jcs"]
    names.append("06-attached-form-no-kid")
    good = [read(name)["envelope"] for name in names]
    changed = [{**envelope, "intent": f"{envelope['intent']} "} for envelope in good]
    documents = [
        {"kind": "envelope", "envelope": envelope, "keys": keys} for envelope in (*good, *changed)
    ]
    assert verified_by_node(documents) == [True] * len(good) + [False] * len(good)
    # Those that are refused for their signature; the others have a good one.
    refused = [case for case in read("05-negative") if case["expect_code"] == "4.01"]
    documents = [
        {"kind": "envelope", "envelope": case["envelope"], "keys": keys} for case in refused
    ]
    verdicts = verified_by_node(documents)
    assert [case["why"] for case, is_good in zip(refused, verdicts, strict=True) if is_good] == []
