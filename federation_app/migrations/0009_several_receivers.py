from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("federation_app", "0008_slow_files"),
    ]

    operations = [
        migrations.AddField(
            model_name="envelopestream",
            name="remote_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=128),
        ),
    ]
