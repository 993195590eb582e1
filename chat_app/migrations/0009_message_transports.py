"""Messages know the transport or protocol by which they came; older ones have an empty name."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat_app", "0008_payer_labels"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="transport",
            field=models.CharField(blank=True, db_default="", default="", max_length=24),
        ),
    ]
