"""The table of remote agents' answers that are in progress."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """See agents_app.models.remote_tasks."""

    dependencies = [("agents_app", "0001_first_release")]

    operations = [
        migrations.CreateModel(
            name="RemoteTask",
            fields=[
                (
                    "response_id",
                    models.CharField(max_length=40, primary_key=True, serialize=False),
                ),
                ("protocol", models.CharField(max_length=20)),
                ("address", models.TextField()),
                ("ids", models.JSONField()),
                ("rounds", models.PositiveIntegerField()),
                ("fence", models.PositiveIntegerField()),
                ("updated_at", models.DateTimeField()),
            ],
        ),
    ]
