"""Every claim of an answer and of a receipt: altered, removed, doubled, signed anew."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from signing_app.keys import ALGORITHMS, new_key
from uamp.signatures import (
    RECEIPT_TYPE,
    RECEIPTS,
    TYPE,
    AnswerClaims,
    BadSignature,
    Price,
    ReceiptClaims,
    agent_owner,
    check_answer,
    check_receipt,
    open_signature,
    output_of,
    sha256_of,
    text_sha256,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS = {algorithm: new_key(algorithm) for algorithm in ALGORITHMS}
KEY = KEYS["EdDSA"]
TEXT = "At noon."
ANSWER = AnswerClaims(
    iss="https://chat.example",
    sub="agent_1",
    agent="echo",
    chat_id="chat_1",
    jti="resp_1",
    iat=1_700_000_000,
    response_hash=text_sha256(TEXT),
    output_hash=sha256_of(output_of(TEXT, [])),
    request_hash="0" * 64,
    message_id="msg_1",
    request_id="msg_0",
    price=Price(amount="0.25", currency="USD", transfer_id="tr_1"),
    status="cancelled",
    digital_source_type="http://example.org/trainedAlgorithmicMedia",
    usage_hash=sha256_of({"total_tokens": 7}),
    models=("model-1",),
)
RECEIPT = ReceiptClaims(
    iss="https://chat.example",
    sub="agent_1",
    agent="echo",
    chat_id="chat_1",
    response_id="resp_1",
    iat=1_700_000_000,
    amount="0.25",
    refunded="0",
    fee="0.05",
    currency="USD",
    paid_at="2026-01-01T00:00:00Z",
    transfers=("tr_1",),
    message_id="msg_1",
    answer_hash="0" * 64,
)
KINDS: dict[str, tuple[Any, str, type]] = {
    "answer": (ANSWER, TYPE, AnswerClaims),
    "receipt": (RECEIPT, RECEIPT_TYPE, ReceiptClaims),
}


def encoded(text: str) -> str:
    """Return a part of a JWS."""
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def altered(value: Any) -> Any:
    """Return another value of the same type."""
    if isinstance(value, dict):
        return {**value, "amount": "0.26"}
    if isinstance(value, list):
        return [*value, "tr_2"]
    return value + 1 if isinstance(value, int) else f"{value}1"


def changes() -> Iterator[tuple[str, str, str, str]]:
    """Yield each kind, claim and change, with the payload that has it."""
    for kind, (claims, _, _) in KINDS.items():
        values = msgspec.to_builtins(claims)
        text = json.dumps(values)
        for name, value in values.items():
            other = json.dumps({**values, name: altered(value)})
            yield kind, name, "altered", other
            fewer = {key: value for key, value in values.items() if key != name}
            yield kind, name, "removed", json.dumps(fewer)
            yield kind, name, "doubled", f"{text[:-1]}, {json.dumps(name)}: {json.dumps(value)}}}"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_claim_that_was_altered_removed_or_doubled_shows(algorithm: str) -> None:
    """The signature covers the text of the claims, not what a reader makes of it."""
    key = KEYS[algorithm]
    forgeries = []
    for kind, name, change, text in changes():
        claims, typ, shape = KINDS[kind]
        good = key.sign(msgspec.to_builtins(claims), typ=typ)
        assert open_signature(good, [key.jwk], typ=typ, claims=shape)[0] == claims
        head, _, tail = good.split(".")
        try:
            open_signature(f"{head}.{encoded(text)}.{tail}", [key.jwk], typ=typ, claims=shape)
        except BadSignature:
            continue
        forgeries.append((kind, name, change))
    assert forgeries == []


def message(**members: Any) -> dict[str, Any]:
    """Return the answer as REST has it."""
    return {
        "id": "msg_1", "role": "assistant", "name": "echo", "content": TEXT, "content_items": [],
        "response_id": "resp_1", "status": "cancelled", **members,
    }  # fmt: skip


# The claims that say nothing about the message itself: they are evidence, not compared.
EVIDENCE = {
    "iss", "iat", "sub", "price", "request_hash", "request_id", "digital_source_type", "usage_hash",
    "models",
}  # fmt: skip


@pytest.mark.parametrize("name", AnswerClaims.__struct_fields__)
def test_a_key_that_signs_another_claim_signs_another_answer(name: str) -> None:
    """A signature that the agent made for something else is moved to this answer."""
    keys = [{**KEY.jwk, "uamp_owner": agent_owner("agent_1")}]
    values = msgspec.to_builtins(ANSWER)
    good = check_answer(message(signature=KEY.sign(values, typ=TYPE)), keys, chat_id="chat_1")
    assert good.is_good
    others: list[Any] = [altered(values[name]), None, 7.5, [], {}, "x"]
    for value in others:
        text = json.dumps({**values, name: value}).encode()
        moved = KEY.sign_bytes(text, typ=TYPE)
        verdict = check_answer(message(signature=moved), keys, chat_id="chat_1")
        if name == "sub":
            # The key is that of another agent.
            assert not verdict.is_good
        elif name not in EVIDENCE:
            assert verdict.state == "changed", value


@pytest.mark.parametrize("name", ReceiptClaims.__struct_fields__)
def test_a_key_that_signs_another_claim_signs_another_receipt(name: str) -> None:
    keys = [{**KEY.jwk, "uamp_owner": RECEIPTS}]
    values = msgspec.to_builtins(RECEIPT)
    receipt = {name: values[name] for name in ("agent", "amount", "refunded", "fee", "currency")}
    receipt |= {"paid_at": values["paid_at"], "transfers": ["tr_1"], "response_id": "resp_1"}
    good = check_receipt({**receipt, "document": KEY.sign(values, typ=RECEIPT_TYPE)}, keys)
    assert good.is_good
    others: list[Any] = [altered(values[name]), None, 7.5, {}]
    for value in others:
        text = json.dumps({**values, name: value}).encode()
        document = KEY.sign_bytes(text, typ=RECEIPT_TYPE)
        verdict = check_receipt({**receipt, "document": document}, keys, chat_id="chat_1")
        if name not in {"iss", "iat", "sub", "message_id", "answer_hash"}:
            assert not verdict.is_good, value


@pytest.mark.parametrize(
    "content", ["At noon.\0", "At noon. ", "at noon.", "", "A" * 10_000_000, "\ud800"]
)
def test_another_text_shows_whatever_its_size(content: str) -> None:
    keys = [{**KEY.jwk, "uamp_owner": agent_owner("agent_1")}]
    signature = KEY.sign(msgspec.to_builtins(ANSWER), typ=TYPE)
    verdict = check_answer(message(signature=signature, content=content), keys)
    assert verdict.state == "changed"


@pytest.mark.parametrize("number", [-0.0, 1e22, 1.5, float("nan"), 10**400, 2**53])
def test_numbers_in_what_is_hashed_never_pass_for_the_text(number: float) -> None:
    keys = [{**KEY.jwk, "uamp_owner": agent_owner("agent_1")}]
    signature = KEY.sign(msgspec.to_builtins(ANSWER), typ=TYPE)
    items = [{"type": "text", "text": TEXT, "n": number}]
    verdict = check_answer(message(signature=signature, content_items=items), keys)
    assert verdict.state == "changed"


@pytest.mark.parametrize(
    ("times", "state"),
    [
        ({"iat": 1_700_000_000}, "valid"),
        ({"iat": 1_699_990_000, "exp": 1_700_000_000}, "rotated"),
        # A clock that is an hour off.
        ({"iat": 1_700_003_600}, "unknown_key"),
        ({"iat": 1_699_990_000, "exp": 1_699_996_400}, "unknown_key"),
    ],
)
def test_a_key_signs_only_while_it_is_valid(times: dict[str, int], state: str) -> None:
    keys = [{**KEY.jwk, "uamp_owner": agent_owner("agent_1"), **times}]
    signature = KEY.sign(msgspec.to_builtins(ANSWER), typ=TYPE)
    assert check_answer(message(signature=signature), keys).state == state
