from typing import Any

from django.db import migrations, models
from django.db.models.functions import Lower


def bind_names(apps: Any, _schema_editor: Any) -> None:
    """Bind the audiences of open tokens to the agents that have these names."""
    tokens = apps.get_model("payments_app", "PaymentToken").objects
    agents = apps.get_model("agents_app", "Agent").objects
    ids = dict(agents.annotate(folded=Lower("name")).values_list("folded", "pk"))
    for token in tokens.filter(closed_at__isnull=True).exclude(audience=[]).iterator():
        bound = {name: ids[name.lower()] for name in token.audience if name.lower() in ids}
        if bound:
            token.audience_ids = bound
            token.save(update_fields=["audience_ids"])


class Migration(migrations.Migration):
    dependencies = [
        ("payments_app", "0002_adjustments"),
        ("agents_app", "0001_first_release"),
    ]

    operations = [
        migrations.AddField(
            model_name="paymenttoken",
            name="audience_ids",
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
        migrations.RunPython(bind_names, migrations.RunPython.noop),
    ]
