"""Turns without a socket."""

from typing import Any

import httpx

from tests.client import Frame, new_event

WORDS = "one two three four five"
SEARCH = {"type": "function", "function": {"name": "search"}}


def batch(web: httpx.Client, *events: Frame, path: str = "/uamp", **options: Any) -> list[Frame]:
    """Send an array of events and return the array that answers."""
    answer = web.post(path, json=events, **options)
    assert answer.status_code == 200, answer.text
    frames: list[Frame] = answer.json()
    return frames


def turn(text: str, **session: Any) -> tuple[Frame, Frame, Frame]:
    """Return the events of a session with one turn."""
    return (
        new_event("session.create", uamp_version="1.0", **{"session": {}, **session}),
        new_event("input.text", text=text),
        new_event("response.create"),
    )
