"""A person who asks one server of a group, and daemons that are held by the other one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.client import TERMINAL, UampClient
from tests.faults.kill_daemons import AGENT
from tests.sessions_app.connected.daemon_socket import Daemon

if TYPE_CHECKING:
    from tests.client import Frame
    from tests.faults.daemon_matrix import DaemonFixture
    from tests.faults.kill_servers import ServerGroup

ASKER: Final = 0
HOLDER: Final = 1


def client_of(group: ServerGroup, **fields: Any) -> UampClient:
    """Return a client at the server of the asker, with a session of the agent."""
    headers = {"Authorization": f"Bearer {group.token}"}
    client = UampClient(f"ws://127.0.0.1:{group.ports[ASKER]}/uamp", headers=headers)
    client.create_session(agent=AGENT, **fields)
    return client


def daemon_at(fixture: DaemonFixture, server: int) -> Daemon:
    """Return a daemon that is registered at a server."""
    daemon = Daemon(UampClient(f"ws://127.0.0.1:{fixture.group.ports[server]}/ws"))
    daemon.register(AGENT, fixture.token)
    return daemon


def end_of(client: UampClient) -> Frame:
    """Return the terminal event of an answer."""
    return client.until(*TERMINAL)[-1]
