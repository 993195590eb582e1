from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents_app", "0004_disconnected_daemons"),
    ]

    operations = [
        migrations.AddField(
            model_name="checkpoint",
            name="usage",
            field=models.JSONField(blank=True, null=True),
        ),
    ]
