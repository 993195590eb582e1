"""A client that sends too fast is read more slowly; nothing is refused and no other one waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sessions_app.access.pacing import Pace
from tests.live_server import alice, bob, demo, dial, impatience

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.live_server import Dial, Person

__all__ = ["alice", "bob", "demo", "dial", "impatience"]


def test_a_burst_is_read_at_once_and_the_rest_at_the_pace() -> None:
    pace = Pace(per_minute=60, burst=3, left=3, at=100.0)

    assert [pace.wait(100.0) for _ in range(5)] == [0, 0, 0, 1, 2]
    # What was read late counts; after a while without events there is a burst again.
    assert pace.wait(103.0) == 0
    assert [pace.wait(200.0) for _ in range(4)] == [0, 0, 0, 1]
    # An event may count as a part of one, and as several.
    for weight, pauses in ((0.5, [0, 0, 0, 0, 0, 0.5]), (2, [0, 0, 2])):
        pace.at, pace.left = 300.0, 3
        for pause in pauses:
            assert pace.wait(300.0) == pause
            pace.weigh(weight)


def test_a_socket_beyond_its_burst_is_not_read_and_another_one_is(
    dial: Dial, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_EVENTS_PER_MINUTE, settings.UAMP_EVENTS_BURST = 1, 3
    fast, other = dial(alice), dial(bob)
    for _ in range(4):
        fast.send("ping")
    fast.expect("pong", "pong", "pong")

    assert other.settle() == []
    with pytest.raises(TimeoutError):
        fast.receive(timeout=0.5)


def test_events_beyond_the_pace_are_answered_later(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_EVENTS_PER_MINUTE, settings.UAMP_EVENTS_BURST = 600, 2
    client = dial(alice)
    event_ids = [client.send("ping") for _ in range(6)]

    assert [client.expect("pong")["reply_to"] for _ in event_ids] == event_ids
