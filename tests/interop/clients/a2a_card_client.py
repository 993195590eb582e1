"""The SDK of A2A 1.0 verifies agent cards: `a2a_card_client.py ORIGIN KEY`."""

import asyncio
import json
import sys
from typing import Any

import httpx
import jwt
from a2a.client import A2ACardResolver  # type: ignore[import-not-found]  # not in .venv
from a2a.utils.signing import (  # type: ignore[import-not-found]  # not in .venv
    SignatureVerificationError,
    create_signature_verifier,
)

ORIGIN = sys.argv[1]
ALGORITHMS = ["RS256", "EdDSA", "ES256"]


def verdict(card: Any) -> str:
    """Return whether the SDK takes the signature of a card."""
    addresses: list[str] = []

    def key_of(kid: str | None, jku: str | None) -> jwt.PyJWK:
        assert kid is not None
        addresses.append(jku or "")
        answer = httpx.get(f"{ORIGIN}/.well-known/jwks.json", params={"kid": kid}, timeout=60)
        keys = answer.json()["keys"]
        assert [key["uamp_owner"] for key in keys] == ["cards"], keys
        return jwt.PyJWKSet.from_dict({"keys": keys})[kid]

    try:
        create_signature_verifier(key_of, ALGORITHMS)(card)
    except SignatureVerificationError as error:
        return type(error).__name__
    return "valid" if addresses[0].endswith("/.well-known/jwks.json") else "no address"


async def main() -> None:
    """Verify the cards of a free and of a paid agent, for either version, and changed ones."""
    seen: dict[str, Any] = {}
    async with httpx.AsyncClient(timeout=60) as http:
        for agent in ("echo", "paid-echo"):
            resolver = A2ACardResolver(http, f"{ORIGIN}/agents/{agent}")
            for version in ("", "1.0"):
                headers = {"headers": {"A2A-Version": version}} if version else {}
                card = await resolver.get_agent_card(http_kwargs=headers)
                seen[f"{agent} {version}".strip()] = verdict(card)
        card.description += "."
        seen["described anew"] = verdict(card)
        card.description = card.description[:-1]
        card.supported_interfaces[0].url = "https://evil.example/a2a"
        seen["elsewhere"] = verdict(card)
        del card.signatures[:]
        seen["unsigned"] = verdict(card)
    print(json.dumps(seen))  # noqa: T201 read by the test


asyncio.run(main())
