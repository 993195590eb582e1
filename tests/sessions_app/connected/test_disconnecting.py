"""Daemons that an operator disconnects: their sockets, their answers, and what stays connected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from agents_app.models import Agent, AgentConnection
from audit_app.models import AuditRecord
from chat_app.log import fanout
from sessions_app.connected import disconnecting
from sessions_app.models import Response
from tests import factories
from tests.client import TERMINAL, wait_until
from tests.sessions_app.connected.daemons import Daemon, token_for, wait_for_daemons

if TYPE_CHECKING:
    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person

TRY_AGAIN_LATER = 1013


def connected(dial: Dial, owner: Person, *names: str) -> tuple[Daemon, dict[str, Frame]]:
    """Return a daemon, and the `session.created` of each of its agents."""
    daemon = Daemon(dial(path="/ws"))
    return daemon, {name: daemon.register(name, token_for(owner, name)) for name in names}


def asking_client(dial: Dial, who: Person) -> UampClient:
    """Return a client that asked the agent."""
    client = dial(who)
    client.create_session(agent="helper")
    client.ask("hello")
    return client


def operator() -> Client:
    client = Client()
    client.force_login(factories.superuser())
    return client


def page_of(row: Agent | AgentConnection) -> str:
    name = f"admin:agents_app_{row._meta.model_name}_operate"
    return reverse(name, args=[quote(row.pk), "disconnect"])


def disconnect(client: Client, row: Agent | AgentConnection) -> dict[str, str]:
    """Send the form of a row's page; return the form."""
    url = page_of(row)
    form = {"seen": client.get(url).context["form"].initial["seen"], "reason": "it hung"}
    assert client.post(url, form).status_code == 302
    return form


def ended(daemon: Daemon, created: Frame) -> None:
    end = daemon.socket.expect("session.end")
    assert end["session_id"] == created["session"]["id"]
    assert end["reason"] == "ended by an operator"


def test_a_disconnected_daemon_is_closed_once_and_may_connect_again(
    dial: Dial, alice: Person
) -> None:
    daemon, created = connected(dial, alice, "helper")
    agent, client = Agent.objects.get(name="helper"), operator()
    form = disconnect(client, agent)
    ended(daemon, created["helper"])
    assert daemon.socket.close_code() == TRY_AGAIN_LATER
    wait_for_daemons("helper", 0)
    (record,) = AuditRecord.objects.filter(action="daemon.disconnected")
    assert (record.object_id, record.reason) == (agent.pk, "it hung")
    assert record.detail == "Disconnect: 1 daemon"
    again, _ = connected(dial, alice, "helper")
    # The form that is sent twice does not disconnect the daemon that came back.
    assert client.post(page_of(agent), form).status_code == 302
    assert again.socket.settle() == []
    assert AgentConnection.objects.get().disconnect_requested_at is None
    assert AuditRecord.objects.filter(action="daemon.disconnected").count() == 1


