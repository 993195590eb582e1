"""A request of another protocol makes one frame of each client event, as a socket's client does."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.gateway_app.completions.requests import HELLO, ask
from uamp.codec import frames
from uamp.events import CLIENT_EVENTS

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.any_database


class CountingEncoder:
    """An encoder of frames that counts the client events among them, by type."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self._encoder = frames._encoder

    def encode(self, value: Any) -> bytes:
        """Encode an event, which may be a dict, or a part of one."""
        if isinstance(value, dict):
            name = value.get("type")
        else:
            name = getattr(getattr(value, "__struct_config__", None), "tag", None)
        if name in CLIENT_EVENTS:
            self.counted[str(name)] += 1
        return self._encoder.encode(value)


@pytest.mark.parametrize(
    ("headers", "times"),
    [
        pytest.param({}, 1, id="once"),
        # A repeat is recognised before the events are sent.
        pytest.param({"Idempotency-Key": "1"}, 2, id="with a key"),
    ],
)
def test_each_event_of_a_request_becomes_one_frame(
    web: httpx.Client,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
    times: int,
) -> None:
    encoder, encode = CountingEncoder(), msgspec.json.encode
    monkeypatch.setattr(frames, "_encoder", encoder)
    # Digests are made of structs with this function, frames would be made of dicts.
    monkeypatch.setattr(
        msgspec.json,
        "encode",
        lambda value, **options: (
            encoder.encode(value) if isinstance(value, dict) else encode(value, **options)
        ),
    )
    assert ask(web, "echo", HELLO, alice, **headers).status_code == 200
    assert encoder.counted == {"session.create": times, "response.create": times}
