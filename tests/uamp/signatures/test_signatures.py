"""A signature is opened by its key alone, and says of a message whether it is as it was signed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import unicodedata
from typing import Any

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as on_curve
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from signing_app.keys import ALGORITHMS, SigningKey, new_key
from uamp.signatures import (
    TYPE,
    AnswerClaims,
    BadSignature,
    SignatureState,
    UnknownKey,
    canonical,
    check_answer,
    open_signature,
    output_of,
    request_of,
    sha256_of,
    text_sha256,
    with_question,
)

pytestmark = pytest.mark.any_database

KEYS = {algorithm: new_key(algorithm) for algorithm in ALGORITHMS}
QUESTION: dict[str, Any] = {
    "id": "msg_q",
    "role": "user",
    "content": "Wie spät?",
    "content_items": [],
}
ANSWER: dict[str, Any] = {
    "id": "msg_a",
    "response_id": "resp_1",
    "role": "assistant",
    "content": "Halb drei. 🕝",
    "content_items": [],
    "deleted_at": None,
}
PICTURE: list[dict[str, Any]] = [
    {"type": "text", "text": "Halb drei. 🕝"},
    {"type": "image", "image": {"url": "/api/content/1"}},
]


def claims(**other: Any) -> dict[str, Any]:
    defaults = {
        "iss": "https://chat.example.org",
        "sub": "agent_1",
        "agent": "clock",
        "chat_id": "chat_1",
        "jti": "resp_1",
        "iat": 1_000,
        "response_hash": text_sha256(str(ANSWER["content"])),
        "output_hash": sha256_of(output_of(str(ANSWER["content"]), [])),
        "request_hash": sha256_of(request_of(QUESTION)),
        "message_id": "msg_a",
        "request_id": "msg_q",
        "price": {"amount": "0.02", "currency": "USD", "transfer_id": "tr_1"},
    }
    return {**defaults, **other}


def signed(key: SigningKey = KEYS["EdDSA"], typ: str = TYPE, **other: Any) -> str:
    return key.sign(claims(**other), typ=typ)


def published(**times: int) -> list[dict[str, Any]]:
    return [{**key.jwk, **times} for key in KEYS.values()]


def part(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def opened(signature: Any, keys: list[dict[str, Any]] | None = None) -> AnswerClaims:
    answer_claims, _ = open_signature(
        signature, published() if keys is None else keys, typ=TYPE, claims=AnswerClaims
    )
    return answer_claims


def state_of(message: dict[str, Any], **how: Any) -> str:
    return check_answer({"signature": signed(), **message}, published(), **how).state


# --- The canonical form ---


def test_the_question_of_an_answer_may_come_later() -> None:
    # One whose claims cannot be read names none.
    unreadable = check_answer({"id": "msg_2", "signature": "a.b.c"}, published())
    assert with_question(unreadable, {"id": "msg_1", "content": "hello"}) == unreadable


def test_the_canonical_form_is_that_of_rfc_8785() -> None:
    value = {"é": 1, "a": [True, None, 1.0, 1e21, "\u20ac$\n"], "\U0001f600": 0, "\ufb33": -0.0}
    text = canonical(value).decode()
    # Members in the order of UTF-16, in which the smiley comes before U+FB33.
    assert text == '{"a":[true,null,1,1e+21,"€$\\n"],"é":1,"\U0001f600":0,"\ufb33":0}'
    assert sha256_of({}) == hashlib.sha256(b"{}").hexdigest()


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(JSON)
def test_the_canonical_form_is_that_of_the_library(value: Any) -> None:
    """Most values are written by a faster encoder."""
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, 2**53, "\ud800"])
def test_a_value_outside_json_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical([value])


def test_absent_members_of_a_request_are_as_empty_ones() -> None:
    assert request_of({"role": "user", "content": None}) == request_of(
        {"id": "", "role": "user", "content": "", "content_items": []}
    )
    assert request_of(None) is None
    assert output_of("", []) == []


# --- Opening ---


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_signature_of_each_algorithm_is_opened(algorithm: str) -> None:
    answer = opened(signed(KEYS[algorithm]))
    assert (answer.jti, answer.agent, answer.price and answer.price.transfer_id) == (
        "resp_1", "clock", "tr_1",
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_altered_character_is_refused(algorithm: str) -> None:
    signature = signed(KEYS[algorithm])
    for place in range(0, len(signature), 1 if algorithm == "EdDSA" else 7):
        other = "A" if signature[place] != "A" else "B"
        with pytest.raises(BadSignature):
            opened(signature[:place] + other + signature[place + 1 :])


def test_shapes_and_encodings_of_others_are_refused() -> None:
    signature = signed()
    head, body, tail = signature.split(".")
    # The same bytes in another way: the last character has bits that no byte has.
    same = tail[:-1] + chr(ord(tail[-1]) + 1)
    assert base64.urlsafe_b64decode(same + "==") == base64.urlsafe_b64decode(tail + "==")
    for wrong in (
        f"{head}.{body}.{same}",
        None, 7, "", ".", "..", f"{head}.{body}", f"{signature}.{tail}", f"{head}..{tail}",
        f"{signature}=", f"{signature} ", signature.replace(".", " ."), f"{head}.{body}.é",
        f"{head}.{body}.{tail[:-1]}", f"{head}.{body}.{tail}A", f"{head}.{body}.{tail[:1]}",
        f"{head}.{body}.{part(b'0' * 63)}", f"{head}.{body}.{part(b'0' * 65)}", "A" * 9000,
        f"{part(b'[]')}.{body}.{tail}", f"{part(b'{')}.{body}.{tail}",
    ):  # fmt: skip
        with pytest.raises(BadSignature):
            opened(wrong)


def with_header(**header: Any) -> str:
    """Return a signature that is good but for its header."""
    key = KEYS["EdDSA"]
    all_members = {"alg": "EdDSA", "kid": key.kid, "typ": TYPE, **header}
    members = {name: value for name, value in all_members.items() if value is not None}
    first = f"{part(json.dumps(members).encode())}.{part(json.dumps(claims()).encode())}"
    return f"{first}.{part(key.private.sign(first.encode()))}"  # type: ignore[call-arg]


def test_headers_of_others_are_refused() -> None:
    assert opened(with_header()).jti == "resp_1"
    key = KEYS["EdDSA"]
    for header in (
        {"alg": "none"}, {"alg": "HS256"}, {"alg": "RS256"}, {"alg": "ES256"}, {"alg": "Ed448"},
        {"alg": "eddsa"}, {"alg": None}, {"typ": "JWT"}, {"typ": None}, {"kid": None}, {"kid": 7},
        {"kid": "k" * 300}, {"jwk": key.jwk}, {"jku": "https://evil.example"}, {"x5u": "x"},
        {"crit": ["b64"], "b64": False},
    ):  # fmt: skip
        with pytest.raises(BadSignature):
            opened(with_header(**header))
    with pytest.raises(UnknownKey):
        opened(with_header(kid="0" * 16))


def test_a_secret_made_of_the_public_key_signs_nothing() -> None:
    key = KEYS["RS256"]
    secret = json.dumps(key.jwk).encode()
    header = json.dumps({"alg": "HS256", "kid": key.kid, "typ": TYPE}).encode()
    first = f"{part(header)}.{part(json.dumps(claims()).encode())}"
    forged = f"{first}.{part(hmac.digest(secret, first.encode(), 'sha256'))}"
    with pytest.raises(BadSignature):
        opened(forged)


@pytest.mark.filterwarnings("ignore:The RSA key")
def test_keys_that_do_not_fit_are_refused() -> None:
    key = KEYS["EdDSA"]
    weak = generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 it has to be weak
    weak_jwk = {**RSAAlgorithm.to_jwk(weak.public_key(), as_dict=True), "kid": "w", "alg": "RS256"}
    curve = on_curve(SECP384R1())
    curve_jwk = {**ECAlgorithm.to_jwk(curve.public_key(), as_dict=True), "kid": "c", "alg": "ES256"}
    for keys, signature in (
        ([{**key.jwk, "alg": "ES256"}], signed()),
        ([{**key.jwk, "use": "enc"}], signed()),
        ([{**key.jwk, "x": "AAAA"}], signed()),
        ([{"kid": key.kid, "alg": "EdDSA"}], signed()),
        ([{**KEYS["ES256"].jwk, "kid": key.kid, "alg": "EdDSA"}], signed()),
        ([{**key.jwk, "d": part(key.private.private_bytes_raw())}], signed()),  # type: ignore[union-attr]
        ([weak_jwk], SigningKey("w", "RS256", weak).sign(claims(), typ=TYPE)),
        ([curve_jwk], signed(SigningKey("c", "ES256", KEYS["ES256"].private))),
    ):
        with pytest.raises(BadSignature):
            opened(signature, keys)


def test_a_der_signature_is_refused() -> None:
    head, body, tail = signed(KEYS["ES256"]).split(".")
    raw = base64.urlsafe_b64decode(tail + "==")
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    with pytest.raises(BadSignature):
        opened(f"{head}.{body}.{part(der)}")


@pytest.mark.parametrize("other", [{"jti": 7}, {"iat": "now"}, {"price": "free"}])
def test_claims_of_another_shape_are_refused(other: dict[str, Any]) -> None:
    with pytest.raises(BadSignature, match="claims"):
        opened(signed(**other))


# --- Messages ---


def test_a_message_is_valid_with_the_question_that_it_answers() -> None:
    message = {**ANSWER, "signature": signed()}
    verdict = check_answer(message, published(), chat_id="chat_1", question=QUESTION)
    assert (verdict.state, verdict.request, verdict.is_good) == ("valid", "same", True)
    assert verdict.kid == KEYS["EdDSA"].kid


@pytest.mark.parametrize(("text", "state"), [("Wie spät?", "same"), ("Wie früh?", "changed")])
def test_a_question_with_a_salt_may_be_signed_without_it(text: str, state: str) -> None:
    """A server of the release before salts signs so while it is being updated."""
    message = {**ANSWER, "signature": signed()}
    question = {**QUESTION, "content": text, "salt": "qXq1Vd0vN5x2bV9Jm3Yw7A"}
    assert check_answer(message, published(), question=question).request == state


def test_a_message_with_items_is_signed_with_all_of_them() -> None:
    text = str(ANSWER["content"])
    signature = signed(output_hash=sha256_of(output_of(text, PICTURE)))
    message = {**ANSWER, "content_items": PICTURE, "signature": signature}
    assert check_answer(message, published()).state == "valid"
    other = [PICTURE[0], {**PICTURE[1], "image": {"url": "/api/content/2"}}]
    assert check_answer({**message, "content_items": other}, published()).state == "changed"


@pytest.mark.parametrize(
    "change",
    [
        {"content": "Halb vier. 🕝"},
        {"content": unicodedata.normalize("NFD", "Halb drei. 🕝") + " "},
        {"content": ""},
        {"content": None},
        {"content_items": [{"type": "text", "text": "Halb drei. 🕝."}]},
        {"content_items": [{"type": "text", "text": "\ud800"}]},
        {"content_items": "none"},
        {"content": "\ud800"},
        {"id": "msg_b"},
        {"response_id": "resp_2"},
        {"role": "user"},
        {"name": "another clock"},
        {"signature": "eyJ..."},
    ],
)
def test_a_changed_message_shows(change: dict[str, Any]) -> None:
    assert state_of({**ANSWER, **change}) == "changed"


@pytest.mark.parametrize("stored", ["", "0" * 64, 7, [], {}, 1.5])
def test_a_stored_response_that_is_not_the_signed_one_shows(stored: Any) -> None:
    message = {**ANSWER, "signature": signed()}
    output_hash = sha256_of(output_of(str(ANSWER["content"]), []))
    for same in (None, output_hash):
        assert check_answer({**message, "stored_output_hash": same}, published()).state == "valid"
    verdict = check_answer({**message, "stored_output_hash": stored}, published())
    sentence = "The stored response differs from what the agent signed."
    assert (verdict.state, verdict.detail, verdict.is_good) == ("changed", sentence, False)


@pytest.mark.parametrize("stored", ["", "0" * 64, 7, [], {}, 1.5])
def test_a_stored_usage_that_is_not_the_signed_one_shows(stored: Any) -> None:
    message = {**ANSWER, "signature": signed(usage_hash="1" * 64)}
    assert state_of({**message, "stored_usage_hash": "1" * 64}) == "valid"
    verdict = check_answer({**message, "stored_usage_hash": stored}, published())
    sentence = "The stored usage or cost differs from what the agent signed."
    assert (verdict.state, verdict.detail, verdict.is_good) == ("changed", sentence, False)
    assert state_of({**ANSWER, "signature": signed(), "stored_usage_hash": stored}) == "valid"


def test_a_message_of_another_chat_shows() -> None:
    assert state_of(ANSWER, chat_id="chat_2") == "changed"


def test_an_erased_text_is_not_forged_and_a_marked_text_is_compared() -> None:
    erased = {**ANSWER, "content": "", "deleted_at": "2026-11-25T12:00:00Z"}
    assert state_of(erased) == "erased"
    assert state_of({**erased, "signature": None}) == "erased"
    question = {**erased, "response_id": None, "signature": None}
    assert state_of(question) == "unsigned"
    assert state_of({**erased, "content": "Halb vier. 🕝"}) == "changed"


def test_what_is_unsigned_or_of_an_unknown_key_shows() -> None:
    assert check_answer(ANSWER, published()).state == "unsigned"
    other = new_key("EdDSA")
    verdict = check_answer({**ANSWER, "signature": signed(other)}, published())
    assert (verdict.state, verdict.is_good) == ("unknown_key", False)


def test_a_retired_key_verifies_what_it_signed_before() -> None:
    message = {**ANSWER, "signature": signed()}
    assert check_answer(message, published(exp=1_010)).state is SignatureState.ROTATED
    assert check_answer(message, published(exp=500)).state is SignatureState.UNKNOWN_KEY
    assert check_answer(message, published(iat=1_100)).state is SignatureState.VALID
    assert check_answer(message, published(iat=1_200)).state is SignatureState.UNKNOWN_KEY


def test_no_other_owner_signs_for_an_agent() -> None:
    """The holder of one agent's, the log's or the tokens' key forges no answer of another agent."""
    message = {**ANSWER, "signature": signed()}
    for owner, state in (
        ("agent:agent_1", "valid"),
        ("agent:agent_2", "unknown_key"),
        ("agent:agent_1 ", "unknown_key"),
        ("log", "unknown_key"),
        ("receipts", "unknown_key"),
        ("server", "unknown_key"),
        (None, "unknown_key"),
    ):
        keys = [{**key, "uamp_owner": owner} for key in published()]
        assert check_answer(message, keys).state == state


def test_a_text_in_another_normal_form_shows() -> None:
    composed = {**ANSWER, "content": "Um zw\u00f6lf"}
    signature = signed(
        response_hash=text_sha256("Um zw\u00f6lf"),
        output_hash=sha256_of(output_of("Um zw\u00f6lf", [])),
    )
    assert state_of({**composed, "signature": signature}) == "valid"
    decomposed = unicodedata.normalize("NFD", "Um zw\u00f6lf")
    assert state_of({**composed, "content": decomposed, "signature": signature}) == "changed"


def test_a_float_is_the_number_that_it_is() -> None:
    items = [{"type": "audio", "duration_ms": 1500.0}]
    signature = signed(output_hash=sha256_of(output_of(str(ANSWER["content"]), items)))
    for number, state in (
        (1500.0, "valid"), (1500, "valid"), (15e2, "valid"), (1500.0000000000002, "changed"),
        ("1500", "changed"), (True, "changed"), (2**53, "changed"), (float("inf"), "changed"),
    ):  # fmt: skip
        message = {**ANSWER, "content_items": [{"type": "audio", "duration_ms": number}]}
        assert state_of({**message, "signature": signature}) == state
