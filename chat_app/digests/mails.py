"""The text of an email about unread messages, in the language of its reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings as server_settings
from django.core.mail import EmailMessage
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat_app.browser.site import site_name
from chat_app.digests.unsubscribing import unsubscribe_url
from chat_app.push.payloads import author_of, beginning_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.models import Message, PersonSettings


def mail_of(address: str, settings: PersonSettings, messages: Sequence[Message]) -> EmailMessage:
    """Return the email; without "Show who wrote and what" it has neither authors nor text."""
    server = server_settings.UAMP_ISSUER.rstrip("/")
    link = unsubscribe_url(settings.user_id)
    with translation.override(settings.language or server_settings.LANGUAGE_CODE):
        count = len(messages)
        subject = ngettext("%(count)s unread message", "%(count)s unread messages", count) % {
            "count": count
        }
        parts = [subject + ":"]
        parts += [_lines(message, settings, server) for message in messages]
        parts.append(
            _("You're getting this email because you have unread messages. Unsubscribe: %(link)s")
            % {"link": link}
        )
    return EmailMessage(
        f"[{site_name()}] {subject}",
        "\n\n".join(parts) + "\n",
        to=[address],
        headers={
            "List-Unsubscribe": f"<{link}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            "Auto-Submitted": "auto-generated",
        },
    )


def _lines(message: Message, settings: PersonSettings, server: str) -> str:
    address = f"{server}/chats/{message.chat_id}"
    if not settings.notification_text:
        return address
    author, title = author_of(message), message.chat.title
    place = f"{author} · {title}" if title else author
    return f"{place}\n{beginning_of(message)}\n{address}"
