"""An agent that works for another one goes on in another process: its progress is still shown."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import F
from django.utils import timezone

from sessions_app.models import Response
from tests.sessions_app.connected.daemons import Daemon, token_for
from tests.sessions_app.turn.delegation import answer_text, doer, task_for

if TYPE_CHECKING:
    from tests.live_server import Dial, Person


def test_the_progress_of_a_helper_that_moved_reaches_the_asker(dial: Dial, alice: Person) -> None:
    daemon = Daemon(dial(path="/ws"))
    daemon.register("helper", token_for(alice, "helper"))
    doer("boss", "helper")
    client = dial(alice)
    client.create_session(agent="boss")
    client.ask(task_for("helper", "count"))
    daemon.turn()
    # As a process does that gives the response to this one, which claims it from its row.
    Response.objects.filter(agent__name="helper").update(
        fence=F("fence") + 1, status="queued", lease_until=timezone.now() + timedelta(hours=1)
    )
    again = daemon.turn()
    daemon.send(again, "progress", target="response", message="half")
    daemon.say(again, "one two")
    frames = client.until("progress", "response.done")
    frames += client.until("response.delta", "response.done")
    daemon.end(again)
    frames += client.until("response.done")

    (progress,) = [frame for frame in frames if frame["type"] == "progress"]
    assert (progress["target"], progress["message"]) == ("tool", "helper: half")
    pieces = [frame["delta"] for frame in frames if frame["type"] == "response.delta"]
    progress_text = "".join(
        p["tool_progress"]["text"] for p in pieces if p["type"] == "tool_progress"
    )
    assert progress_text == "one two"
    assert answer_text(frames) == "received: one two"
    assert {row.status for row in Response.objects.all()} == {"completed"}
