from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat_app", "0005_repeated_requests"),
    ]

    operations = [
        migrations.AddField(
            model_name="chat",
            name="agreed_prices",
            field=models.JSONField(blank=True, null=True),
        ),
    ]
