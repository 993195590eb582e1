"""An operator at one server disconnects a daemon that another server holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx
import pytest

from tests.faults.daemon_matrix import DaemonFixture
from tests.faults.held_daemons import ASKER, HOLDER, client_of, daemon_at, end_of
from tests.faults.kill_servers import NoServices, running_servers

if TYPE_CHECKING:
    from tests.faults.kill_servers import ServerGroup

pytestmark = [pytest.mark.long, pytest.mark.redis, pytest.mark.timeout(400)]

SIGN_IN: Final = """
import django
django.setup()
from django.conf import settings
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from agents_app.models import Agent, AgentConnection
client = Client()
client.force_login(User.objects.create_superuser("operator"))
session, token = settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME
print(session, client.cookies[session].value, token)
agent = Agent.objects.get(connections__isnull=False)
print(reverse("admin:agents_app_agent_operate", args=[quote(agent.pk), "disconnect"]))
print(AgentConnection.objects.get().pk)
"""
TOKEN: Final = "t" * 32


def disconnect(group: ServerGroup) -> None:
    """Send the form of the admin to the server that does not hold the daemon."""
    session, value, token, path, row = group.run(SIGN_IN).split()[-5:]
    answer = httpx.post(
        f"http://127.0.0.1:{group.ports[ASKER]}{path}",
        data={"seen": row, "reason": "it hung", "csrfmiddlewaretoken": TOKEN},
        headers={"Cookie": f"{session}={value}; {token}={TOKEN}"},
        timeout=60,
        trust_env=False,
    )
    assert answer.status_code == 302, answer.text


def test_a_daemon_at_another_server_is_disconnected() -> None:
    try:
        with running_servers("postgres") as group:
            fixture = DaemonFixture(group)
            with client_of(group) as client:
                daemon = daemon_at(fixture, HOLDER)
                client.ask("hello")
                daemon.say(daemon.turn(), "half")
                client.until("response.delta")
                disconnect(group)
                assert daemon.socket.expect("session.end")["reason"] == "ended by an operator"
                daemon.socket.expect("response.cancel")
                assert daemon.socket.close_code() == 1013
                end = end_of(client)
                assert (end["type"], end["error"]["code"]) == ("response.error", "interrupted")
                client.ask("anyone?")
                assert end_of(client)["error"]["code"] == "agent_offline"
            assert group.rows("agents_app_agentconnection", "id") == []
            assert [row["status"] for row in group.rows("sessions_app_response", "status")] == [
                "failed",
                "failed",
            ]
    except NoServices as missing:
        pytest.skip(str(missing))
