"""PDFs and sounds were measured too short: they are measured again when they are next used."""

from typing import Any

from django.db import migrations
from django.db.models import Q


def forget_extents(apps: Any, schema_editor: Any) -> None:
    contents = apps.get_model("chat_app", "Content").objects.using(schema_editor.connection.alias)
    is_measured = Q(mime_type="application/pdf") | Q(mime_type__startswith="audio/")
    contents.filter(is_measured).update(extent=None)


class Migration(migrations.Migration):
    dependencies = [("chat_app", "0006_agreed_prices")]

    operations = [migrations.RunPython(forget_extents, migrations.RunPython.noop)]
