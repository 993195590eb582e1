"""Texts were measured as if they were words only: they are measured again.

Processes of the release before measure as before until they have ended (CHANGELOG).
"""

from typing import Any

from django.db import migrations
from django.db.models import Q


def forget_extents(apps: Any, schema_editor: Any) -> None:
    contents = apps.get_model("chat_app", "Content").objects.using(schema_editor.connection.alias)
    is_text = Q(mime_type__startswith="text/") | Q(mime_type="application/json")
    contents.filter(is_text).update(extent=None)


class Migration(migrations.Migration):
    dependencies = [("chat_app", "0020_pushes_under_way")]

    operations = [migrations.RunPython(forget_extents, migrations.RunPython.noop)]
