"""The signatures of answers, stored in the entries that end responses (docs/signatures.md).

Those of deleted answers are withheld with the text: a short text could be guessed from the hashes
in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django.db.models import OuterRef, Subquery, TextField
from django.db.models.functions import Cast

from chat_app.log.deletions import has_deleted_answer, is_output_erased
from chat_app.log.history import IS_END, ends
from chat_app.models import Chat, ChatEvent, Message
from uamp.signatures import sha256_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any


def signatures_of(chat_id: str, response_ids: Collection[str]) -> dict[str, str]:
    """Return the signatures of answers of a chat by response id.

    Unsigned answers are left out: incomplete ones that were not paid, and those of servers older
    than signatures. Access is not checked here.
    """
    if not response_ids:
        return {}
    rows = ends(chat_id, response_ids).exclude(has_deleted_answer("response_id"))
    pairs = rows.values_list("response_id", "payload__signature")
    return {response_id: signed for response_id, signed in pairs if isinstance(signed, str)}


class StoredHashes(NamedTuple):
    """The `output_hash` and `usage_hash` computed from a response's rows."""

    output: str
    usage: str


def stored_hashes(chat_id: str, response_ids: Collection[str]) -> dict[str, StoredHashes]:
    """Return the hashes of responses as they are stored, by response id.

    Clients of other protocols read the stored responses, so verifiers compare them with the
    signature, too. Responses whose output was erased or deleted are left out.
    """
    if not response_ids:
        return {}
    # The rows of sessions_app are reached through the chat, because imports point down.
    # The cast keeps SQLite from reading all responses of the chat, as in `ends`.
    chats = Chat.objects.alias(of_chat=Cast("pk", TextField()))
    rows = chats.filter(
        ~has_deleted_answer("responses__pk"), of_chat=chat_id, responses__pk__in=response_ids
    )
    values = list(rows.values_list("responses__pk", "responses__output", "responses__usage"))
    empty = {response_id for response_id, output, _ in values if not output}
    erased = _erased(chat_id, empty) if empty else set()
    return {
        response_id: StoredHashes(_hash_of(output), _hash_of(usage))
        for response_id, output, usage in values
        if response_id not in erased
    }


def _erased(chat_id: str, response_ids: Collection[str]) -> set[str]:
    """Filter responses to those whose answer was erased."""
    rows = ends(chat_id, response_ids).filter(erased_digest__isnull=False)
    return {row.response_id for row in rows if is_output_erased(row)}


def _hash_of(value: Any) -> str:
    """Return the hash of a value; an empty text, which no signature has, if it is not JSON."""
    try:
        return sha256_of(value)
    except ValueError:
        return ""


def signatures_of_responses(response_ids: Collection[str]) -> dict[str, str]:
    """Return the signatures of answers of any chats, as `signatures_of` does."""
    if not response_ids:
        return {}
    rows = ChatEvent.objects.filter(IS_END, response_id__in=list(response_ids))
    rows = rows.exclude(has_deleted_answer("response_id"))
    pairs = rows.values_list("response_id", "payload__signature")
    return {response_id: signed for response_id, signed in pairs if isinstance(signed, str)}


def messages_of_responses(response_ids: Collection[str]) -> dict[str, str]:
    """Return the message ids of answers by response id."""
    if not response_ids:
        return {}
    rows = Message.objects.filter(response_id__in=list(response_ids))
    return dict(rows.values_list("response_id", "pk"))


def signature_of_response() -> Subquery:
    """Return an expression for queries of responses: the signature of the answer."""
    end = ChatEvent.objects.filter(
        IS_END,
        ~has_deleted_answer("response_id"),
        chat_id=OuterRef("chat_id"),
        response_id=OuterRef("pk"),
    )
    return Subquery(end.values("payload__signature")[:1])
