import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("federation_app", "0009_several_receivers"),
    ]

    operations = [
        migrations.AddField(
            model_name="peer",
            name="asks_need_token",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.CreateModel(
            name="CapabilityToken",
            fields=[
                ("id", models.CharField(max_length=36, primary_key=True, serialize=False)),
                ("audience", models.JSONField()),
                ("intents", models.JSONField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "peer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="federation_app.peer",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["-created_at", "-id"], name="capability_listing")],
            },
        ),
    ]
