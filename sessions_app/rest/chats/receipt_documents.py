"""Signed receipts, which bind the cost of an answer to its message and its signature.

The claims are in docs/signatures.md. A receipt is signed when it is read, in its current state,
since money may be refunded later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from django.conf import settings
from django.utils import timezone

from chat_app.log.signatures import messages_of_responses, signatures_of_responses
from signing_app.owner_keys import signing_key
from uamp import signatures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sessions_app.models import Response


@dataclass(frozen=True, slots=True)
class PaidAnswer:
    """The subject of a receipt: the agent, the chat and the message of an answer."""

    agent_id: str
    chat_id: str
    message_id: str | None
    signature: str | None


def paid_answers(rows: Iterable[Response]) -> dict[str, PaidAnswer]:
    """Return the facts that receipts of these responses are bound to, by response id."""
    paid = {row.pk: row for row in rows}
    messages, signed = messages_of_responses(paid.keys()), signatures_of_responses(paid.keys())
    return {
        pk: PaidAnswer(row.agent_id, row.chat_id, messages.get(pk), signed.get(pk))
        for pk, row in paid.items()
    }


def signed_receipt(
    receipt: dict[str, Any], answers: Mapping[str, PaidAnswer], *, chat_id: str
) -> dict[str, Any]:
    """Return an answer's receipt with a `document` signed by the server.

    `chat_id` is the chat that shows the receipt. Delegated work was done in other chats, whose
    messages are not named.
    """
    answer = answers[receipt["response_id"]]
    signature = answer.signature
    claims = signatures.ReceiptClaims(
        iss=settings.UAMP_ISSUER,
        sub=answer.agent_id,
        agent=receipt["agent"],
        chat_id=chat_id,
        response_id=receipt["response_id"],
        iat=int(timezone.now().timestamp()),
        amount=receipt["amount"],
        refunded=receipt["refunded"],
        fee=receipt["fee"],
        currency=receipt["currency"],
        paid_at=receipt["paid_at"].isoformat().replace("+00:00", "Z"),
        transfers=tuple(receipt["transfers"]),
        message_id=answer.message_id if answer.chat_id == chat_id else None,
        answer_hash=None if signature is None else signatures.text_sha256(signature),
    )
    key = signing_key(signatures.RECEIPTS)
    document = key.sign(msgspec.to_builtins(claims), typ=signatures.RECEIPT_TYPE)
    return {**receipt, "document": document}
