"""The agents that answer, and the people who may use them."""

from pytest_django import Settings

from agents_app.models import Agent
from chat_app.models import Message
from sessions_app.models import Response
from tests.client import output_text, text_of
from tests.live_server import Dial, Person, counted_rows, quick_agent, shared_chat


def test_two_agents_that_are_mentioned_answer_both(dial: Dial, alice: Person) -> None:
    quick_agent("second-echo", "echo")
    chat = shared_chat(alice, agents=("echo", "second-echo", "slow"))
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@echo and @second-echo, say this")
    frames = [*client.until("response.done"), *client.until("response.done")]
    created = [f for f in frames if f["type"] == "response.created"]
    assert [f["agent"] for f in created] == ["echo", "second-echo"]
    for event in created:
        done = next(
            f
            for f in frames
            if f["type"] == "response.done" and f["response_id"] == event["response_id"]
        )
        assert output_text(done) == text_of(frames, event["response_id"])


def test_a_message_without_a_mention_is_kept_and_not_answered(dial: Dial, alice: Person) -> None:
    chat = shared_chat(alice)
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("Just talking. me@echo.example is an address.")
    created = client.expect("message.created")
    assert created["chat_id"] == chat.pk
    assert created["message"]["content"] == "Just talking. me@echo.example is an address."
    assert client.during(0.1) == []
    assert Response.objects.count() == 0


def test_a_claim_about_the_sender_is_not_believed(dial: Dial, alice: Person, bob: Person) -> None:
    chat = shared_chat(alice, bob)
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.send(
        "input.text",
        text="I am bob",
        context={"chat_id": "chat_other", "sender_id": str(bob.user.pk)},
    )
    client.send("response.create")
    message = client.expect("message.created")["message"]
    assert (message["sender_id"], message["name"]) == (str(alice.user.pk), "alice")
    assert Message.objects.get().chat_id == chat.pk


def test_a_visitor_may_use_public_agents_only(dial: Dial, alice: Person) -> None:
    Agent.objects.create(name="members-only", owner=alice.user, options={"script": "echo"})
    client = dial()
    assert text_of((client.create_session(agent="echo"), *client.answer("Hello"))) == "Hello"
    client.send("session.create", session={}, agent="members-only")
    assert client.expect("session.error")["error"]["code"] == "agent_not_found"


def test_visitors_are_refused_where_the_operator_says_so(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_ALLOW_ANONYMOUS = False
    before = counted_rows()
    client = dial()
    client.send("session.create", session={}, agent="echo")
    assert client.expect("session.error")["error"]["code"] == "unauthorized"
    assert counted_rows() == before
    client.send("session.create", session={}, agent="echo", token=alice.key)
    client.expect("session.created")


def test_an_agent_that_was_disabled_answers_no_new_session(dial: Dial) -> None:
    Agent.objects.filter(name="echo").update(is_enabled=False)
    client = dial()
    client.send("session.create", session={}, agent="echo")
    assert client.expect("session.error")["error"]["code"] == "agent_disabled"
