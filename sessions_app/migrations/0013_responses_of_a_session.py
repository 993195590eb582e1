import django.db.models.deletion
from django.db import migrations, models


def drop_index(table: str, column: str, name: str) -> migrations.RunSQL:
    """Return the step that drops the index of a column, with the name that Django gave it."""
    return migrations.RunSQL(
        f"DROP INDEX IF EXISTS {name}",
        f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({column})",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0012_http_connections"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="response",
            index=models.Index(
                fields=["session", "agent", "status", "finished_at", "created_at", "id"],
                name="responses_of_a_session",
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                fields=["principal", "transport", "id"], name="sessions_of_a_principal"
            ),
        ),
        # The new indexes begin with these columns. SQLite would write the tables anew for AlterField.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                drop_index(
                    "sessions_app_response",
                    "session_id",
                    "sessions_app_response_session_id_30c25772",
                ),
                drop_index(
                    "sessions_app_session", "principal", "sessions_app_session_principal_96d7ae2e"
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name="response",
                    name="session",
                    field=models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="responses",
                        to="sessions_app.session",
                    ),
                ),
                migrations.AlterField(
                    model_name="session",
                    name="principal",
                    field=models.CharField(max_length=80),
                ),
            ],
        ),
    ]
