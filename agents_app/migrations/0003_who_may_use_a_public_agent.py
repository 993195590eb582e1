"""Say in the form of an agent who may use a public one; no column changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents_app", "0002_sponsorships")]

    operations = [
        migrations.AlterField(
            model_name="agent",
            name="is_public",
            field=models.BooleanField(
                default=False,
                help_text="Everybody who is signed in may use it, otherwise only its owner and"
                " staff. Visitors may use it too, unless a model answers without a price"
                " (UAMP_ANONYMOUS_MODELS).",
            ),
        )
    ]
