"""An item of a timeline, and its links to the pages of rows."""

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
    "models": "Models",
    "tools": "Tools",
    "money": "Money",
    "chat": "Chat",
}
"""The tracks by key, in the order of the picture."""
_LONG_ID: Final = re.compile(r"([0-9a-f]{8})[0-9a-f]{24}")


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link to a row's page, for those with a right such as `chat_app.view_message`."""

    label: str
    url: str
    needs: str


@dataclass(frozen=True, kw_only=True)
class Item:
    """An item of a timeline.

    `who` is the key of the person or agent who acted (`user:<id>`, `agent:<id>`), or "" if unknown.
    `text` is shown only to those who may read contents. `span` identifies the items of a track that
    form the start and the end of something; `tone` is "", "failed" or "running".
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
        """The name of the item's track."""
        return TRACKS[self.track]


def account_name(code: str) -> str:
    """Return an account's code with its ids shortened."""
    return _LONG_ID.sub(r"\1…", code)


def page_link(label: str, model: str, row_id: str | int) -> Link:
    """Return a link to the admin page of a row, given a model such as `chat_app.message`."""
    app, _, name = model.partition(".")
    url = reverse(f"admin:{app}_{name}_change", args=[quote(row_id)])
    return Link(label=label, url=url, needs=f"{app}.view_{name}")


def response_links(response_id: str) -> list[Link]:
    """Return links to a response and to its timeline."""
    line = reverse("admin:sessions_app_response_timeline", args=[quote(response_id)])
    return [
        page_link("Answer", "sessions_app.response", response_id),
        Link(label="Timeline", url=line, needs="sessions_app.view_response"),
    ]


def counted(count: int, noun: str) -> str:
    """Return a number with its noun in the right form."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def used_text(response: Response | None) -> str:
    """Return a response's usage and duration."""
    usage = (response.usage if response else None) or {}
    facts = []
    if (total := usage.get("total_tokens")) is not None:
        facts.append(counted(total, "token"))
    if response and response.finished_at:
        facts.append(f"{(response.finished_at - response.created_at).total_seconds():.1f} s")
    return ", ".join(facts)
