"""Demands for payment, the headers that answer them, and what comes of a header."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from eth_account import Account
from x402 import x402ClientSync
from x402.http.utils import decode_payment_required_header
from x402.mechanisms.evm.exact.client import ExactEvmScheme

from payments_app import services
from payments_app import x402 as ours
from payments_app.services import Split
from payments_app.x402 import PaymentNotTaken
from tests.payments_app.funded_accounts import authorize, new_key, usd

if TYPE_CHECKING:
    from x402.schemas.payments import PaymentRequirements


PAY_TO = "0x" + "ab" * 20
PRICE = "0.01"


def demand(price: str = PRICE, agent: str = "echo") -> dict[str, Any]:
    return ours.requirements(
        usd(price), resource_url="http://localhost/uamp", description="An answer", agent=agent
    )


def encoded(document: object) -> str:
    return base64.b64encode(json.dumps(document).encode()).decode()


def refusal(
    headers: dict[str, str], body: dict[str, Any] | None = None, user_id: int | None = None
) -> PaymentNotTaken:
    with pytest.raises(PaymentNotTaken) as caught:
        ours.accept(headers, body or demand(), user_id=user_id)
    return caught.value


def signed(body: dict[str, Any], signer: Any = None, **accepted: Any) -> dict[str, str]:
    """Return the header that the official client makes of a 402."""
    client = x402ClientSync()
    client.register("eip155:*", ExactEvmScheme(signer or Account.create()))
    read: Any = decode_payment_required_header(ours.required_headers(body)["PAYMENT-REQUIRED"])
    exact: PaymentRequirements = read.accepts[1]
    read.accepts = [exact.model_copy(update=accepted)]
    payload = client.create_payment_payload(read)
    return {
        "PAYMENT-SIGNATURE": base64.b64encode(
            payload.model_dump_json(by_alias=True, exclude_none=True).encode()
        ).decode()
    }


def accepted_payment(headers: dict[str, str], price: str = PRICE) -> ours.Accepted:
    done = ours.accept(headers, demand(price))
    assert done is not None
    return done


def charge(account_id: int, amount: str) -> None:
    hold = authorize(key=new_key(), account_id=account_id, amount=usd(amount))
    agent = services.account_of_agent("agent_1")
    services.capture(
        key=new_key(),
        hold_id=hold.hold_id,
        amount=usd(amount),
        splits=[Split(agent.id, usd(amount))],
        release=True,
    )


def altered(headers: dict[str, str], **authorization: str) -> dict[str, str]:
    document = json.loads(base64.b64decode(headers["PAYMENT-SIGNATURE"]))
    document["payload"]["authorization"].update(authorization)
    return {"PAYMENT-SIGNATURE": encoded(document)}
