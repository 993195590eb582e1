"""A thread that several requests name at once, or after its session was closed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from django.utils import timezone

from chat_app.models import Message, Participant
from sessions_app.models import Response, Session
from sessions_app.session_states import close_session
from tests.gateway_app.a2a.calls import send
from tests.gateway_app.ag_ui.runs import run, run_input, text_of, the
from tests.live_server import shared_chat
from tests.threads import thread_pool

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial, Person

AT_ONCE = 8


def test_runs_that_begin_a_thread_at_once_are_all_answered(
    web: httpx.Client, alice: Person
) -> None:
    inputs = [run_input(f"Number {n}", thread="new", run=f"r{n}") for n in range(AT_ONCE)]

    with thread_pool(AT_ONCE) as pool:
        answers = list(pool.map(lambda body: run(web, "echo", body, alice), inputs))

    assert [text_of(events) for events in answers] == [f"Number {n}" for n in range(AT_ONCE)]
    assert {events[-1]["type"] for events in answers} == {"RUN_FINISHED"}
    assert Session.objects.get(transport="ag-ui").chat.events.exists()


def test_tasks_that_begin_a_context_at_once_are_all_answered(
    web: httpx.Client, alice: Person
) -> None:
    ask = partial(send, web, "echo", who=alice, contextId="new")

    with thread_pool(AT_ONCE) as pool:
        tasks = list(pool.map(ask, [f"Number {n}" for n in range(AT_ONCE)]))

    assert {task["status"]["state"] for task in tasks} == {"TASK_STATE_COMPLETED"}
    assert {task["contextId"] for task in tasks} == {"new"}
    assert Response.objects.count() == AT_ONCE
    assert Session.objects.count() == 1


def test_a_thread_continues_after_its_session_was_closed(web: httpx.Client, alice: Person) -> None:
    run(web, "echo", run_input("one", thread="old"), alice)
    send(web, "echo", "one", who=alice, contextId="old")
    close_all()

    seen = run(web, "echo", run_input("", thread="old"), alice, path="/connect")
    events = run(web, "echo", run_input("two", thread="old", run="r2"), alice)
    task = send(web, "echo", "two", who=alice, contextId="old")

    assert [message["content"] for message in the(seen, "MESSAGES_SNAPSHOT")["messages"]] == [
        "one",
        "one",
    ]
    assert text_of(events) == "two"
    assert Session.objects.filter(transport="ag-ui").values("chat").distinct().count() == 1
    assert Session.objects.filter(transport="a2a").values("chat").distinct().count() == 1
    assert (task["contextId"], task["status"]["state"]) == ("old", "TASK_STATE_COMPLETED")


def test_a_chat_is_joined_again_after_its_session_was_closed(
    web: httpx.Client, alice: Person
) -> None:
    chat = shared_chat(alice, trigger="always")
    headers = {**alice.headers, "X-Chat-Id": chat.pk}
    for text in ("one", "two", "three"):
        body = {"model": "echo", "messages": [{"role": "user", "content": text}]}

        answer = web.post("/v1/chat/completions", json=body, headers=headers)

        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"][0]["message"]["content"] == text
        close_all()


def test_a_thread_begins_anew_where_its_person_left_the_chat(
    web: httpx.Client, alice: Person
) -> None:
    run(web, "echo", run_input("one", thread="left"), alice)
    close_all()
    Participant.objects.filter(user=alice.user).update(left_at=timezone.now())

    events = run(web, "echo", run_input("two", thread="left", run="r2"), alice)

    assert text_of(events) == "two"
    assert Session.objects.values("chat").distinct().count() == 2


def test_a_thread_is_shown_with_one_version_of_an_answer(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    run(web, "echo", run_input("one", thread="again"), alice)
    answer = Message.objects.get(role="assistant")
    with dial(alice) as client:
        client.send("session.create", session={}, chat=answer.chat_id)
        client.until("capabilities")
        client.send("response.create", replaces=answer.pk)
        client.until("response.done")
        newest = client.until("message.created")[-1]["message"]["id"]

    seen = run(web, "echo", run_input("", thread="again"), alice, path="/connect")

    roles_and_ids = [
        (message["role"], message["id"]) for message in the(seen, "MESSAGES_SNAPSHOT")["messages"]
    ]
    assert [role for role, _ in roles_and_ids] == ["user", "assistant"]
    assert newest != answer.pk
    assert answer.pk not in {key for _, key in roles_and_ids}


def close_all() -> None:
    """Close the sessions, as those are that were idle for long."""
    for session in Session.objects.all():
        close_session(session.pk, reason="timeout")
