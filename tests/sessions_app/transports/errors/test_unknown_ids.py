"""Other people's sessions, chats, agents and files are reported as unknown."""

import json

import uamp
from agents_app.models import Agent
from sessions_app.models import Session
from tests import factories
from tests.client import Frame
from tests.live_server import counted_rows, shared_chat
from tests.sessions_app.transports.errors.scenes import Scene
from uamp.documents.examples import EXAMPLES
from uamp.events import CLIENT_EVENTS


def reported_without_ids(frame: Frame, *ids: str) -> str:
    """Return a frame with what must differ taken out."""
    frame = {**frame, "event_id": "", "timestamp": 0}
    frame["error"] = {**frame["error"], "details": {"event_id": ""}}
    text = json.dumps(frame)
    for id_ in ids:
        text = text.replace(id_, "ID")
    return text


SCOPED_EVENTS = [
    name
    for name, event in EXAMPLES.items()
    if name in CLIENT_EVENTS and name not in {"session.create", "ping", "chats.watch"}
]


def test_a_session_of_another_person_is_as_unknown_as_none(scene: Scene) -> None:
    foreign = scene.dial(scene.bob).create_session(agent="echo")["session_id"]
    unknown = "sess_" + "0" * 32
    before = counted_rows()
    for name in SCOPED_EVENTS:
        example = uamp.to_dict(EXAMPLES[name])
        answers = []
        for session_id in (foreign, unknown):
            event = {**example, "event_id": "e", "session_id": session_id}
            scene.client.send_raw(json.dumps(event))
            answers.append(
                reported_without_ids(scene.client.expect("session.error"), foreign, unknown)
            )
        assert answers[0] == answers[1]
        assert '"code": "unknown_session"' in answers[0], name
    assert counted_rows() == before
    assert Session.objects.get(pk=foreign).status == "active"


def test_a_chat_of_strangers_is_as_unknown_as_none(scene: Scene) -> None:
    foreign, unknown = shared_chat(scene.bob).pk, "chat_" + "0" * 32
    before = counted_rows()
    answers = []
    for chat_id in (foreign, unknown):
        scene.client.send("session.create", session={}, chat=chat_id)
        answers.append(reported_without_ids(scene.client.expect("session.error"), foreign, unknown))
    assert answers[0] == answers[1]
    assert '"code": "chat_not_found"' in answers[0]
    assert counted_rows() == before


def test_an_agent_of_another_person_is_as_unknown_as_none(scene: Scene) -> None:
    Agent.objects.create(name="private-bot", owner=scene.bob.user, options={"script": "echo"})
    answers = []
    for name in ("private-bot", "unknown-bot"):
        scene.client.send("session.create", session={}, agent=name)
        answers.append(
            reported_without_ids(scene.client.expect("session.error"), "private-bot", "unknown-bot")
        )
    assert answers[0] == answers[1]
    assert scene.dial(scene.bob).create_session(agent="private-bot")["agent"] == "private-bot"


def test_a_content_of_another_person_is_as_unknown_as_none(scene: Scene) -> None:
    foreign = str(factories.content(scene.bob.user).pk)
    unknown = "550e8400-e29b-41d4-a716-446655440000"
    answers = []
    for content_id in (foreign, unknown):
        scene.client.send("input.image", image={"url": f"/api/content/{content_id}"})
        scene.client.send("response.create")
        answers.append(reported_without_ids(scene.client.expect("session.error"), foreign, unknown))
    assert answers[0] == answers[1]
    assert '"code": "content_not_found"' in answers[0]
