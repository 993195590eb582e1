"""Exported answers and what they cost: as the reader of the file may know it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from chat_app.models import Participant
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import pay, priced, rich

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial, Person


def test_an_answer_has_its_receipt_and_its_transfers_are_the_payers(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    priced("paid", per_answer="0.25")
    rich(alice)
    chat = shared_chat(alice, bob, agents=("paid",))
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    pay(client, client.until("payment.required")[-1])
    client.until("payment.balance")
    path = f"/api/v1/chats/{chat.pk}/export"
    for person, paid_by in ((alice, "you"), (bob, "other")):
        file = web.get(path, params={"format": "ndjson"}, headers=person.headers).text
        question, answer = [json.loads(line) for line in file.splitlines()[1:-1]]
        assert "receipt" not in question
        receipt = answer["receipt"]
        assert (receipt["amount"], receipt["currency"]) == ("0.25", "USD")
        assert (receipt["paid_by"], bool(receipt["transfers"])) == (paid_by, person is alice)
    read = web.get(path, params={"format": "markdown"}, headers=bob.headers).text
    assert ", 0.25 USD)" in read
    Participant.objects.filter(chat=chat, user=bob.user).delete()
    assert web.get(path, params={"format": "json"}, headers=bob.headers).status_code == 404
