"""Growth of the tree of log heads, its public texts and exports, and a change of a stored hash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone

from chat_app.export.formats import ndjson
from chat_app.export.log_lines import log_lines
from chat_app.export.pages import pages_for_staff
from chat_app.log import chain
from chat_app.log.checkpoints import checkpoint_of
from chat_app.log_tree.growth import grow
from chat_app.models import Chat, ChatEvent, Message, TreeNode
from signing_app.published import all_keys
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client


def keys() -> list[dict[str, Any]]:
    """Return the published keys."""
    return all_keys()["keys"]


def more(chat: Chat, ada: User, text: str = "more") -> Message:
    """Write a message, sign the head of its chat and add it to the tree."""
    message = factories.message(chat, ada, text)
    checkpoint_of(chat.pk)
    grow(timezone.now())
    return message


def change_node(position: int) -> None:
    """Change a stored hash."""
    TreeNode.objects.filter(pk=position).update(hash=b"\1" * 32)


def posted(client: Client, note: str) -> tuple[int, str]:
    """Return the status and the text of the answer to a cosigned note."""
    answer = client.post("/log-tree/cosignatures", note, content_type="text/plain")
    return answer.status_code, answer.content.decode()


def text_of(client: Client, path: str) -> str:
    """Return a public text."""
    answer = client.get(f"/log-tree/{path}")
    assert (answer.status_code, answer["Access-Control-Allow-Origin"]) == (200, "*")
    return answer.content.decode()


def exported(chat: Chat) -> list[bytes]:
    """Return the lines of the export of a chat with its log."""
    pieces = ndjson(chat, pages_for_staff(chat), log_lines(chat.pk, None))
    return b"".join(pieces).splitlines(keepends=True)


def grown(chat: Chat, count: int) -> None:
    """Add entries to the log of a chat, without a head."""
    chat.refresh_from_db()
    rows = []
    for number in range(count):
        row = ChatEvent(
            chat=chat, seq=chat.last_seq + 1, type="message.read", payload={"number": number}
        )
        chain.extend(chat, row)
        rows.append(row)
    ChatEvent.objects.bulk_create(rows)
    chat.save(update_fields=[*chain.HEAD])
