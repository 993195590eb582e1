"""The text of notifications, worded as static/chat/notifications/notifier.js does on pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from django.conf import settings as server_settings
from django.utils import translation
from django.utils.translation import gettext as _

from chat_app.markdown import plain

if TYPE_CHECKING:
    from chat_app.models import Message, PersonSettings, PushDelivery

BYTES_MAX: Final = 3000
"""Push services take messages of 4 KB, encrypted."""
_NAME_CHARS: Final = 80
_BODY_CHARS: Final = 160
_TEXT_CHARS: Final = 4000


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The message to the service worker (static/offline/service-worker.js)."""

    title: str
    body: str
    chat: str
    message: str
    thread: str = ""
    is_silent: bool = False


def payload_of(delivery: PushDelivery, settings: PersonSettings, *, is_direct: bool) -> bytes:
    """Return the payload of a delivery, in the person's language; needs `message` and sender."""
    message = delivery.message
    is_reply = bool(message.thread_only)
    with translation.override(settings.language or server_settings.LANGUAGE_CODE):
        title, body = _words(message, delivery, settings, is_direct=is_direct, is_reply=is_reply)
    return msgspec.json.encode(
        Payload(
            title=title,
            body=body,
            chat=message.chat_id,
            message=message.pk,
            thread=(message.thread or "") if is_reply else "",
            is_silent=not settings.notification_sound,
        )
    )


def _words(
    message: Message,
    delivery: PushDelivery,
    settings: PersonSettings,
    *,
    is_direct: bool,
    is_reply: bool,
) -> tuple[str, str]:
    if not settings.notification_text:
        hint = _("You were mentioned") if delivery.is_mention else ""
        return _("New message"), _("New reply in a thread") if is_reply else hint
    author = _shortened(author_of(message), _NAME_CHARS)
    chat = _shortened(message.chat.title, _NAME_CHARS)
    if is_reply and chat:
        title = _("%(name)s replied in a thread in %(chat)s") % {"name": author, "chat": chat}
    else:
        title = author if is_direct or not chat else f"{author} · {chat}"
    return title, beginning_of(message)


def author_of(message: Message) -> str:
    """Return the name of a message's author; needs `sender_user__profile` selected."""
    profile = getattr(message.sender_user, "profile", None)
    return (profile.display_name if profile else "") or message.name


def beginning_of(message: Message) -> str:
    """Return the beginning of a message without its markup."""
    text = plain(message.content[:_TEXT_CHARS])
    return _shortened(text, _BODY_CHARS) or _("sent a file")


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
