"""The claims of the JWT that signs an answer (UAMP §6.7).

`response_hash` covers only the text, as the specification has it; `output_hash` covers all items.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

TYPE: Final = "response+jwt"
"""The `typ` of an answer's header; no other signed document has it (RFC 8725 §3.11)."""


RECEIPT_TYPE: Final = "receipt+jwt"
"""The `typ` of a signed receipt's header."""

RECEIPTS: Final = "receipts"
"""The owner of the keys that sign receipts."""


SHARED_TYPE: Final = "shared-page+jwt"
"""The `typ` of the header of a signed page of a shared chat."""

SHARES: Final = "shares"
"""The owner of the keys that sign shared pages."""


def agent_owner(agent_id: str) -> str:
    """Return the owner of an agent's keys, as named in a key's `uamp_owner`."""
    return f"agent:{agent_id}"


class Price(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cost of the answer: a decimal string, its currency, and the transfer that paid it.

    If several reservations paid it, `transfer_id` is the first of their transfers.
    """

    amount: str
    currency: str
    transfer_id: str | None = None


class AnswerClaims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The claims of a signature; `iat` is in seconds, hashes are lower-case hex SHA-256.

    `iss` is the server, `sub` the id of the agent, `agent` its name at the time, `jti` the id of
    the response. `request_id` is the message that it answers, and `request_hash` covers that
    message as it was at the time (`request_of`); a response to a conversation that the client sent
    along has no `request_id`. `status` is absent for a completed answer; an answer that was paid
    although it was stopped or failed has `cancelled` or `failed`. `digital_source_type` marks it as
    made by AI.
    `usage_hash` covers the `usage` of the response: its tokens and cost, or null. `models` are the
    models that were asked, in the order of their first inferences.
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
    usage_hash: str | None = None
    models: tuple[str, ...] = ()


class ReceiptClaims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The claims of a signed receipt: the cost of an answer as of `iat`, and the transfers.

    Amounts are decimal strings. `answer_hash` is the SHA-256 of the answer's signature, absent if
    it has none. `transfers` are those that the receipt shows: all of them to the payer, none to
    others.
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


class SharedPageClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a signed page of a shared chat: what `iss` showed at `iat`.

    `page_hash` is the SHA-256 of the canonical form of the page.
    """

    iss: str
    iat: int
    page_hash: str


def output_of(content: str, items: Sequence[Any]) -> list[Any]:
    """Return the output of a response from its message: a message with only text has no items."""
    if items:
        return list(items)
    return [{"type": "text", "text": content}] if content else []


def request_of(message: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the parts of a message that `request_hash` covers; None without a message.

    Absent members count as empty: "" and []; a message without a salt is hashed without it.
    """
    if message is None:
        return None
    request = {
        "id": message.get("id") or "",
        "role": message.get("role") or "",
        "content": message.get("content") or "",
        "content_items": list(message.get("content_items") or []),
    }
    salt = message.get("salt")
    if isinstance(salt, str) and salt:
        request["salt"] = salt
    return request
