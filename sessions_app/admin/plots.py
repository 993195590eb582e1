"""Stacked bars as SVG, without scripts or inline styles, plus the same figures as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils.dateformat import format as date_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessions_app.reporting.figures import Series

SHADES: Final = 6
"""The number of colours; the last one is for all remaining names."""
WIDTH: Final = 560
HEIGHT: Final = 120
GAP: Final = 0.2


def _number(value: int) -> str:
    return f"{value:,}"


def plot_of_series(
    title: str, series: Series, when: str, url: str, text: Callable[[int], str] = _number
) -> dict[str, Any]:
    """Return a plot for the template `admin/home/plot.html`.

    `bars` are {x, y, width, height, shade, title}, `legend` {name, shade, total}, and `rows` the
    same figures as a table: {place, cells}, without empty places. `when` is a date format, `text`
    formats a value, and `url` is the list that the figures are based on.
    """
    names = list(series.names[:SHADES])
    if len(series.names) > SHADES:
        names[-1] = "others"
    shade_of = {name: min(number, SHADES - 1) for number, name in enumerate(series.names)}
    stacks: dict[Any, list[int]] = {place: [0] * len(names) for place in series.places}
    for (place, name), value in series.values.items():
        stacks[place][shade_of[name]] += value
    highest = max((sum(max(value, 0) for value in stack) for stack in stacks.values()), default=0)
    return {
        "title": title,
        "url": url,
        "width": WIDTH,
        "height": HEIGHT,
        "highest": text(highest),
        "first": date_text(series.places[0], when),
        "last": date_text(series.places[-1], when),
        "bars": _bars(stacks, names, highest, when, text) if highest else [],
        "legend": [
            {"name": name, "shade": shade, "total": text(sum(s[shade] for s in stacks.values()))}
            for shade, name in enumerate(names)
        ],
        "rows": [
            {"place": date_text(place, when), "cells": [text(value) for value in stack]}
            for place, stack in stacks.items()
            if any(stack)
        ],
    }


def _bars(
    stacks: dict[Any, list[int]],
    names: list[str],
    highest: int,
    when: str,
    text: Callable[[int], str],
) -> list[dict[str, Any]]:
    step = WIDTH / len(stacks)
    bars = []
    for number, (place, stack) in enumerate(stacks.items()):
        floor = float(HEIGHT)
        for shade, value in enumerate(stack):
            if value <= 0:
                continue
            height = HEIGHT * value / highest
            floor -= height
            bars.append(
                {
                    "x": f"{step * (number + GAP / 2):.1f}",
                    "y": f"{floor:.1f}",
                    "width": f"{step * (1 - GAP):.1f}",
                    "height": f"{height:.1f}",
                    "shade": shade,
                    "title": f"{date_text(place, when)}: {names[shade]} {text(value)}",
                }
            )
    return bars
