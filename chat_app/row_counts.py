"""Counting the rows of a subquery, as an annotation."""

from __future__ import annotations

from django.db.models import IntegerField, Subquery


class CountOf(Subquery):
    """The number of rows of a subquery; with a limit in it, counting stops there."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) counted)"
    output_field = IntegerField()
