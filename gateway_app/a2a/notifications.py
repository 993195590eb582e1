"""Push notifications: a task in a new state, in its receiver's format (A2A §4.3.3).

The body is a StreamResponse with the task in 1.0, and the task itself in 0.3. A task that is too
large is sent without artifacts and history; its client can fetch them by its id.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from gateway_app.a2a.dialects import v03, v1
from gateway_app.a2a.service import TRANSPORT
from gateway_app.a2a.tasks.messages import CONTEXT_EXTENSION
from gateway_app.a2a.tasks.snapshot import task_of
from gateway_app.backend.responses import ResponseReader
from gateway_app.backend.webhooks import WebhookFormat, register

if TYPE_CHECKING:
    from gateway_app.a2a.dialects.writing import TaskDialect
    from gateway_app.backend.webhooks import ChangedResponse

TOKEN_HEADER: Final = "X-A2A-Notification-Token"  # noqa: S105 a header's name


def register_formats() -> None:
    """Register the webhook format of each version."""
    for dialect, media_type in (
        (v1.DIALECT, "application/a2a+json"),
        (v03.DIALECT, "application/json"),
    ):
        render = partial(_rendered, dialect)
        register(
            dialect.webhook_format,
            WebhookFormat(render=render, media_type=media_type, token_header=TOKEN_HEADER),
        )


async def _rendered(dialect: TaskDialect, changed: ChangedResponse) -> bytes | None:
    reader = ResponseReader(
        f"{changed.origin}/agents/{quote(changed.agent)}/a2a",
        changed.principal,
        transport=TRANSPORT,
        agent=changed.agent,
        extension=CONTEXT_EXTENSION,
    )
    stored = await reader.find(changed.response_id)
    if stored is None:
        return None
    link = reader.link_in(stored.chat_id)
    body = msgspec.json.encode(dialect.answer(task_of(stored, link=link)))
    if len(body) <= changed.max_bytes:
        return body
    small = task_of(stored, link=link, history_length=0, with_artifacts=False)
    return msgspec.json.encode(dialect.answer(small))
