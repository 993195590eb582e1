from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0014_connections_counted_together"),
    ]

    operations = [
        migrations.AddField(
            model_name="unansweredrequest",
            name="answer_chars",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
