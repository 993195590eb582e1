"""A process dies before or after it gave a question to a daemon whose agent does not start over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.client import wait_until
from tests.faults.daemon_matrix import DaemonFixture
from tests.faults.held_daemons import ASKER, HOLDER, client_of, daemon_at
from tests.faults.kill_daemons import AGENT
from tests.faults.kill_servers import NoServices, running_servers

if TYPE_CHECKING:
    from tests.faults.kill_servers import ServerGroup

pytestmark = [pytest.mark.long, pytest.mark.redis, pytest.mark.timeout(400)]

ONCE: Final = f"""
import django
django.setup()
from agents_app.models import Agent
Agent.objects.filter(name={AGENT!r}).update(options={{"starts_over": False}})
"""
DAEMONS: Final = "agents_app_agentconnection"


def last_answer(group: ServerGroup) -> dict[str, Any]:
    """Return the status and the text of the newest response."""
    rows = group.rows("sessions_app_response", "created_at, status, text")
    newest = max(rows, key=lambda row: row["created_at"])
    return {name: newest[name] for name in ("status", "text")}


def test_a_question_moves_on_until_a_daemon_was_given_it() -> None:
    try:
        with running_servers("postgres") as group:
            fixture = DaemonFixture(group)
            group.run(ONCE)
            check_a_kill_before_the_question(fixture)
            group.restart_server(ASKER)
            check_a_kill_after_the_question(fixture)
    except NoServices as missing:
        pytest.skip(str(missing))


def check_a_kill_before_the_question(fixture: DaemonFixture) -> None:
    group = fixture.group
    daemon = daemon_at(fixture, HOLDER)
    client = client_of(group)
    with group.locked(DAEMONS):
        client.ask("hello")
        client.until("response.created")
        # It looks for a daemon, and does not learn of one.
        wait_until(lambda: group.is_waiting_for(DAEMONS))
        group.kill_server(ASKER)
    turn = daemon.turn()
    daemon.say(turn, "here")
    daemon.end(turn)
    wait_until(lambda: last_answer(group) == {"status": "completed", "text": "here"})
    daemon.socket.close()


def check_a_kill_after_the_question(fixture: DaemonFixture) -> None:
    group = fixture.group
    daemon = daemon_at(fixture, ASKER)
    client = client_of(group)
    client.ask("again")
    daemon.turn()
    spare = daemon_at(fixture, HOLDER)
    group.kill_server(ASKER)
    wait_until(lambda: last_answer(group) == {"status": "failed", "text": ""})
    assert spare.socket.settle() == []
    spare.socket.close()
