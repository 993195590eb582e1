from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat_app", "0002_chat_places"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="messagedeletion",
            name="deleted_lately",
        ),
        migrations.AddField(
            model_name="messagedeletion",
            name="copies_deleted",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name="messagedeletion",
            index=models.Index(
                condition=models.Q(("copies_deleted", False)),
                fields=["deleted_at"],
                name="copies_to_delete",
            ),
        ),
    ]
