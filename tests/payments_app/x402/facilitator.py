"""A facilitator of x402 for the tests: real HTTP, real signatures, and a chain of its own.

It speaks /verify, /settle and /supported as facilitators do, checks the EIP-712 signature of an
EIP-3009 authorization, and moves money in a dictionary. `mode` says how it misbehaves.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from eth_account import Account
from eth_account.messages import encode_typed_data

from tests.http_server import LocalServer, QuietHandler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

Mode = Literal[
    "ok", "invalid", "not carried out", "500 at verify", "500 after settling", "late",
    "no json", "another amount", "forgets", "one at a time",
]  # fmt: skip

CHAIN_IDS = {"base": 8453, "base-sepolia": 84532}
AUTHORIZATION = [
    {"name": "from", "type": "address"},
    {"name": "to", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "validAfter", "type": "uint256"},
    {"name": "validBefore", "type": "uint256"},
    {"name": "nonce", "type": "bytes32"},
]
DOMAIN = [
    {"name": "name", "type": "string"},
    {"name": "version", "type": "string"},
    {"name": "chainId", "type": "uint256"},
    {"name": "verifyingContract", "type": "address"},
]
LATE_SECONDS = 1.5


class Facilitator(LocalServer):
    """The server, and the chain behind it: what arrived at whom, and under which transaction."""

    def __init__(self) -> None:
        super().__init__(FacilitatorHandler)
        self.mode: Mode = "ok"
        self.asked: Counter[str] = Counter()
        self.settled: dict[str, str] = {}
        self.received: Counter[str] = Counter()
        self.chain = threading.Lock()

    @property
    def url(self) -> str:
        """The value of UAMP_X402_FACILITATOR."""
        return f"{self.origin}/facilitator"


@contextmanager
def running() -> Iterator[Facilitator]:
    """Run one for the length of a test."""
    with serving(Facilitator()) as server:
        yield server


class FacilitatorHandler(QuietHandler):
    """One request."""

    server: Facilitator

    def do_POST(self) -> None:  # noqa: N802 the name in http.server
        """Answer /verify and /settle."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        operation = self.path.removeprefix("/facilitator/")
        self.server.asked[operation] += 1
        answer = {"verify": self._verify, "settle": self._settle}[operation](body)
        self._answer(*answer)

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        encoded = b"<html>" if self.server.mode == "no json" else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        try:
            self.wfile.write(encoded)
        except BrokenPipeError:
            self.close_connection = True

    def _verify(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.server.mode == "500 at verify":
            return 500, {"error": "internal"}
        reason = self._fault(body)
        signed = body["paymentPayload"]["payload"]["authorization"]
        return 200, {"isValid": reason is None, "invalidReason": reason, "payer": signed["from"]}

    def _settle(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        signed = body["paymentPayload"]["payload"]["authorization"]
        network = body["paymentRequirements"]["network"]
        refused = {"success": False, "transaction": "", "network": network}
        mode = self.server.mode
        if mode == "not carried out":
            return 200, {**refused, "errorReason": "transaction_reverted"}
        if reason := self._fault(body, settling=True):
            return 200, {**refused, "errorReason": reason}
        nonce = f"{signed['from']}:{signed['nonce']}"
        with self.server.chain:
            first = nonce not in self.server.settled
            if first:
                self.server.settled[nonce] = f"0x{secrets.token_hex(32)}"
                self.server.received[signed["to"].lower()] += int(signed["value"])
        if not first and mode in {"forgets", "one at a time"}:
            if mode == "one at a time":
                # The first settlement has ended before this refusal arrives.
                time.sleep(2 * LATE_SECONDS)
            return 200, {**refused, "errorReason": "invalid_exact_evm_nonce_already_used"}
        if mode == "500 after settling":
            return 500, {"error": "internal"}
        if mode in {"late", "one at a time"}:
            time.sleep(LATE_SECONDS)
        amount = {"amount": "1"} if mode == "another amount" else {}
        return 200, {
            "success": True,
            "payer": signed["from"],
            "transaction": self.server.settled[nonce],
            "network": network,
            **amount,
        }

    def _fault(self, body: dict[str, Any], *, settling: bool = False) -> str | None:
        """Return why a payment is not good, as facilitators put it."""
        if self.server.mode == "invalid":
            return "insufficient_funds"
        payload, requirements = body["paymentPayload"]["payload"], body["paymentRequirements"]
        signed = payload["authorization"]
        amount = requirements.get("amount", requirements.get("maxAmountRequired"))
        if signed["to"].lower() != requirements["payTo"].lower():
            return "invalid_exact_evm_recipient_mismatch"
        if int(signed["value"]) != int(amount):
            return "invalid_exact_evm_authorization_value_mismatch"
        if not int(signed["validAfter"]) <= time.time() < int(signed["validBefore"]):
            return "invalid_exact_evm_payload_authorization_valid_before"
        if not settling and f"{signed['from']}:{signed['nonce']}" in self.server.settled:
            return "invalid_exact_evm_nonce_already_used"
        network = requirements["network"]
        chain_id = CHAIN_IDS.get(network) or int(network.removeprefix("eip155:"))
        message = encode_typed_data(
            full_message={
                "types": {"EIP712Domain": DOMAIN, "TransferWithAuthorization": AUTHORIZATION},
                "primaryType": "TransferWithAuthorization",
                "domain": {
                    "name": requirements["extra"]["name"],
                    "version": requirements["extra"]["version"],
                    "chainId": chain_id,
                    "verifyingContract": requirements["asset"],
                },
                "message": {
                    **signed,
                    "value": int(signed["value"]),
                    "validAfter": int(signed["validAfter"]),
                    "validBefore": int(signed["validBefore"]),
                    "nonce": bytes.fromhex(signed["nonce"].removeprefix("0x")),
                },
            }
        )
        signer = Account.recover_message(message, signature=payload["signature"])
        return None if signer.lower() == signed["from"].lower() else "invalid_signature"
