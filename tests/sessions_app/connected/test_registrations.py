"""Daemons register agents: whose name it is, with which token, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from websockets.exceptions import InvalidStatus

from agents_app.models import Agent, AgentConnection, ProcessLease
from agents_app.rest.rights import Rights
from sessions_app.access import keys
from sessions_app.models import ApiKey
from tests.client import wait_until
from tests.live_server import Person, person, quick_agent, shared_chat
from tests.sessions_app.connected.daemons import Daemon, token_for, wait_for_daemons

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.live_server import Dial


def test_one_socket_registers_many_agents_with_a_token_each(dial: Dial, alice: Person) -> None:
    daemon = Daemon(dial(path="/ws?token=" + token_for(alice, "first")))
    first = daemon.register("first", token_for(alice, "first"))
    second = daemon.register("Second", token_for(alice, "second"))
    assert first["session_id"] == first["session"]["id"] != second["session_id"]
    agent = Agent.objects.get(name="second")
    # The daemon's spelling is repeated: the reference compares it.
    assert (second["session"]["agent_id"], second["agent"]) == (agent.pk, "Second")
    assert Agent.objects.get(name="first").is_online
    assert agent.is_online
    daemon.socket.close()
    wait_until(lambda: not Agent.objects.get(name="first").is_online)
    wait_until(lambda: not AgentConnection.objects.exists())


def test_a_key_that_is_not_limited_to_agents_registers_none(dial: Dial, alice: Person) -> None:
    """A mistyped name would make an agent."""
    token = token_for(alice, "helper")
    daemon = Daemon(dial())
    for name in ("helper", "brand-new"):
        daemon.socket.send("session.create", session={"agent": name, "token": alice.key})
        error = daemon.socket.expect("session.error")["error"]
        assert (error["code"], "connect token" in error["message"]) == ("forbidden", True)
    assert not Agent.objects.filter(name="brand-new").exists()
    daemon.register("helper", token)


def test_a_key_for_several_agents_registers_them(dial: Dial, alice: Person) -> None:
    names = ("first", "second")
    for name in names:
        token_for(alice, name)
    ids = frozenset(Agent.objects.filter(name__in=names).values_list("pk", flat=True))
    rights = Rights(scopes=frozenset({"agents:connect"}), agents=ids)
    key = keys.make_key(alice.user.pk, keys.KeyRequest(name="both", rights=rights)).secret
    daemon = Daemon(dial())
    for name in names:
        daemon.register(name, key)
    assert daemon.refused("third", key) == "forbidden"


def test_daemons_count_as_their_owners_connections_not_as_visitors(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    """A daemon shows its token when it registers, after it has connected without one."""
    settings.UAMP_CONNECTIONS_PER_ADDRESS = 2
    settings.UAMP_CONNECTIONS_PER_USER = 3
    token = token_for(alice, "helper")
    daemons = [Daemon(dial()) for _ in range(2)]
    with pytest.raises(InvalidStatus):
        dial()
    for daemon in daemons:
        daemon.register("helper", token)
    third = Daemon(dial())
    third.register("helper", token)
    assert Daemon(dial()).refused("helper", token) == "rate_limited"
    assert AgentConnection.objects.count() == 3


def test_a_name_that_is_not_its_own_is_refused(dial: Dial, alice: Person, bob: Person) -> None:
    quick_agent("hosted", "echo")
    theirs = token_for(bob, "of-bob")
    mine = token_for(alice, "mine")
    narrow = keys.make_key(
        alice.user.pk, keys.KeyRequest(name="n", rights=Rights(scopes=frozenset({"chats:read"})))
    ).secret
    daemon = Daemon(dial())
    daemon.register("mine", mine)
    assert daemon.refused("of-bob", mine) == "forbidden"
    assert daemon.refused("hosted", mine) == "forbidden"
    assert daemon.refused("other", mine) == "forbidden"
    assert daemon.refused("mine", theirs) == "forbidden"
    assert daemon.refused("free", narrow) == "forbidden"
    assert daemon.refused("mine", "uak_00000000_wrong") == "unauthorized"
    assert daemon.refused("a b", mine) == "forbidden"
    # Nothing was made, and the one that is registered stays so.
    assert not Agent.objects.filter(name__in=["other", "free"]).exists()
    assert AgentConnection.objects.count() == 1
    assert daemon.socket.settle() == []


def test_an_agent_is_registered_once_on_a_socket(dial: Dial, alice: Person) -> None:
    token = token_for(alice, "helper")
    daemon = Daemon(dial())
    daemon.register("helper", token)
    assert daemon.refused("helper", token) == "session_exists"
    assert daemon.refused("HELPER", token) == "session_exists"
    assert AgentConnection.objects.count() == 1


def test_a_connect_token_opens_no_session_of_a_chat(dial: Dial, alice: Person) -> None:
    token = token_for(alice, "helper")
    socket = dial(path="/uamp", headers={"Authorization": f"Bearer {token}"})
    # The form of §10.4 registers too: the token is for nothing else.
    socket.send("session.create", uamp_version="1.0", session={}, agent="helper")
    created = socket.expect("session.created")
    socket.expect("capabilities")
    socket.send("input.text", session_id=created["session_id"], text="hello")
    assert socket.expect("session.error")["error"]["code"] == "invalid_event"
    socket.send("session.create", uamp_version="1.0", session={}, agent="echo")
    assert socket.expect("session.error")["error"]["code"] == "forbidden"
    socket.send("chats.watch")
    assert socket.expect("session.error")["error"]["code"] == "forbidden"


def test_a_revoked_token_ends_the_registration(dial: Dial, alice: Person) -> None:
    token = token_for(alice, "helper")
    daemon = Daemon(dial())
    daemon.register("helper", token)
    daemon.register("kept", token_for(alice, "kept"))
    keys.revoke_key(ApiKey.objects.get(prefix=token[:12]), by=None)
    assert daemon.socket.until("session.error")[-1]["error"]["code"] == "unauthorized"
    wait_for_daemons("helper", 0)
    wait_for_daemons("kept", 1)


def test_an_agent_that_is_given_to_another_person_is_registered_no_longer(
    dial: Dial, alice: Person, bob: Person
) -> None:
    daemon = Daemon(dial())
    token = token_for(alice, "helper")
    daemon.register("helper", token)
    # A row that was read before the daemon came does not overwrite that it is there.
    agent = Agent.objects.get(name="helper")
    agent.is_connected = False
    agent.description = "changed"
    agent.save()
    assert Agent.objects.get(name="helper").is_online
    agent.owner = bob.user
    agent.save()
    assert daemon.socket.until("session.error")[-1]["error"]["code"] == "forbidden"
    wait_for_daemons("helper", 0)
    assert daemon.refused("helper", token) == "forbidden"


def test_connections_that_another_process_deleted_are_written_anew(
    dial: Dial, alice: Person
) -> None:
    first = Daemon(dial())
    first.register("first", token_for(alice, "first"))
    # What another process does that sees a lease end; this one goes on.
    ProcessLease.objects.all().delete()
    second = Daemon(dial())
    second.register("second", token_for(alice, "second"))
    wait_for_daemons("first", 1)
    wait_for_daemons("second", 1)
    assert first.socket.settle() == []


def test_a_daemon_ends_its_registration(dial: Dial, alice: Person) -> None:
    daemon = Daemon(dial())
    created = daemon.register("helper", token_for(alice, "helper"))
    daemon.socket.send("session.end", session_id=created["session_id"])
    daemon.socket.expect("session.end")
    wait_for_daemons("helper", 0)
    # It may come back on the same socket.
    daemon.register("helper", token_for(alice, "helper"))


def test_a_silent_daemon_is_disconnected(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_DAEMON_SILENCE_SECONDS = 0.5
    settings.UAMP_LEASE_SECONDS = 1.5
    daemon = Daemon(dial())
    daemon.register("helper", token_for(alice, "helper"))
    assert daemon.socket.close_code() == 4408
    wait_for_daemons("helper", 0)


def test_an_agent_has_so_many_daemons(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_DAEMONS_PER_AGENT = 1
    token = token_for(alice, "one")
    Daemon(dial()).register("one", token)
    assert Daemon(dial()).refused("one", token) == "too_many_sessions"


def test_members_see_an_agent_come_and_go(dial: Dial, alice: Person, web: object) -> None:
    del web
    token = token_for(alice, "helper")
    chat = shared_chat(alice, agents=("helper",))
    reader = dial(alice)
    reader.create_session(chat=chat.pk)
    daemon = Daemon(dial())
    daemon.register("helper", token)
    online = reader.until("presence.online")[-1]
    assert (online["username"], online["kind"], online["chat_id"]) == ("helper", "agent", chat.pk)
    # A second daemon changes nothing, nor does its end.
    second = Daemon(dial())
    second.register("helper", token)
    second.socket.close()
    wait_for_daemons("helper", 1)
    daemon.socket.cut()
    offline = reader.until("presence.offline", "presence.online")[-1]
    assert (offline["type"], offline["username"]) == ("presence.offline", "helper")


def test_a_daemon_makes_its_person_not_online(dial: Dial, alice: Person) -> None:
    bob = person("bob")
    chat = shared_chat(alice, bob, agents=())
    reader = dial(bob)
    reader.create_session(chat=chat.pk)
    Daemon(dial(headers={"Authorization": f"Bearer {token_for(alice, 'h')}"})).register(
        "h", token_for(alice, "h")
    )
    assert not [f for f in reader.settle() if f["type"].startswith("presence.")]
