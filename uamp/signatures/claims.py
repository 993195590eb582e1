"""The claims of the JWT that signs an answer (UAMP §6.7).

`response_hash` is of the text alone, as the specification has it; `output_hash` is of all items.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

TYPE: Final = "response+jwt"
"""The `typ` of the header: nothing else that is signed has it (RFC 8725 §3.11)."""


RECEIPT_TYPE: Final = "receipt+jwt"
"""The `typ` of the header of a signed receipt."""

RECEIPTS: Final = "receipts"
"""The owner of the keys that sign receipts."""


def agent_owner(agent_id: str) -> str:
    """Return the owner of the keys of an agent, as `uamp_owner` of a key names it."""
    return f"agent:{agent_id}"


class Price(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cost of the answer: a decimal string, its currency, and the transfer that took it.

    Where several reservations paid it, `transfer_id` is the first of their transfers.
    """

    amount: str
    currency: str
    transfer_id: str | None = None


class AnswerClaims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The claims of a signature; `iat` is in seconds, hashes are lower-case hex SHA-256.

    `iss` is the server, `sub` the id of the agent, `agent` its name then, `jti` the id of the
    response. `request_id` is the message that it answers, and `request_hash` is of that message
    as it was then (`request_of`); a response to a conversation without one has no `request_id`.
    `status` is absent from a completed answer; one that was paid though it was stopped or failed
    has `cancelled` or `failed`. `digital_source_type` says that AI made it.
    """

    iss: str
    sub: str
    agent: str
    chat_id: str
    jti: str
    iat: int
    response_hash: str
    output_hash: str
    request_hash: str
    message_id: str | None = None
    request_id: str | None = None
    price: Price | None = None
    status: str = "completed"
    digital_source_type: str | None = None


class ReceiptClaims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The claims of a signed receipt: what an answer had cost at `iat`, and by which transfers.

    Amounts are decimal strings. `answer_hash` is the SHA-256 of the signature of the answer, absent
    where that has none. `transfers` are those that the receipt shows: all of them to the payer, and
    none to others.
    """

    iss: str
    sub: str
    agent: str
    chat_id: str
    response_id: str
    iat: int
    amount: str
    refunded: str
    fee: str
    currency: str
    paid_at: str
    transfers: tuple[str, ...] = ()
    message_id: str | None = None
    answer_hash: str | None = None


def output_of(content: str, items: Sequence[Any]) -> list[Any]:
    """Return the output of a response, by its message: a message of text alone has no items."""
    if items:
        return list(items)
    return [{"type": "text", "text": content}] if content else []


def request_of(message: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return of a message what `request_hash` is of; None is of no message.

    Absent members are as empty ones: "" and [].
    """
    if message is None:
        return None
    return {
        "id": message.get("id") or "",
        "role": message.get("role") or "",
        "content": message.get("content") or "",
        "content_items": list(message.get("content_items") or []),
    }
