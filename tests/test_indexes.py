"""No index duplicates another: every row that is written pays for each index."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import connection

pytestmark = pytest.mark.django_db

APPS = ("agents_app", "chat_app", "payments_app", "sessions_app", "signing_app", "federation_app")


def tables() -> list[str]:
    return [model._meta.db_table for app in APPS for model in apps.get_app_config(app).get_models()]


@pytest.mark.postgres
def test_no_index_is_for_prefixes_of_text() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE indexdef LIKE %s AND tablename = ANY(%s)",
            ["%pattern_ops%", tables()],
        )
        assert cursor.fetchall() == []


def whole_indexes(table: str) -> dict[str, list[str]]:
    """Return the columns of a table's indexes, without partial indexes."""
    partial = {
        index.name
        for model in apps.get_models()
        if model._meta.db_table == table
        for index in (*model._meta.indexes, *model._meta.constraints)
        if getattr(index, "condition", None) is not None
    }
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, table)
    return {
        name: fact["columns"]
        for name, fact in constraints.items()
        if fact["index"] or fact["unique"] or fact["primary_key"]
        if name not in partial and all(fact["columns"])
    }


@pytest.mark.parametrize(
    "table",
    [
        "chat_app_message",
        "chat_app_chatevent",
        "sessions_app_response",
        "sessions_app_inboundevent",
        "sessions_app_toolcall",
    ],
)
def test_no_index_is_only_the_beginning_of_another(table: str) -> None:
    indexes = whole_indexes(table)
    repeated = {
        name: other
        for name, columns in indexes.items()
        for other, longer in indexes.items()
        if name != other and longer[: len(columns)] == columns and len(longer) > len(columns)
    }
    assert repeated == {}
