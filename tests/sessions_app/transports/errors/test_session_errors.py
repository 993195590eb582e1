"""Errors about sessions: reused ids, several on one connection, expired tokens."""

import base64
import threading
from datetime import timedelta

from django.utils import timezone

from chat_app.models import Content
from sessions_app.access.auth import create_api_key
from sessions_app.models import ApiKey
from tests.client import text_of
from tests.live_server import counted_rows
from tests.sessions_app.transports.errors.scenes import Scene


def test_a_used_session_id_is_refused_to_the_client_that_used_it(scene: Scene) -> None:
    scene.client.create_session(agent="echo", session={"id": "mine"})
    scene.client.send("session.end", session_id="mine")
    scene.client.expect("session.end")
    for session_id in ("mine", scene.session_id):
        client = scene.dial(scene.alice)
        client.send("session.create", session={"id": session_id})
        assert client.expect("session.error")["error"]["code"] == "session_exists"


def test_with_several_sessions_an_event_names_its_own(scene: Scene) -> None:
    scene.client.create_session(agent="echo")
    scene.client.send("input.text", text="for whom?")
    assert scene.client.expect("session.error")["error"]["code"] == "session_required"


def test_a_token_that_expires_stops_the_session_until_a_new_one_comes(scene: Scene) -> None:
    key = create_api_key(scene.alice.user, name="short")
    row = ApiKey.objects.filter(name="short")
    row.update(expires_at=timezone.now() + timedelta(seconds=0.6))
    client = scene.dial()
    session_id = client.create_session(agent="echo", token=key)["session_id"]
    assert text_of(client.answer("before")) == "before"
    threading.Event().wait(0.7)
    before = counted_rows()
    client.send("input.text", text="after")
    codes = [frame["error"]["code"] for frame in client.settle()]
    assert codes in (["token_expired"], ["token_expiring", "token_expired"])
    assert counted_rows() == before
    client.send("session.update", session_id=session_id, token=scene.alice.key)
    client.expect("session.updated")
    assert text_of(client.answer("again")) == "again"


def test_a_refused_medium_is_not_stored(scene: Scene) -> None:
    data = base64.b64encode(b"GIF89a not a picture").decode()
    scene.client.send("input.image", image=data, format="png")
    scene.client.send("response.create")
    assert scene.client.expect("session.error")["error"]["code"] == "invalid_media"
    assert Content.objects.count() == 0
    # The refused turn is gone; the next one stands for itself.
    assert text_of(scene.client.answer("Hello")) == "Hello"
