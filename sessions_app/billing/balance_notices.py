"""Notices to people's open pages that their balance has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chat_app.people.notices import notify_person

if TYPE_CHECKING:
    from collections.abc import Collection


def notify_owners(codes: Collection[str]) -> None:
    """Send `person.changed` to the owners of these accounts, after the commit."""
    for code in codes:
        kind, _, rest = code.partition(":")
        owner = rest.partition(":")[0]
        if kind == "user" and owner.isdecimal():
            notify_person(int(owner), "balance", waits=False)
