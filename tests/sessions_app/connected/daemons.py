"""Daemons of agents in the database of a test: their tokens and their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_app.models import Agent
from agents_app.rest.rights import ALL
from sessions_app.access import connect_tokens
from tests.client import wait_until
from tests.sessions_app.connected.daemon_socket import Daemon

if TYPE_CHECKING:
    from tests.live_server import Person

__all__ = ["Daemon", "token_for", "wait_for_daemons"]


def token_for(owner: Person, name: str) -> str:
    """Create a connect token of a person for an agent; a free name becomes theirs."""
    return connect_tokens.issue(owner.user.pk, name, by=ALL)[1].secret


def wait_for_daemons(name: str, count: int) -> None:
    """Wait until so many daemons are connected for an agent, by the rows."""
    rows = Agent.objects.get(name=name).connections
    wait_until(lambda: rows.count() == count)
