"""A signed receipt says what an answer cost, and of which message it is."""

from __future__ import annotations

from typing import Any

import pytest

from signing_app.keys import ALGORITHMS, new_key
from uamp.signatures import RECEIPT_TYPE, RECEIPTS, TYPE, check_receipt, text_sha256

pytestmark = pytest.mark.any_database

KEYS = {algorithm: new_key(algorithm) for algorithm in ALGORITHMS}
SIGNATURE = "eyJhbGciOiJFZERTQSJ9.e30.AAAA"
ANSWER: dict[str, Any] = {"id": "msg_a", "response_id": "resp_1", "signature": SIGNATURE}
RECEIPT: dict[str, Any] = {
    "response_id": "resp_1",
    "agent": "clock",
    "amount": "0.25",
    "refunded": "0",
    "fee": "0.01",
    "currency": "USD",
    "paid_at": "2026-11-25T12:00:00.5Z",
    "paid_by": "you",
    "transfers": ["tr_1", "tr_2"],
    "delegated": [],
}
CLAIMS: dict[str, Any] = {
    "iss": "https://chat.example.org",
    "sub": "agent_1",
    "agent": "clock",
    "chat_id": "chat_1",
    "response_id": "resp_1",
    "iat": 1_000,
    "amount": "0.25",
    "refunded": "0",
    "fee": "0.01",
    "currency": "USD",
    "paid_at": "2026-11-25T12:00:00.5Z",
    "transfers": ["tr_1", "tr_2"],
    "message_id": "msg_a",
    "answer_hash": text_sha256(SIGNATURE),
}


def published(**members: Any) -> list[dict[str, Any]]:
    return [{**key.jwk, "uamp_owner": RECEIPTS, **members} for key in KEYS.values()]


def signed(algorithm: str = "EdDSA", typ: str = RECEIPT_TYPE, **claims: Any) -> dict[str, Any]:
    members = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    return {**RECEIPT, "document": KEYS[algorithm].sign(members, typ=typ)}


def state_of(receipt: dict[str, Any], **about: Any) -> str:
    return check_receipt(receipt, published(), **about).state


@pytest.mark.parametrize(
    ("price", "state"),
    [
        ({"amount": "0.25", "currency": "USD"}, "valid"),
        ({"amount": "0.24", "currency": "USD"}, "changed"),
        ({"amount": "0.25", "currency": "EUR"}, "changed"),
        (None, "valid"),
    ],
)
def test_a_receipt_has_the_price_that_the_agent_signed(
    price: dict[str, str] | None, state: str
) -> None:
    agent = new_key("EdDSA")
    hashes = dict.fromkeys(("response_hash", "output_hash", "request_hash"), "00")
    subject_claims = {"sub": "agent_1", "agent": "clock", "chat_id": "chat_1", "jti": "resp_1"}
    claims: dict[str, Any] = {"iss": CLAIMS["iss"], "iat": 1_000, **subject_claims, **hashes}
    signature = agent.sign(claims if price is None else {**claims, "price": price}, typ=TYPE)
    receipt = signed(answer_hash=text_sha256(signature))
    keys = [*published(), {**agent.jwk, "uamp_owner": "agent:agent_1"}]
    message = {**ANSWER, "signature": signature}
    verdict = check_receipt(receipt, keys, message=message)
    assert verdict.state == state
    assert ("different price" in verdict.detail) is (state == "changed")
    # Without the agent's key the price is not known: that is said of the answer.
    assert check_receipt(receipt, published(), message=message).state == "valid"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_receipt_is_valid_for_its_answer(algorithm: str) -> None:
    verdict = check_receipt(signed(algorithm), published(), chat_id="chat_1", message=ANSWER)
    assert (verdict.state, verdict.is_good, verdict.kid) == ("valid", True, KEYS[algorithm].kid)
    assert verdict.claims is not None
    assert verdict.claims.transfers == ("tr_1", "tr_2")
    exported = {name: value for name, value in signed().items() if name != "response_id"}
    assert state_of(exported, message=ANSWER) == "valid"


@pytest.mark.parametrize(
    "change",
    [
        {"amount": "0.24"},
        {"amount": 0.25},
        {"amount": "0.250"},
        {"refunded": "0.25"},
        {"fee": "0"},
        {"currency": "EUR"},
        {"agent": "clock\u200b"},
        {"paid_at": "2026-11-26T12:00:00.5Z"},
        {"transfers": ["tr_1"]},
        {"transfers": ["tr_2", "tr_1"]},
        {"transfers": "tr_1"},
        {"transfers": None},
        {"response_id": "resp_2"},
        {"document": "eyJ..."},
        {"document": 7},
    ],
)
def test_a_changed_receipt_shows(change: dict[str, Any]) -> None:
    assert state_of({**signed(), **change}) == "changed"


def test_a_receipt_of_another_answer_or_chat_shows() -> None:
    assert state_of(signed(), chat_id="chat_2") == "changed"
    for change in ({"id": "msg_b"}, {"response_id": "resp_2"}, {"signature": f"{SIGNATURE}A"}):
        assert state_of(signed(), message={**ANSWER, **change}) == "changed"
    unsigned = {**ANSWER, "signature": None}
    assert state_of(signed(), message=unsigned) == "changed"
    assert state_of(signed(answer_hash=None), message=unsigned) == "valid"


def test_the_signature_of_an_answer_is_not_a_receipt() -> None:
    assert state_of(signed(typ=TYPE)) == "changed"
    verdict = check_receipt(signed(), published(uamp_owner="agent:agent_1"))
    assert (verdict.state, verdict.is_good) == ("unknown_key", False)
    assert "another owner" in verdict.detail


def test_unsigned_receipts_and_keys_that_are_gone_show() -> None:
    assert state_of(RECEIPT) == "unsigned"
    assert check_receipt(signed(), []).state == "unknown_key"
    assert check_receipt(signed(), published(exp=1_010.5)).state == "rotated"
    assert check_receipt(signed(), published(exp=500)).state == "unknown_key"
    assert check_receipt(signed(), published(iat=2_000)).state == "unknown_key"
    assert check_receipt(signed(), published(iat=1_010, exp=True)).state == "valid"
