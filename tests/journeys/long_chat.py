"""A chat with 100,000 messages, written by SQL in the process of a product's shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib.auth.models import User
from django.db import transaction

from chat_app.models import Chat, ChatEvent, Message, Participant
from tests.growth.rows import ago, fill

if TYPE_CHECKING:
    from tests.journeys.product import Product

COUNT: Final = 100_000
# Short and long ones, lists and code.
TEXT: Final = """'Message ' || i || CASE i % 4
  WHEN 0 THEN '. It has more words, so that it takes two lines, as many messages of people do.'
  WHEN 1 THEN char(10) || char(10) || '- first' || char(10) || '- second **bold**'
  WHEN 2 THEN char(10) || char(10) || '```python' || char(10) || 'print(' || i || ')' || char(10)
  ELSE '' END"""
EVENT: Final = (
    "json_object('type', 'response.done', 'event_id', 'e', 'timestamp', 1, 'response', json('{}'))"
)


def long_chat(product: Product) -> str:
    """Write the chat of alice and bob in a product and return its id."""
    module = "tests.journeys.long_chat"
    return product.run(f"from {module} import write_long_chat; print(write_long_chat(), end='')")


def write_long_chat() -> str:
    """Write the chat into the database of this process and return its id."""
    alice, bob = (User.objects.get(username=name) for name in ("alice", "bob"))
    with transaction.atomic():
        chat = Chat.objects.create(title="Long", created_by=alice, kind="group")
        Participant.objects.create(chat=chat, user=alice, role="owner")
        Participant.objects.create(chat=chat, user=bob)
        # Three messages of one, then three of the other.
        turn = "CASE i / 3 % 2 WHEN 0 THEN {} ELSE {} END"
        fill(
            Message,
            COUNT,
            id="'msg_long_' || i",
            chat_id=f"'{chat.pk}'",
            seq="i",
            role="'user'",
            sender_user_id=turn.format(alice.pk, bob.pk),
            name=turn.format("'alice'", "'bob'"),
            content=TEXT,
            content_items="'[]'",
            response_id="''",
            status="'completed'",
            created_at=ago(f"({COUNT} - i) * 40"),
        )
        fill(
            ChatEvent,
            COUNT,
            chat_id=f"'{chat.pk}'",
            seq="i",
            type="'message.created'",
            response_id="''",
            payload=EVENT,
        )
        Chat.objects.filter(pk=chat.pk).update(last_seq=COUNT)
    return str(chat.pk)
