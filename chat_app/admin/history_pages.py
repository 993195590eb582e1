"""Admin pages of rows that record what happened: read-only, newest first.

A list costs the same number of queries whatever it shows, and a search uses only indexed columns.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.utils.html import format_html

from audit_app.admin.column_search import ColumnSearch
from audit_app.admin.records import RecordAdmin

if TYPE_CHECKING:
    from django.utils.safestring import SafeString


class HistoryAdmin(ColumnSearch, RecordAdmin):
    """A list of immutable rows, searched by indexed columns."""


def pretty(value: Any) -> SafeString:
    """Return JSON formatted for people."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return format_html('<pre class="record">{}</pre>', text)
