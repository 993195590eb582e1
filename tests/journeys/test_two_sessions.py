"""Several sessions on one socket, and answers that begin by themselves (UAMP §10.4)."""

import pytest
from pytest_django import Settings

from sessions_app.models import Response, Session
from tests.client import text_of
from tests.live_server import Dial, Person, quick_agent

pytestmark = pytest.mark.any_database


@pytest.mark.long
def test_two_sessions_on_one_socket_as_printed(
    dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_AUTO_RESPOND_MS = 100
    quick_agent("alice-bot", "echo")
    quick_agent("bob-bot", "echo")
    client = dial()
    first = client.create_session(agent="alice-bot", token=alice.key)
    second = client.create_session(agent="bob-bot", token=bob.key)
    first_id, second_id = first["session_id"], second["session_id"]
    assert first_id != second_id
    assert (first["agent"], second["agent"]) == ("alice-bot", "bob-bot")
    owners = dict(Session.objects.values_list("id", "user__username"))
    assert owners == {first_id: "alice", second_id: "bob"}
    client.send("input.text", session_id=first_id, text="Hi Alice")
    frames = client.until("response.done")
    assert {frame["session_id"] for frame in frames} == {first_id}
    assert text_of(frames) == "Hi Alice"
    client.send("session.update", session_id=first_id, token=alice.key)
    assert client.expect("session.updated")["session_id"] == first_id


def test_a_late_response_create_adopts_the_response_that_began_by_itself(
    dial: Dial, settings: Settings
) -> None:
    settings.UAMP_AUTO_RESPOND_MS = 50
    quick_agent("counter", "slow")
    client = dial()
    session_id = client.create_session(agent="counter")["session_id"]
    client.create_session(agent="echo")
    client.send("input.text", session_id=session_id, text="Count")
    response_id = client.expect("response.created")["response_id"]
    client.send("response.create", session_id=session_id)
    again = next(f for f in client.until("response.created") if f["type"] == "response.created")
    assert again["response_id"] == response_id
    client.send("response.cancel", session_id=session_id)
    client.until("response.cancelled")
    assert Response.objects.count() == 1


def test_with_response_create_nothing_begins_by_itself(dial: Dial, settings: Settings) -> None:
    settings.UAMP_AUTO_RESPOND_MS = 50
    client = dial()
    session_id = client.create_session(agent="echo")["session_id"]
    client.create_session(agent="echo")
    client.answer("Hello", session_id=session_id)
    assert client.during(0.2) == []
    assert Response.objects.count() == 1


def test_nothing_begins_by_itself_where_it_could_be_charged_twice(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_AUTO_RESPOND_MS = 50
    priced = quick_agent("priced", "echo")
    priced.pricing = {"per_answer": "0.01"}
    priced.save()
    client = dial(alice)
    session_id = client.create_session(agent="priced")["session_id"]
    other_id = client.create_session(agent="echo")["session_id"]
    image = {"image": "iVBORw0KGgo=", "format": "png"}
    # Money would be due; media is not a question; text followed by more input is not complete.
    client.send("input.text", session_id=session_id, text="Hello")
    client.send("input.image", session_id=other_id, **image)
    client.send("input.text", session_id=other_id, text="Look")
    client.send("input.image", session_id=other_id, **image)
    assert client.during(0.3) == []
    assert not Response.objects.exists()
    # A client that sends response.create is never answered without it.
    client.send("response.create", session_id=other_id)
    client.until("response.done", "session.error")
    had = Response.objects.count()
    client.send("input.text", session_id=other_id, text="And this?")
    assert client.during(0.3) == []
    assert Response.objects.count() == had


def test_a_single_session_waits_for_response_create(dial: Dial, settings: Settings) -> None:
    settings.UAMP_AUTO_RESPOND_MS = 50
    client = dial()
    client.create_session(agent="echo")
    client.send("input.text", text="Hello")
    assert client.during(0.2) == []
    client.send("response.create")
    assert text_of(client.until("response.done")) == "Hello"


def test_turns_of_two_sessions_run_at_once_and_keep_apart(dial: Dial) -> None:
    quick_agent("echo-slowly", "echo", delay=0.02)
    client = dial()
    ids = [client.create_session(agent="echo-slowly")["session_id"] for _ in range(2)]
    for session_id, text in zip(ids, ("a b c d e f", "1 2 3 4 5 6"), strict=True):
        client.ask(text, session_id=session_id)
    frames = [*client.until("response.done"), *client.until("response.done")]
    for session_id, text in zip(ids, ("a b c d e f", "1 2 3 4 5 6"), strict=True):
        assert text_of(f for f in frames if f["session_id"] == session_id) == text
    order = [frame["session_id"] for frame in frames if frame["type"] == "response.delta"]
    assert order.index(ids[1]) < len(order) - 1 - order[::-1].index(ids[0])


def test_ending_one_session_leaves_the_other(dial: Dial) -> None:
    client = dial()
    session_id = client.create_session(agent="echo")["session_id"]
    other_id = client.create_session(agent="echo")["session_id"]
    client.send("session.end", session_id=session_id)
    assert client.expect("session.end")["session_id"] == session_id
    # Only one session is open now, so its id may be left out.
    frames = client.answer("Hello")
    assert {frame["session_id"] for frame in frames} == {other_id}
