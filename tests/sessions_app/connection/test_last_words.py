"""The text shown of an answer is the stored one, however it ends and wherever it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chat_app.models import Message
from sessions_app.models import Response
from tests.client import TERMINAL, Frame, open_stream, output_text, text_of, wait_until
from tests.live_server import Dial, Person, quick_agent, shared_chat
from tests.sessions_app.connection.test_members import LossyLayer

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from tests.client import UampClient

WORDS = " ".join(f"w{number}é\U0001f600" for number in range(40))
ENDS = {"done": "echo", "cancelled": "slow", "error": "fail"}
LAYERS = {"whole": "", "lossy": f"{LossyLayer.__module__}.{LossyLayer.__name__}"}


@pytest.fixture(params=LAYERS)
def layer(request: pytest.FixtureRequest, settings: Settings) -> str:
    """Let the server's layer deliver everything, or lose half."""
    if backend := LAYERS[request.param]:
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": {}}}
    return str(request.param)


def joined(dial: Dial, who: Person, chat_id: str) -> UampClient:
    """Return a socket of a person with a session of a chat."""
    client = dial(who)
    client.create_session(chat=chat_id)
    client.settle()
    return client


def end_of(asker: UampClient, how: str) -> list[Frame]:
    """Have an answer end in a way, and return what its asker is sent until then."""
    asker.ask(WORDS)
    if how != "cancelled":
        return asker.until(*TERMINAL)
    frames = asker.until("response.delta")
    asker.send("response.cancel", response_id=frames[-1]["response_id"])
    return [*frames, *asker.until(*TERMINAL)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", ENDS)
def test_all_see_the_text_that_is_stored(
    layer: str, dial: Dial, alice: Person, bob: Person, how: str
) -> None:
    quick_agent("teller", ENDS[how], delay=0.004)
    chat = shared_chat(alice, bob, agents=("teller",), trigger="always")
    asker, member = (joined(dial, who, chat.pk) for who in (alice, bob))
    for turn in range(1, 4):
        asker_frames = end_of(asker, how)
        # A member is sent the answer by the chat's group, as one on another process is.
        seen = member.until(*TERMINAL)

        stored = Response.objects.get(pk=asker_frames[-1]["response_id"]).text
        assert stored
        assert asker_frames[-1]["type"] == seen[-1]["type"] == f"response.{how}"
        assert [text_of(frames) for frames in (asker_frames, seen)] == [stored, stored]
        assert [output_text(frames[-1]) for frames in (asker_frames, seen)] == [stored, stored]
        assert Message.objects.filter(role="assistant").count() == turn
        assert Message.objects.filter(role="assistant").latest("seq").content == stored
        for client in (asker, member):
            client.settle()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", ENDS)
def test_a_stream_shows_the_text_that_is_stored(
    layer: str, dial: Dial, web: httpx.Client, alice: Person, bob: Person, how: str
) -> None:
    quick_agent("teller", ENDS[how], delay=0.004)
    chat = shared_chat(alice, bob, agents=("teller",), trigger="always")
    asker = joined(dial, alice, chat.pk)
    create = {"type": "session.create", "event_id": "evt_1", "session": {}, "chat": chat.pk}
    response = web.post("/events", json=create, headers=bob.headers)
    headers = {**bob.headers, "X-Session-ID": response.headers["X-Session-ID"]}
    with open_stream(web, "GET", "/events/stream", headers=headers) as stream:
        end_of(asker, how)
        frames = [event.data for event in stream.until(*TERMINAL)]

    stored = Response.objects.get(pk=frames[-1]["response_id"]).text
    assert stored
    assert text_of(frames) == output_text(frames[-1]) == stored


@pytest.mark.parametrize("how", ENDS)
def test_a_client_that_returns_after_the_end_receives_the_rest_of_the_text(
    dial: Dial, web: httpx.Client, alice: Person, how: str
) -> None:
    quick_agent("teller", ENDS[how], delay=0.004)
    first = dial(alice)
    created = first.create_session(agent="teller")
    first.ask(WORDS)
    first_frames = first.until("response.delta")
    response_id = first_frames[-1]["response_id"]
    first.cut()
    second = dial(alice)
    if how == "cancelled":
        path = f"/api/v1/responses/{response_id}/cancel"
        assert web.post(path, headers=alice.headers).status_code == 202
    wait_until(lambda: Response.objects.filter(pk=response_id, finished_at__isnull=False).exists())
    resume = {
        "session_id": created["session_id"],
        "epoch": created["epoch"],
        "after": max([created["seq"], *(frame.get("seq", 0) for frame in first_frames)]),
    }
    second.send("session.create", session={}, resume=resume)
    frames = second.until(*TERMINAL)

    stored = Response.objects.get(pk=response_id).text
    assert frames[-1]["type"] == f"response.{how}"
    assert output_text(frames[-1]) == stored
    assert text_of([*first_frames, *frames]) == stored


def test_the_text_of_a_failed_answer_that_was_deleted_has_no_reader(
    dial: Dial, alice: Person, web: httpx.Client
) -> None:
    quick_agent("teller", "fail")
    chat = shared_chat(alice, agents=("teller",), trigger="always")
    asker = dial(alice)
    created = asker.create_session(chat=chat.pk)
    partial_text = output_text(end_of(asker, "error")[-1])
    answer = asker.until("message.created")[-1]["message"]["id"]
    path = f"/api/v1/messages/{answer}"
    assert web.delete(path, headers=alice.headers).status_code == 204
    late = dial(alice)
    resume = {"session_id": created["session_id"], "epoch": created["epoch"], "after": 0}
    late.send("session.create", session={}, resume=resume)
    frames = late.until("message.deleted")
    end = next(frame for frame in frames if frame["type"] == "response.error")
    assert end["partial_output"] == []
    assert partial_text
    assert partial_text not in str(frames)
