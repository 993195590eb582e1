"""The picture of a timeline: a lane per track, with the items on one axis of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessions_app.admin.timeline.item import TRACKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.admin.timeline.item import Item

LABELS: Final = 88
"""The width of the track names."""
STEP: Final = 14
"""The least distance of two items that follow each other."""
SPAN: Final = 900
"""The width of the time from the first item to the last, unless items need more room."""
TICK: Final = 80
"""The least distance of two times on the axis."""
LANE: Final = 26
MARGIN: Final = 14


def picture_of(items: Sequence[Item]) -> dict[str, Any] | None:
    """Return the template's lanes, bars for spans, and points; None without items.

    `lanes` are {label, y}, `bars` {x, width, y, tone}, `points` {x, y, key, track, tone, title},
    `ticks` {x, label}: the time since the first item. Items that are closer than STEP allows are
    moved to the right, so the axis is only as precise as its ticks.
    """
    if not items:
        return None
    tracks = [track for track in TRACKS if any(item.track == track for item in items)]
    lane_of = {track: MARGIN + LANE // 2 + LANE * number for number, track in enumerate(tracks)}
    points: list[dict[str, Any]] = []
    spans: dict[tuple[str, str], dict[str, Any]] = {}
    places = _places(items)
    for x, item in zip(places, items, strict=True):
        y = lane_of[item.track]
        points.append(
            {
                "x": x,
                "y": y,
                "key": item.key,
                "track": item.track,
                "tone": item.tone,
                "title": f"{item.at:%H:%M:%S} {item.title}",
            }
        )
        if item.span:
            first = spans.setdefault((item.track, item.span), {"x": x, "y": y, "width": 0})
            first["width"] = x - first["x"]
            first["tone"] = item.tone
    return {
        "width": places[-1] + TICK,
        "height": 2 * MARGIN + LANE * (len(tracks) + 1),
        "base": 2 * MARGIN + LANE * len(tracks) + 8,
        "ticks": _ticks(places, items),
        "begin": LABELS,
        "lanes": [{"label": TRACKS[track], "y": lane_of[track]} for track in tracks],
        "bars": [bar for bar in spans.values() if bar["width"]],
        "points": points,
    }


def _places(items: Sequence[Item]) -> list[int]:
    """Return the horizontal place of each item."""
    first = items[0].at
    whole = (max(item.at for item in items) - first).total_seconds()
    places: list[int] = []
    for item in items:
        share = (item.at - first).total_seconds() / whole if whole > 0 else 0.0
        least = places[-1] + STEP if places else LABELS + MARGIN
        places.append(max(least, LABELS + MARGIN + round(SPAN * share)))
    return places


def _ticks(places: Sequence[int], items: Sequence[Item]) -> list[dict[str, Any]]:
    """Return times of items that are far enough apart to be written below them."""
    ticks: list[dict[str, Any]] = []
    for x, item in zip(places, items, strict=True):
        if not ticks or x - ticks[-1]["x"] >= TICK:
            ticks.append({"x": x, "label": elapsed_text((item.at - items[0].at).total_seconds())})
    return ticks


def elapsed_text(seconds: float) -> str:
    """Return a time since the first item, as precise as its length deserves."""
    milliseconds = round(max(seconds, 0) * 1000)
    if milliseconds < 1000:  # noqa: PLR2004 a second
        return f"+{milliseconds} ms"
    if seconds < 59.95:  # noqa: PLR2004 what rounds to a minute
        return f"+{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"+{days} d {hours} h"
    return f"+{hours} h {minutes} min" if hours else f"+{minutes} min {rest} s"
