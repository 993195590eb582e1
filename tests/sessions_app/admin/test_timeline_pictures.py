"""The pictures of timelines: items along the time, bars as long as what they stand for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from sessions_app.admin.timeline.item import Item
from sessions_app.admin.timeline.picture import STEP, elapsed_text, picture_of

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def item(key: str, seconds: float, track: str = "models", span: str = "") -> Item:
    return Item(key=key, track=track, at=NOON + timedelta(seconds=seconds), title=key, span=span)


def test_a_long_call_has_a_longer_bar_than_a_short_one() -> None:
    items = [
        item("asked", 0, "messages"),
        item("sent", 0, span="long"),
        item("answered", 40, span="long"),
        item("sent again", 40.01, span="short"),
        item("answered again", 40.05, span="short"),
        item("ended", 41, "messages"),
    ]
    picture = picture_of(items)
    assert picture is not None
    places = [point["x"] for point in picture["points"]]
    # Items that are close together stay apart, and none is beyond the picture.
    assert all(after - before >= STEP for before, after in pairwise(places))
    assert places[-1] < picture["width"]
    long, short = (bar["width"] for bar in picture["bars"])
    assert long > 20 * short
    assert [tick["label"] for tick in picture["ticks"]] == ["+0 ms", "+40.0 s"]


def test_items_of_one_moment_and_clocks_that_differ_have_a_picture() -> None:
    picture = picture_of([item("a", 5), item("b", 5), item("c", 4.9)])
    assert picture is not None
    places = [point["x"] for point in picture["points"]]
    assert places == sorted(set(places))
    assert picture_of([]) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "+0 ms"), (0.0123, "+12 ms"), (0.9996, "+1.0 s"), (59.94, "+59.9 s"),
        (59.97, "+1 min 0 s"), (61, "+1 min 1 s"),
        (3600, "+1 h 0 min"), (90_000, "+1 d 1 h"),
    ],
)  # fmt: skip
def test_a_time_is_as_precise_as_its_length_deserves(seconds: float, text: str) -> None:
    assert elapsed_text(seconds) == text
