"""One entry of a time line, and its links to pages of rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.contrib.admin.utils import quote
from django.urls import reverse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sessions_app.models import Response

TRACKS: Final[dict[str, str]] = {
    "messages": "Messages",
    "responses": "Answers",
    "tools": "Tools",
    "money": "Money",
    "chat": "Chat",
}
"""The tracks by their keys, in the order of the picture."""
_LONG_ID: Final = re.compile(r"([0-9a-f]{8})[0-9a-f]{24}")


@dataclass(frozen=True, kw_only=True)
class Link:
    """A way to the page of a row, for those with a right, such as `chat_app.view_message`."""

    label: str
    url: str
    needs: str


@dataclass(frozen=True, kw_only=True)
class Item:
    """One entry of a time line.

    `who` is the key of the person or agent who acted (`user:<id>`, `agent:<id>`), "" where unknown.
    `text` is what was said, shown to those who may read contents. `span` names what several entries
    of a track are the beginning and the end of; `tone` is "", "failed" or "running".
    """

    key: str
    track: str
    at: datetime
    title: str
    seq: int | None = None
    who: str = ""
    facts: str = ""
    text: str = ""
    cause: str = ""
    links: Sequence[Link] = ()
    span: str = ""
    tone: str = ""

    @property
    def track_label(self) -> str:
        """The name of its track."""
        return TRACKS[self.track]


def account_name(code: str) -> str:
    """Return the code of an account with the beginnings of the ids in it."""
    return _LONG_ID.sub(r"\1…", code)


def page_link(label: str, model: str, row_id: str | int) -> Link:
    """Return the way to the admin's page of a row of a model, such as `chat_app.message`."""
    app, _, name = model.partition(".")
    url = reverse(f"admin:{app}_{name}_change", args=[quote(row_id)])
    return Link(label=label, url=url, needs=f"{app}.view_{name}")


def response_links(response_id: str) -> list[Link]:
    """Return the ways to a response and to its time line."""
    line = reverse("admin:sessions_app_response_timeline", args=[quote(response_id)])
    return [
        page_link("Response", "sessions_app.response", response_id),
        Link(label="Its time line", url=line, needs="sessions_app.view_response"),
    ]


def counted(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def used_text(response: Response | None) -> str:
    """Return what a response used, and how long it took."""
    usage = (response.usage if response else None) or {}
    facts = []
    if (total := usage.get("total_tokens")) is not None:
        facts.append(counted(total, "token"))
    if response and response.finished_at:
        facts.append(f"{(response.finished_at - response.created_at).total_seconds():.1f} s")
    return ", ".join(facts)
