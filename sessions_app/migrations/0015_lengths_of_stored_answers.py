from typing import Any

from django.db import migrations, models
from django.db.models.functions import Length


def measure_answers(apps: Any, schema_editor: Any) -> None:
    """Measure the stored answers, which are deleted within a day of their connection's last use."""
    requests = apps.get_model("sessions_app", "UnansweredRequest")
    rows = requests.objects.using(schema_editor.connection.alias).exclude(answer="")
    rows.update(answer_chars=Length("answer"))


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
        migrations.RunPython(measure_answers, migrations.RunPython.noop),
    ]
