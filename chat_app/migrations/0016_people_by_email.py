"""Let operators find a person by their address among all people (Django has no index for it)."""

from django.conf import settings
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("chat_app", "0015_notifications"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(
            "CREATE INDEX people_by_email ON auth_user (email)",
            "DROP INDEX people_by_email",
        ),
    ]
