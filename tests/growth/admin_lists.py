"""The lists of the admin that are read among many rows, with filters that find few or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib import admin
from django.urls import reverse

if TYPE_CHECKING:
    from collections.abc import Iterator

FEW: Final = 1_000
"""A table with fewer rows has not grown."""
PAGE: Final = 45_000
"""A list counts up to 10,000 rows for its pages, and reads the rows of one."""
_OLD: Final = "created_at_from=2001-01-01&created_at_until=2001-12-31"
_NEW: Final = "created_at_from=2020-01-01"
_NONE: Final = "q=no-such-row"
FILTERS: Final = {
    "sessions_app.response": ("status__exact=failed", "stuck=yes", _OLD, _NEW, _NONE),
    "sessions_app.session": ("status__exact=active", "transport__exact=batch", _OLD, _NEW),
    "sessions_app.toolcall": ("status__exact=failed", "kind__exact=agent", "stuck=yes", _NONE),
    "sessions_app.paymentrequest": ("status__exact=expired",),
    "sessions_app.webhook": ("disabled=yes", _NONE),
    "sessions_app.webhookdelivery": (_NONE,),
    "chat_app.chat": ("kind__exact=group", "latest_at_from=2001-01-01&latest_at_until=2001-12-31"),
    "chat_app.content": (_OLD,),
    "chat_app.message": ("role=tool", "status=failed"),
    "chat_app.chatevent": ("type=participant.left", _NONE),
    "payments_app.hold": (_OLD, _NEW),
    "payments_app.transfer": (_OLD, _NEW),
    "audit_app.auditrecord": ("action=transfer.refunded", _OLD, _NEW, _NONE),
}


def grown_lists() -> Iterator[tuple[str, str]]:
    """Yield the label of each list of many rows with its query, at first the list without one."""
    for model in admin.site._registry:
        label = model._meta.label_lower
        if model._default_manager.count() >= FEW:
            for query in ("", *FILTERS.get(label, ())):
                yield label, query


def address_of(label: str, query: str) -> str:
    """Return the address of a list with a query."""
    name = label.replace(".", "_")
    return f"{reverse(f'admin:{name}_changelist')}?{query}"
