"""A speech vendor, and helpers for audio in Realtime events."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from tests.realtime_vendor import RealtimeVendor, realtime_vendor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from tests.gateway_app.realtime.client import RealtimeClient, Shown

GA = "v1/realtime?model=speaker"
BETA = "agents/speaker/realtime"


@pytest.fixture
def vendor(settings: Settings) -> Iterator[RealtimeVendor]:
    """Run a vendor whose address the operator allows."""
    with realtime_vendor() as running:
        settings.UAMP_MODEL_ALLOW_HOSTS = [running.url.split("/")[2]]
        yield running


def append(client: RealtimeClient, samples: bytes) -> None:
    """Append samples to the buffer."""
    client.send("input_audio_buffer.append", audio=base64.b64encode(samples).decode())


def manual(client: RealtimeClient, **output: Any) -> Shown:
    """Turn the detection of turns off; return the session."""
    audio = {"input": {"turn_detection": None}, "output": output}
    updated = client.ask("session.update", session={"type": "realtime", "audio": audio})
    assert updated["type"] == "session.updated", updated
    session: Shown = updated["session"]
    return session


def sound_of(events: list[Shown], kind: str = "response.output_audio.delta") -> bytes:
    """Return the sound of deltas."""
    return b"".join(base64.b64decode(e["delta"]) for e in events if e["type"] == kind)
