"""Sounds of less common formats were measured too short: they are measured again."""

from typing import Any

from django.db import migrations

_UNCHANGED = (
    "audio/mpeg", "audio/aac", "audio/wav", "audio/ogg", "audio/flac", "audio/mp4", "audio/webm",
)  # fmt: skip


def forget_extents(apps: Any, schema_editor: Any) -> None:
    contents = apps.get_model("chat_app", "Content").objects.using(schema_editor.connection.alias)
    others = contents.filter(mime_type__startswith="audio/").exclude(mime_type__in=_UNCHANGED)
    others.update(extent=None)


class Migration(migrations.Migration):
    dependencies = [("chat_app", "0007_measure_media_again")]

    operations = [migrations.RunPython(forget_extents, migrations.RunPython.noop)]
