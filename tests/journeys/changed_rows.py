"""Changes by a person with access only to the database, as code for the product's shell."""

from __future__ import annotations

# A question that the page has shown already.
MESSAGE = """
from chat_app.models import Message
row = Message.objects.get(chat_id="{chat}", role="user")
Message.objects.filter(pk=row.pk).update(content=row.content.replace("wood", "food"))
"""
# The ledger's triggers refuse this to every database user; who owns the database drops them.
CHEAPER = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    triggers = cursor.fetchall()
    for name, _ in triggers:
        cursor.execute(f"DROP TRIGGER {name}")
    cursor.execute("UPDATE payments_app_entry SET amount = amount / 2 WHERE transfer_id IN"
        " (SELECT id FROM payments_app_transfer WHERE kind = 'answer')")
    for _, sql in triggers:
        cursor.execute(sql)
"""
# The byte of an event that no message shows: the time at which an answer began.
OTHER_EVENT = """
from chat_app.models import ChatEvent
entry = ChatEvent.objects.filter(type="response.created", chat_id="{chat}").order_by("-seq").first()
entry.payload["timestamp"] += 1
entry.save()
"""
# The same, by someone who computes every hash anew and signs the new end of the log.
REWRITTEN_LOG = """
from chat_app.log import chain
from chat_app.log.checkpoints import checkpoint_of
from chat_app.models import Chat, ChatEvent, LogCheckpoint
chat = Chat.objects.get(pk="{chat}")
chat.last_seq = 0
entries = list(ChatEvent.objects.filter(chat=chat).order_by("seq"))
begun = next(entry for entry in entries if entry.type == "response.created")
begun.payload["timestamp"] += 1
for entry in entries:
    chain.extend(chat, entry)
    entry.save()
chat.save()
LogCheckpoint.objects.filter(chat=chat).delete()
checkpoint_of(chat.pk)
"""
# A new tree of the same heads, without those of one chat.
REWRITTEN_TREE = """
from chat_app.models import LogCheckpoint, LogTree, TreeCheckpoint, TreeNode
for table in (LogTree, TreeCheckpoint, TreeNode):
    table.objects.all().delete()
LogCheckpoint.objects.filter(chat_id="{chat}").delete()
LogCheckpoint.objects.update(leaf=None)
"""
# Clients of other protocols read the row of the response, which the page does not show.
OTHER_RECORD = """
from sessions_app.models import Response
row = Response.objects.filter(status="completed").order_by("-created_at").first()
row.output[0]["text"] = row.output[0]["text"].replace("wood", "food")
row.save()
"""
