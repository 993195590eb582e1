"""Workers that mail people: the row is claimed first, so that an email is sent at most once."""

from __future__ import annotations

import logging
from typing import Any, Final

from celery import shared_task
from django.db import transaction
from django.utils import timezone

from chat_app.digests import unread
from chat_app.digests.mails import mail_of
from chat_app.models import UnreadMail
from chat_app.people.settings import settings_of

logger = logging.getLogger(__name__)

EXPIRES_SECONDS: Final = 50


def look_for_unread() -> None:
    """Have workers mail the people who have something unread."""
    for user_id in unread.people_to_mail(timezone.now()):
        try:
            mail_unread.apply_async(
                kwargs={"user_id": user_id}, retry=False, expires=EXPIRES_SECONDS
            )
        except Exception:
            # The next round asks again.
            logger.warning("no worker was asked to mail a person", exc_info=True)
            return


@shared_task
def mail_unread(*, user_id: int, **kwargs: Any) -> None:
    """Mail a person what stayed unread, unless they had an email within the hour."""
    if kwargs:
        logger.info("ignored arguments from a newer caller: %s", ", ".join(kwargs))
    now = timezone.now()
    until = now - unread.UNREAD
    address, settings = unread.address_of(user_id), settings_of(user_id)
    if not address or not settings.mail_unread:
        return
    with transaction.atomic():
        UnreadMail.objects.get_or_create(
            pk=user_id, defaults={"looked_until": until - unread.LOOKS_BACK}
        )
        row = UnreadMail.objects.select_for_update(no_key=True).get(pk=user_id)
        if row.mailed_at is not None and row.mailed_at > now - unread.PAUSE:
            return
        since = max(row.looked_until, until - unread.LOOKS_BACK)
        messages = unread.unread_messages(user_id, since=since, until=until)
        row.looked_until = until
        row.mailed_at = now if messages else row.mailed_at
        row.save()
    if not messages:
        return
    try:
        mail_of(address, settings, messages).send()
    except (OSError, ValueError) as error:
        # The text of an error may name the recipient.
        logger.error("an email about unread messages was not sent: %s", type(error).__name__)  # noqa: TRY400 as above
