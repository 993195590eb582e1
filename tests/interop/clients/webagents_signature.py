"""The reference's verifier takes our answers: `webagents_signature.py ORIGIN KEY`."""

import hashlib
import json
import sys
from typing import Any

import httpx
import jwt
from webagents.agents.skills.robutler.nli.signing import (  # type: ignore[import-not-found]  # not in .venv
    compute_hash,
    verify_nli_signature,
)

ORIGIN, KEY = sys.argv[1:3]
AGENT = f"{ORIGIN}/agents/echo"
TEXT = "Hello wörld 🎈"
EVENTS = [
    {"type": "session.create", "uamp_version": "1.0", "session": {"modalities": ["text"]}},
    {"type": "input.text", "text": TEXT},
    {"type": "response.create"},
]


def hash_of(message: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical form (RFC 8785) of a message without numbers."""
    text = json.dumps(message, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def main() -> None:
    """Ask an agent, and verify the answer as it is, with another text, and with another key."""
    headers = {"Authorization": f"Bearer {KEY}"}
    answer = httpx.post(f"{AGENT}/uamp", json=EVENTS, headers=headers, timeout=60)
    done = next(event for event in answer.json() if event["type"] == "response.done")
    text = "".join(item["text"] for item in done["response"]["output"])
    signature = done["signature"]
    keys = httpx.get(f"{AGENT}/.well-known/jwks.json", timeout=60).json()["keys"]
    of_kid: dict[str, Any] = {key["kid"]: jwt.PyJWK(key).key for key in keys}
    kid = jwt.get_unverified_header(signature)["kid"]
    good = verify_nli_signature(signature, compute_hash(text), None, of_kid[kid])
    other = verify_nli_signature(signature, compute_hash(f"{text}."), None, of_kid[kid])
    foreign = next(key for name, key in of_kid.items() if name != kid)
    forged = verify_nli_signature(signature, compute_hash(text), None, foreign)
    created = next(event for event in answer.json() if event["type"] == "response.created")
    question = {"id": created["message_id"], "role": "user", "content": TEXT, "content_items": []}
    bound = verify_nli_signature(signature, compute_hash(text), hash_of(question), of_kid[kid])
    edited = hash_of({**question, "content": f"{TEXT}."})
    unbound = verify_nli_signature(signature, compute_hash(text), edited, of_kid[kid])
    seen = {
        "good": good["valid"],
        "with its request": bound["valid"],
        "with another request": unbound["error"],
        "another text": other["error"],
        "another key": forged["error"],
    }
    print(json.dumps(seen))  # noqa: T201 read by the test


main()
