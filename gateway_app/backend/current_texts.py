"""The current text of questions and answers that a client or a response holds copies of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway_app.types.message_origins import CurrentTexts
from sessions_app import database
from sessions_app.returning import past_responses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sessions_app.access.principal import Principal


async def current_texts(
    response_ids: Iterable[str], principal: Principal
) -> dict[str, CurrentTexts]:
    """Return the current text of responses that the principal holds copies of."""
    texts_by_id = await database.run(past_responses.current_texts, list(response_ids), principal)
    return {
        response_id: CurrentTexts(
            question=texts.message, is_edited=texts.is_edited, has_answer=texts.has_answer
        )
        for response_id, texts in texts_by_id.items()
    }
