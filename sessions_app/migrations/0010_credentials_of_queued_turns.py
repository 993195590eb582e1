from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0009_search_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="queuedturn",
            name="chats",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="queuedturn",
            name="key_version",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
