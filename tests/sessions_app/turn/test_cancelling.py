"""Cancelling a response, and who may."""

import pytest

from chat_app.log import fanout
from chat_app.models import Message
from sessions_app.models import Response
from tests.client import TERMINAL, Frame, output_text, text_of, wait_until
from tests.live_server import Dial, Person, shared_chat


@pytest.fixture
def counting(dial: Dial, alice: Person) -> tuple[Dial, Frame]:
    """Give the session.created of alice's session in which an agent counts to 200."""
    client = dial(alice)
    created = client.create_session(agent="slow")
    client.ask("Count")
    client.until("response.delta")
    return dial, created


def test_a_cancelled_response_keeps_its_text_so_far_and_nothing_more(
    dial: Dial, alice: Person
) -> None:
    client = dial(alice)
    client.create_session(agent="slow")
    client.ask("Count")
    frames = [client.expect("response.created"), *client.until("response.delta")]
    client.send("response.cancel")
    frames += client.until("response.cancelled")
    assert output_text(frames[-1]) == text_of(frames)
    assert output_text(frames[-1]).startswith("word1")
    # No response.done follows, and the provider is not running on.
    assert client.during(0.2) == []
    response = Response.objects.get()
    assert (response.status, response.text) == ("cancelled", output_text(frames[-1]))
    message = Message.objects.get(role="assistant")
    assert (message.status, message.content) == ("cancelled", response.text)
    client.send("response.cancel", response_id=response.pk)
    assert client.expect("session.error")["error"]["code"] == "nothing_to_cancel"


def test_a_response_is_cancelled_from_another_connection(
    counting: tuple[Dial, Frame], alice: Person
) -> None:
    dial, created = counting
    other = dial(alice)
    resume = {"session_id": created["session_id"], "epoch": created["epoch"], "after": 0}
    other.send("session.create", session={}, resume=resume)
    response_id = other.until("response.created")[-1]["response_id"]
    other.send("response.cancel", response_id=response_id)
    assert other.until("response.cancelled")[-1]["response_id"] == response_id
    wait_until(lambda: Response.objects.get().status == "cancelled")


def test_a_stranger_cannot_cancel(counting: tuple[Dial, Frame], mallory: Person) -> None:
    dial, _ = counting
    stranger = dial(mallory)
    stranger.create_session(agent="echo")
    refusals = []
    for response_id in (Response.objects.get().pk, "resp_unknown"):
        stranger.send("response.cancel", response_id=response_id)
        refusals.append(stranger.expect("session.error")["error"])
    assert refusals[0]["code"] == refusals[1]["code"] == "nothing_to_cancel"
    assert refusals[0]["message"] == refusals[1]["message"]
    assert Response.objects.get().cancel_requested_at is None


def test_a_member_cancels_a_response_of_the_chat(dial: Dial, alice: Person, bob: Person) -> None:
    chat = shared_chat(alice, bob, agents=("slow",), trigger="always")
    asker, member = dial(alice), dial(bob)
    asker.create_session(chat=chat.pk)
    member.create_session(chat=chat.pk)
    asker.ask("Count")
    response_id = member.until("response.delta")[-1]["response_id"]
    member.send("response.cancel", response_id=response_id)
    ends = [client.until(*TERMINAL)[-1] for client in (asker, member)]
    assert [end["type"] for end in ends] == ["response.cancelled"] * 2
    assert ends[0]["partial_output"] == ends[1]["partial_output"]
    by_bob = (str(bob.user.pk), "bob")
    assert [(end["user_id"], end["username"]) for end in ends] == [by_bob] * 2
    asker.send("response.cancel", response_id=response_id)
    assert asker.until("session.error")[-1]["error"]["code"] == "nothing_to_cancel"
    assert Response.objects.get().cancel_requested_by == bob.user


def test_a_member_receives_that_the_text_of_a_response_is_replaced(
    dial: Dial, alice: Person, bob: Person
) -> None:
    """As a process says that takes a response over from its checkpoint."""
    chat = shared_chat(alice, bob, agents=("slow",), trigger="always")
    asker, member = dial(alice), dial(bob)
    asker.create_session(chat=chat.pk)
    member.create_session(chat=chat.pk)
    asker.ask("Count")
    delta = member.until("response.delta")[-1]
    response_id = delta["response_id"]
    text = fanout.text_message(chat_id=chat.pk, response_id=response_id, text="kept ")
    fanout.publish_from_thread(chat.pk, [text])
    while (received := member.until("response.delta")[-1])["offset"] != 0:
        pass
    assert (received["response_id"], received["delta"]["text"]) == (response_id, "kept ")
    asker.send("response.cancel", response_id=response_id)
    asker.until(*TERMINAL)
