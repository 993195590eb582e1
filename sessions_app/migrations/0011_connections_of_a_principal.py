from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0010_credentials_of_queued_turns"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="httpconnection",
            index=models.Index(fields=["principal"], name="connections_of_a_principal"),
        ),
    ]
