from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat_app", "0021_measure_texts_again"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="salt",
            field=models.CharField(blank=True, max_length=22, null=True),
        ),
    ]
