"""Keep the owner who pays for a chat where there was never another one; else who asks pays."""

from typing import Any

from django.db import migrations


def keep_who_chose(apps: Any, _schema_editor: Any) -> None:
    """Keep the only owner as the payer; which of several owners chose to pay is unknown."""
    chats = apps.get_model("chat_app", "Chat")
    participants = apps.get_model("chat_app", "Participant")
    for chat in chats.objects.filter(payer="owner").iterator():
        owners = list(participants.objects.filter(chat=chat, role="owner")[:2])
        if len(owners) == 1 and owners[0].left_at is None and owners[0].user_id is not None:
            chat.payer_user_id = owners[0].user_id
        else:
            chat.payer = "asker"
        chat.save(update_fields=["payer", "payer_user"])


class Migration(migrations.Migration):
    """Rows only."""

    dependencies = [("chat_app", "0002_payer_user")]

    operations = [migrations.RunPython(keep_who_chose, migrations.RunPython.noop)]
