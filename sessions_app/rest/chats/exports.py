"""REST: a chat as a file, with a receipt for each answer (docs/rest.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_app.rest.views import caller
from chat_app.rest.messages.export import ExportView
from sessions_app.access.auth import of_user, unwelcome
from sessions_app.access.principal import Principal
from sessions_app.rest.chats.failures import failures_of
from sessions_app.rest.chats.receipts import receipts_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from rest_framework.request import Request


def _receipts(
    chat_id: str, user_id: int, response_ids: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Return the receipts of answers by response id."""
    receipts = receipts_of(chat_id, user_id, response_ids=response_ids)
    return {receipt.pop("response_id"): receipt for receipt in receipts}


def _is_admitted(request: Request) -> bool:
    """Return whether the key, token or sign-in of a request is still valid."""
    principal = request.auth
    if not isinstance(principal, Principal):
        principal = of_user(caller(request), web_session=request.session.session_key or "")
    return not principal.is_expired and not unwelcome([principal])


class ReceiptedExportView(ExportView):
    """A chat as a file."""

    receipts = staticmethod(_receipts)
    failures = staticmethod(failures_of)
    is_admitted = staticmethod(_is_admitted)
