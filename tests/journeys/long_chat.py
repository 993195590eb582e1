"""A chat with very many messages, written by SQL in a product's shell process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib.auth.models import User
from django.db import connection, transaction

from chat_app.models import Chat, ChatEvent, Message, Participant
from tests.growth.bulk_rows import ago, fill

if TYPE_CHECKING:
    from tests.journeys.product import Product

COUNT: Final = 100_000
# Short and long ones, lists and code.
TEXT: Final = """'Message ' || i || CASE i % 4
  WHEN 0 THEN '. It has more words, so that it takes two lines, as many messages of people do.'
  WHEN 1 THEN {line} || {line} || '- first' || {line} || '- second **bold**'
  WHEN 2 THEN {line} || {line} || '```python' || {line} || 'print(' || i || ')' || {line}
  ELSE '' END"""
EVENT: Final = """'{"type": "response.done", "event_id": "e", "timestamp": 1, "response": {}}'"""


def long_chat(product: Product, count: int = COUNT) -> str:
    """Write a chat of alice and bob in a product and return its id."""
    module = "tests.journeys.long_chat"
    code = f"from {module} import write_long_chat; print(write_long_chat({count}), end='')"
    return product.run(code)


def write_long_chat(count: int, mark: str = "long") -> str:
    """Write the chat into this process's database and return its id.

    `mark` is part of its message ids: `msg_long_1` is the first one.
    """
    line = "chr(10)" if connection.vendor == "postgresql" else "char(10)"
    alice, bob = (User.objects.get(username=name) for name in ("alice", "bob"))
    with transaction.atomic():
        chat = Chat.objects.create(title="Long", created_by=alice, kind="group")
        Participant.objects.create(chat=chat, user=alice, role="owner")
        Participant.objects.create(chat=chat, user=bob)
        # Three messages from one, then three from the other.
        turn = "CASE i / 3 % 2 WHEN 0 THEN {} ELSE {} END"
        fill(
            Message,
            count,
            id=f"'msg_{mark}_' || i",
            chat_id=f"'{chat.pk}'",
            seq="i",
            role="'user'",
            sender_user_id=turn.format(alice.pk, bob.pk),
            name=turn.format("'alice'", "'bob'"),
            content=TEXT.format(line=line),
            content_items="'[]'",
            response_id="''",
            status="'completed'",
            created_at=ago(f"({count} - i) * 40"),
        )
        fill(
            ChatEvent,
            count,
            chat_id=f"'{chat.pk}'",
            seq="i",
            type="'message.created'",
            response_id="''",
            payload=EVENT,
        )
        Chat.objects.filter(pk=chat.pk).update(last_seq=count)
    return str(chat.pk)
