"""Lets the process that takes a response over see whether an offer of it was ever accepted."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds a column that old processes ignore, without rewriting the table."""

    dependencies: ClassVar = [("sessions_app", "0015_lengths_of_stored_answers")]

    operations: ClassVar = [
        migrations.AddField(
            model_name="response",
            name="offered_fence",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
