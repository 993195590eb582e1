"""The end and payment of a Realtime response, and later changes to its items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from websockets.exceptions import ConnectionClosed

from chat_app.log import fanout
from chat_app.models import ChatEvent, Message
from payments_app.tokens import issuance
from sessions_app.models import Response, Session
from tests.gateway_app.realtime.client import END, GA, Realtime, text_of, types_of
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from tests.sessions_app.model_server import model_server, text_chunks
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.any_database


# --- The end of a response ---


def test_a_response_is_cancelled(realtime: Realtime, alice: Person) -> None:
    client = realtime("v1/realtime?model=slow", alice)
    client.say("Count")
    client.send("response.create")
    client.until("response.output_text.delta")
    client.send("response.create", event_id="second")
    refused = client.until("error")[-1]["error"]
    assert (refused["event_id"], refused["type"]) == ("second", "invalid_request_error")

    client.send("response.cancel")
    events = client.until(END)

    ended = events[-1]["response"]
    assert ended["status"] == "cancelled"
    assert ended["output"][0]["status"] == "incomplete"
    assert types_of(events)[-2] == "conversation.item.done"
    assert client.ask("response.cancel")["error"]["code"] == "nothing_to_cancel"


def test_a_completed_response_is_signed_and_marked(realtime: Realtime, alice: Person) -> None:
    client = realtime(GA, alice)
    client.say("Hello")
    client.send("response.create")
    ended = client.until(END)[-1]
    done = ChatEvent.objects.get(type="response.done").payload
    assert ended["signature"] == done["signature"]
    assert ended["digital_source_type"] == AI_MADE


def test_a_response_that_fails_is_done_with_its_error(realtime: Realtime, alice: Person) -> None:
    client = realtime("v1/realtime?model=fail", alice)
    client.say("Hello")

    ended = client.answer()

    assert ended["status"] == "failed"
    assert ended["status_details"]["error"]["code"]
    client.say("Again")


# --- Payments ---


def test_an_unpaid_response_waits_for_a_payment(realtime: Realtime, alice: Person) -> None:
    priced("dear", per_answer="0.25")
    user_id = rich(alice).user.pk
    token = issuance.issue(key="token", user_id=user_id, amount=usd("1"), expires_in=600).token
    client = realtime("agents/dear/realtime", alice)
    client.say("Hello there")
    client.send("response.create")
    before = client.until("payment.required")
    required = before[-1]
    assert types_of(before) == ["response.created", "payment.required"]
    assert required["requirements"]["schemes"]

    client.send("payment.submit", payment={"scheme": "token", "token": token})
    events = client.until(END)

    assert "payment.accepted" in types_of(events)
    assert text_of(events[-1]["response"]) == "Hello there"
    assert Response.objects.count() == 1
    again = client.ask("payment.submit", payment={"scheme": "token", "token": token})
    while again["type"] == "payment.balance":
        again = client.next()
    assert again["error"]["code"] == "payment_not_due"


def test_a_growing_answer_waits_for_a_further_payment(realtime: Realtime, alice: Person) -> None:
    priced("growing", output_per_1k="1")
    user_id = rich(alice).user.pk
    tokens = [
        issuance.issue(key=f"t{n}", user_id=user_id, amount=usd(amount), expires_in=600).token
        for n, amount in enumerate(("0.6", "5"))
    ]
    client = realtime("agents/growing/realtime", alice)
    words = " ".join(f"word{n}" for n in range(800))
    client.say(words)
    client.send("response.create")
    client.until("payment.required")
    client.send("payment.submit", payment={"scheme": "token", "token": tokens[0]})
    client.until("response.text.delta")
    client.until("payment.required")

    client.send("payment.submit", payment={"scheme": "token", "token": tokens[1]})

    assert text_of(client.until(END)[-1]["response"]) == words
    assert Response.objects.count() == 1


# --- Changes made elsewhere ---


def test_a_session_that_is_ended_elsewhere_closes_its_socket(
    realtime: Realtime, alice: Person
) -> None:
    client = realtime(GA, alice)
    Session.objects.update(status="closed")

    assert client.next()["error"]["code"] == "unknown_session"
    with pytest.raises(ConnectionClosed):
        client.next()
    assert client.socket.close_code == 4404


def test_an_answer_that_is_written_anew_is_a_further_item(
    realtime: Realtime, alice: Person
) -> None:
    client = realtime("v1/realtime?model=slow", alice)
    client.say("Hello there")
    client.send("response.create")
    first = client.until("response.output_text.delta")[-1]
    running = Response.objects.get()
    replaced = fanout.text_message(
        chat_id=running.chat_id, response_id=running.pk, text="Another beginning"
    )
    fanout.publish_from_thread(running.chat_id, [replaced])

    deleted = client.until("conversation.item.deleted")
    rewritten_delta = client.until("response.output_text.delta")[-1]
    client.send("response.cancel")
    ended = client.until(END)[-1]["response"]

    assert deleted[-1]["item_id"] == first["item_id"]
    closed = next(e for e in deleted if e["type"] == "response.output_item.done")
    assert closed["item"]["status"] == "incomplete"
    assert rewritten_delta["delta"] == "Another beginning"
    assert rewritten_delta["item_id"] != first["item_id"]
    assert first["item_id"] not in {item["id"] for item in ended["output"]}
    retrieved = client.ask("conversation.item.retrieve", item_id=first["item_id"])
    assert retrieved["type"] == "error"


def test_items_are_what_their_messages_are_now(
    realtime: Realtime, web: httpx.Client, alice: Person
) -> None:
    with model_server(text_chunks("plover"), text_chunks("Two"), text_chunks("Three")) as model:
        model.agent()
        client = realtime("v1/realtime?model=model", alice)
        question = client.say("kestrel")
        answer = client.answer()["output"][0]
        asked_message, answer_message = Message.objects.order_by("seq")
        web.patch(
            f"/api/v1/messages/{asked_message.pk}",
            json={"content": "merlin"},
            headers=alice.headers,
        )
        web.delete(f"/api/v1/messages/{answer_message.pk}", headers=alice.headers)

        client.say("And now?")
        client.send("response.create")
        events = client.until(END)

        assert events[0]["type"] == "conversation.item.deleted"
        assert events[0]["item_id"] == answer["id"]
        words = [message["content"] for message in model.last["messages"]]
        assert words[-2:] == ["merlin", "And now?"]
        assert "plover" not in words
        reply = client.ask("conversation.item.retrieve", item_id=question["id"])
        assert reply["item"]["content"][0]["text"] == "merlin"
        web.delete(f"/api/v1/messages/{asked_message.pk}", headers=alice.headers)
        gone = client.ask("conversation.item.retrieve", item_id=question["id"])
        assert (gone["type"], gone["item_id"]) == ("conversation.item.deleted", question["id"])
        assert client.next()["error"]["param"] == "item_id"
