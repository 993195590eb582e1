"""The starting point of an error test."""

import pytest
from pytest_django import Settings

from tests.live_server import Dial, Person
from tests.sessions_app.transports.errors.scenes import Scene


@pytest.fixture
def scene(dial: Dial, alice: Person, bob: Person, settings: Settings) -> Scene:
    """Give alice on a socket, and bob elsewhere."""
    client = dial(alice)
    session_id = client.create_session(agent="echo")["session_id"]
    return Scene(client, session_id, alice, bob, dial, settings)
