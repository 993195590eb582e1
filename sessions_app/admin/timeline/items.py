"""The items of a timeline in one order, from log entries and other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sessions_app.admin.timeline.inferences import items_of_inferences
from sessions_app.admin.timeline.logged import item_of_entry
from sessions_app.admin.timeline.rows import (
    item_of_transfer,
    items_of_call,
    items_of_delegated,
    items_of_hold,
    items_of_request,
)

if TYPE_CHECKING:
    from sessions_app.admin.timeline.item import Item
    from sessions_app.admin.timeline.logged import Sources


def items_of(rows: Sources) -> list[Item]:
    """Return a page's items in log order, with other rows inserted by time."""
    logged, latest = [], None
    for entry in rows.entries:
        # Clocks of two processes may differ, but the log's order is reliable.
        latest = entry.at if latest is None else max(latest, entry.at)
        logged.append(((latest, 0, entry.seq), item_of_entry(entry, rows)))
    others = [
        *(item for response in rows.delegated for item in items_of_delegated(response)),
        *(item for response in rows.run for item in items_of_inferences(response)),
        *(item for call in rows.calls for item in items_of_call(call)),
        *(item for request in rows.requests for item in items_of_request(request)),
        *(item for hold in rows.holds for item in items_of_hold(hold)),
        *map(item_of_transfer, rows.transfers),
    ]
    placed = [*logged, *(((item.at, 1, 0), item) for item in others)]
    return [item for _, item in sorted(placed, key=lambda pair: pair[0])]