def test_a_process_that_missed_the_signal_reads_the_row(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, created = connected(dial, alice, "helper")
    messages: list[Any] = []
    monkeypatch.setattr(fanout, "send_from_thread", lambda *message: messages.append(message))
    disconnect(operator(), Agent.objects.get(name="helper"))
    assert [message["type"] for _, message in messages] == [disconnecting.SIGNAL]
    ended(daemon, created["helper"])
    assert daemon.socket.close_code() == TRY_AGAIN_LATER


def test_an_answer_that_has_begun_ends_once_with_its_text(dial: Dial, alice: Person) -> None:
    daemon, _ = connected(dial, alice, "helper")
    client = asking_client(dial, alice)
    daemon.say(daemon.turn(), "half")
    client.until("response.delta")
    disconnect(operator(), Agent.objects.get(name="helper"))
    end = client.until(*TERMINAL)[-1]
    assert (end["type"], end["error"]["code"]) == ("response.error", "interrupted")
    assert not [frame for frame in client.settle() if frame["type"] in TERMINAL]
    row = Response.objects.get()
    assert (row.status, row.text) == ("failed", "half")


@pytest.mark.parametrize("of_agent", [True, False])
def test_an_answer_that_has_not_begun_moves_to_a_daemon_that_stays(
    dial: Dial, alice: Person, *, of_agent: bool
) -> None:
    first, _ = connected(dial, alice, "helper")
    client = asking_client(dial, alice)
    turn = first.turn()
    spare, _ = connected(dial, alice, "helper")
    row = AgentConnection.objects.order_by("pk").first()
    assert row is not None
    disconnect(operator(), row.agent if of_agent else row)
    if of_agent:
        # All of them go, and none takes what the others leave.
        end = client.until(*TERMINAL)[-1]
        assert (end["type"], end["error"]["code"]) == ("response.error", "agent_offline")
        wait_for_daemons("helper", 0)
        return
    again = spare.turn()
    assert again["messages"] == turn["messages"]
    spare.say(again, "here")
    spare.end(again)
    assert client.until(*TERMINAL)[-1]["type"] == "response.done"
    wait_for_daemons("helper", 1)


def test_the_other_agents_of_a_socket_stay(dial: Dial, alice: Person) -> None:
    daemon, created = connected(dial, alice, "helper", "other")
    row = AgentConnection.objects.get(agent__name="helper")
    disconnect(operator(), row)
    ended(daemon, created["helper"])
    wait_for_daemons("helper", 0)
    client = dial(alice)
    client.create_session(agent="other")
    client.ask("hello")
    turn = daemon.turn()
    daemon.say(turn, "here")
    daemon.end(turn)
    daemon.socket.expect("session.end")
    wait_until(lambda: Response.objects.get().status == "completed")
    # The agent may be registered again on the same socket.
    daemon.register("helper", token_for(alice, "helper"))
    wait_for_daemons("helper", 1)


def test_a_daemon_whose_socket_stays_stops_the_answers_of_its_agent(
    dial: Dial, alice: Person
) -> None:
    daemon, created = connected(dial, alice, "helper", "other")
    client = asking_client(dial, alice)
    turn = daemon.turn()
    daemon.say(turn, "half")
    client.until("response.delta")
    disconnect(operator(), AgentConnection.objects.get(agent__name="helper"))
    ended(daemon, created["helper"])
    stopped = daemon.socket.expect("response.cancel")
    assert stopped["session_id"] == turn["session_id"]
    # What it had sent before it knew is ignored.
    daemon.say(turn, "more")
    daemon.end(turn)
    end = client.until(*TERMINAL)[-1]
    assert end["error"]["code"] == "interrupted"
    assert daemon.socket.settle() == []
    assert Response.objects.get().text == "half"


def test_the_form_of_a_daemon_that_has_gone_does_nothing(dial: Dial, alice: Person) -> None:
    connected(dial, alice, "helper")
    row, client = AgentConnection.objects.get(), operator()
    form = disconnect(client, row)
    wait_for_daemons("helper", 0)
    answer = client.post(page_of(row), form, follow=True)
    assert "there was nothing left to do" in answer.content.decode()
    (record,) = AuditRecord.objects.filter(action="daemon.disconnected")
    assert (record.object_id, record.reason) == (row.agent_id, "it hung")
    assert f"connected since {row.connected_at:%Y-%m-%d %H:%M:%S}" in record.detail
    assert "from 127.0.0.1" in record.detail


def test_the_row_knows_the_token_that_a_daemon_uses_now(dial: Dial, alice: Person) -> None:
    daemon, created = connected(dial, alice, "helper")
    first = AgentConnection.objects.get().api_key_id
    assert first is not None
    token = token_for(alice, "helper")
    daemon.socket.send("session.update", session_id=created["helper"]["session"]["id"], token=token)
    daemon.socket.expect("session.updated")
    assert AgentConnection.objects.get().api_key_id not in {None, first}
