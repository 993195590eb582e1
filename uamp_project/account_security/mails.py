"""The texts of emails to people, and their delivery on threads of their own.

A page that requests a mail does not wait for the mail server: its time would reveal whether there
was an account to write to.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from django.core.mail import EmailMessage

logger = logging.getLogger(__name__)

SENT_AT_ONCE: Final = 2
WAITING_MAX: Final = 20
"""How many mails may wait in a process; further ones are dropped and logged."""

_sender = ThreadPoolExecutor(SENT_AT_ONCE, thread_name_prefix="mail")
_places = threading.BoundedSemaphore(WAITING_MAX)


def deliver(message: EmailMessage) -> None:
    """Send an email in the background; a failure is logged without the text or the recipient."""
    if not _places.acquire(blocking=False):
        logger.error("an email was dropped: %d are waiting for the mail server", WAITING_MAX)
        return
    _sender.submit(_send, message)


def _send(message: EmailMessage) -> None:
    try:
        message.send()
    except (OSError, ValueError) as error:
        # The text of an error may name the recipient.
        reason = getattr(error, "smtp_code", None) or getattr(error, "errno", None) or ""
        logger.error("an email was not sent: %s %s", type(error).__name__, reason)  # noqa: TRY400 as above
    finally:
        _places.release()


def compose(kind: str, values: dict[str, Any]) -> tuple[str, str]:
    """Return subject and text of an email; `kind` is the name of django-allauth's template."""
    name = str(values["user"].get_username())
    if kind == "account/email/password_reset_key":
        text = _(
            "Hello %(name)s,\n\nSomeone, probably you, asked for a new password for your account."
            " Choose it here within an hour:\n\n%(link)s\n\nIf it wasn't you, ignore this email:"
            " your password stays as it is."
        )
        link = values["password_reset_url"]
        return _("Choose a new password"), text % {"name": name, "link": link}
    if kind == "account/email/email_confirmation":
        text = _(
            "Hello %(name)s,\n\nOpen this link within a day to confirm that this is your email"
            " address:\n\n%(link)s\n\nIf you did not enter it, ignore this email."
        )
        return _("Confirm your email address"), text % {
            "name": name,
            "link": values["activate_url"],
        }
    text = _(
        "Hello %(name)s,\n\n%(change)s\n\nIf it wasn't you, change your password at once and tell"
        " an operator of the server: %(server)s"
    )
    values = {"name": name, "change": _CHANGES[kind](), "server": values["server"]}
    return _("Your account was changed"), text % values


_CHANGES: Final = {
    "account/email/password_reset": lambda: _(
        "Your password was changed with a link from an email."
    ),
    "account/email/email_changed": lambda: _("The email address of your account was changed."),
    "account/email/email_deleted": lambda: _("The email address of your account was removed."),
    "mfa/email/totp_activated": lambda: _("An authenticator app was added to your account."),
    "mfa/email/totp_deactivated": lambda: _("The authenticator app was removed from your account."),
    "mfa/email/recovery_codes_generated": lambda: _(
        "Your account has new recovery codes. The old ones no longer work."
    ),
    "mfa/email/webauthn_added": lambda: _("A passkey was added to your account."),
    "mfa/email/webauthn_removed": lambda: _("A passkey was removed from your account."),
}
