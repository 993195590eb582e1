"""The picture of a timeline: a lane per track, with items side by side in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sessions_app.admin.timeline.item import TRACKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sessions_app.admin.timeline.item import Item

LABELS: Final = 88
"""The width of the track names."""
STEP: Final = 14
LANE: Final = 26
MARGIN: Final = 14


def picture_of(items: Sequence[Item]) -> dict[str, Any] | None:
    """Return the template's lanes, bars for spans, and points; None without items.

    `lanes` are {label, y}, `bars` {x, width, y, tone}, `points` {x, y, key, track, tone, title}.
    """
    if not items:
        return None
    tracks = [track for track in TRACKS if any(item.track == track for item in items)]
    lane_of = {track: MARGIN + LANE // 2 + LANE * number for number, track in enumerate(tracks)}
    points: list[dict[str, Any]] = []
    spans: dict[tuple[str, str], dict[str, Any]] = {}
    for number, item in enumerate(items):
        x, y = LABELS + MARGIN + STEP * number, lane_of[item.track]
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
    width = LABELS + 2 * MARGIN + STEP * max(len(items) - 1, 0)
    return {
        "width": width,
        "height": 2 * MARGIN + LANE * len(tracks),
        "begin": LABELS,
        "lanes": [{"label": TRACKS[track], "y": lane_of[track]} for track in tracks],
        "bars": [bar for bar in spans.values() if bar["width"]],
        "points": points,
    }
