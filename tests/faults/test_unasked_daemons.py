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
UNMARKED: Final = """
import django
django.setup()
from sessions_app.models import Response
Response.objects.filter(finished_at=None).update(offered_fence=None)
"""
"""Leaves the row of a running answer as processes of an earlier release do."""
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
            check_a_kill_of_an_earlier_release(fixture)
            group.restart_server(ASKER)
            check_a_kill_after_the_question(fixture)
    except NoServices as missing:
        pytest.skip(str(missing))


def kill_before_the_question(group: ServerGroup, *, unmarked: bool = False) -> None:
    """Ask at the ASKER, and kill it before it has given a daemon the question."""
    client = client_of(group)
    with group.locked(DAEMONS):
        client.ask("hello")
        client.until("response.created")
        # It looks for a daemon, and does not learn of one.
        wait_until(lambda: group.is_waiting_for(DAEMONS))
        if unmarked:
            group.run(UNMARKED)
        group.kill_server(ASKER)


def check_a_kill_before_the_question(fixture: DaemonFixture) -> None:
    group = fixture.group
    daemon = daemon_at(fixture, HOLDER)
    kill_before_the_question(group)
    turn = daemon.turn()
    daemon.say(turn, "here")
    daemon.end(turn)
    wait_until(lambda: last_answer(group) == {"status": "completed", "text": "here"})
    daemon.socket.close()


def check_a_kill_of_an_earlier_release(fixture: DaemonFixture) -> None:
    group = fixture.group
    spare = daemon_at(fixture, HOLDER)
    kill_before_the_question(group, unmarked=True)
    wait_until(lambda: last_answer(group) == {"status": "failed", "text": ""})
    assert spare.socket.settle() == []
    spare.socket.close()


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
