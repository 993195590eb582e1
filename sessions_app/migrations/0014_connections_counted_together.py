from typing import Any

from django.db import migrations, models


def count_under_principals(apps: Any, schema_editor: Any) -> None:
    """Count existing connections, which are deleted after a day, as before."""
    connections = apps.get_model("sessions_app", "HttpConnection")
    connections.objects.using(schema_editor.connection.alias).update(
        counted_as=models.F("principal")
    )


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0013_responses_are_called_answers"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="httpconnection",
            name="connections_of_a_principal",
        ),
        migrations.AddField(
            model_name="httpconnection",
            name="counted_as",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
        migrations.RunPython(count_under_principals, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="httpconnection",
            index=models.Index(fields=["counted_as"], name="connections_counted_together"),
        ),
    ]
