from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("federation_app", "0010_capability_tokens"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="capabilitytoken",
            index=models.Index(fields=["expires_at"], name="capability_expiry"),
        ),
    ]
