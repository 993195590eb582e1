"""Drop the indexes that Django made for LIKE beside those of text columns; PostgreSQL only."""

from __future__ import annotations

from typing import Any

from django.db import migrations

APPS = ("agents_app", "chat_app", "payments_app", "sessions_app")


def drop(_apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, tablename FROM pg_indexes"
            " WHERE schemaname = current_schema() AND indexname LIKE '%\\_like'"
        )
        found = [name for name, table in cursor.fetchall() if table.startswith(APPS)]
    for name in found:
        schema_editor.execute(f'DROP INDEX "{name}"', params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("agents_app", "0002_sponsorships"),
        ("chat_app", "0005_content_handles"),
        ("payments_app", "0003_token_limits"),
        ("sessions_app", "0005_session_ids_of_their_principal"),
    ]

    operations = [migrations.RunPython(drop, migrations.RunPython.noop)]
