"""Signed answers as a file, which programs in other languages verify (static/uamp/signatures.js).

`python -m tests.uamp.signatures.test_vectors` writes it anew, with new keys.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signing_app.keys import ALGORITHMS, new_key
from uamp.signatures import TYPE, check_answer, output_of, request_of, sha256_of, text_sha256

pytestmark = pytest.mark.any_database

FILE = Path(__file__).with_name("vectors.json")
TEXT = "Halb drei. \U0001f55d\nUnd \u2028 \ufb33 zwölf Minuten."
ITEMS = [
    {"type": "thinking", "thinking": "Die Uhr…", "stage": "plan"},
    {"type": "text", "text": TEXT},
    {"type": "audio", "audio": {"url": "/api/content/1"}, "duration_ms": 1500.25},
    {"type": "tool_call", "tool_call": {"id": "1", "name": "clock", "arguments": '{"z": 1.0}'}},
]
QUESTION = {
    "id": "msg_q",
    "role": "user",
    "content": "Wie spät?",
    "content_items": [],
    "salt": "qXq1Vd0vN5x2bV9Jm3Yw7A",
}


def vectors() -> dict[str, Any]:
    """Return an answer, its question, its signature with each algorithm, and the keys."""
    claims = {
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
        "price": {"amount": "0.02", "currency": "USD", "transfer_id": "tr_1"},
    }
    new_keys = {algorithm: new_key(algorithm) for algorithm in ALGORITHMS}
    answer = {
        "id": "msg_a",
        "role": "assistant",
        "response_id": "resp_1",
        "content": TEXT,
        "content_items": ITEMS,
        "deleted_at": None,
    }
    return {
        "algorithms": {name: key.sign(claims, typ=TYPE) for name, key in new_keys.items()},
        "keys": [key.jwk for key in new_keys.values()],
        "question": QUESTION,
        "answer": answer,
    }


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_vectors_are_valid(algorithm: str) -> None:
    stored_vectors = json.loads(FILE.read_text(encoding="utf-8"))
    message = {**stored_vectors["answer"], "signature": stored_vectors["algorithms"][algorithm]}
    verdict = check_answer(
        message, stored_vectors["keys"], chat_id="chat_1", question=stored_vectors["question"]
    )
    assert (verdict.state, verdict.request) == ("valid", "same")


if __name__ == "__main__":
    FILE.write_text(json.dumps(vectors(), indent=1) + "\n", encoding="utf-8")
