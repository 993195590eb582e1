"""The lists of the admin that are read among many rows, with filters that find few or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib import admin
from django.urls import reverse

from audit_app.admin.column_search import COUNTED_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

FEW: Final = 1_000
"""A table with fewer rows has not grown."""
PAGE: Final = 45_000
"""A list counts up to 10,000 rows for its pages, and reads the rows of one."""
WINDOW: Final = 65_000
"""A filter without an index examines 10,000 rows: for their end, for the count and for the page."""
_OLD: Final = "created_at_from=2001-01-01&created_at_until=2001-12-31"
_NEW: Final = "created_at_from=2020-01-01"
_NONE: Final = "q=no-such-row"
FILTERS: Final = {
    "sessions_app.response": ("status__exact=failed", "stuck=yes", _OLD, _NEW),
    "sessions_app.session": ("status__exact=active", "transport__exact=batch", _OLD, _NEW),
    "sessions_app.toolcall": ("status__exact=failed", "kind__exact=agent", "stuck=yes"),
    "sessions_app.paymentrequest": ("status__exact=expired",),
    "sessions_app.webhook": ("disabled=yes",),
    "chat_app.chat": ("kind__exact=group", "latest_at_from=2001-01-01&latest_at_until=2001-12-31"),
    "chat_app.content": (_OLD,),
    "chat_app.message": (
        "role=tool",
        "role=user",
        "role=tool&status=failed",
        "status=failed",
        "status=completed",
        f"role=tool&{_NEW}",
    ),
    "chat_app.chatevent": ("type=participant.left", "type=message.read", "type=message.created"),
    "payments_app.hold": ("state=active", "state=expired", "state=settled", _OLD, _NEW),
    "payments_app.transfer": (
        "kind=refund",
        "kind=answer",
        "protocol=none",
        "asset=CREDITS",
        _OLD,
        _NEW,
    ),
    "payments_app.entry": ("transfer__kind=refund",),
    "payments_app.account": ("kind=pool",),
    "audit_app.auditrecord": (
        "action=transfer.refunded",
        "actor=1",
        "actor=server",
        "kind=chat_app.chat",
        "kind=none.none",
        "action=session.ended&kind=none.none",
        _OLD,
        _NEW,
    ),
}


def grown_lists() -> Iterator[tuple[str, str]]:
    """Yield the label of each list of many rows with its query, at first the list without one.

    Each list is also asked for its last page, and for a search that finds nothing.
    """
    for model, page in admin.site._registry.items():
        label = model._meta.label_lower
        rows = model._default_manager.values("pk")[:COUNTED_ROWS].count()
        if rows < FEW:
            continue
        searches = (_NONE,) if page.search_fields else ()
        last = f"p={-(-rows // page.list_per_page)}"
        yield from ((label, query) for query in ("", last, *searches, *FILTERS.get(label, ())))


def address_of(label: str, query: str) -> str:
    """Return the address of a list with a query."""
    name = label.replace(".", "_")
    return f"{reverse(f'admin:{name}_changelist')}?{query}"
