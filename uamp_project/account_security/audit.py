"""Audit rows for changes to how people sign in, each in the transaction of its change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account import signals as account_signals
from allauth.account.models import EmailAddress
from allauth.core import context
from allauth.mfa import signals as factor_signals
from allauth.mfa.models import Authenticator
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from agents_app.rest.views import address_of
from audit_app.record import AuditAction, record

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@receiver(post_save, sender=Authenticator)
def _added(instance: Authenticator, created: bool, **_: Any) -> None:  # noqa: FBT001 Django's signal
    if created:
        _record(AuditAction.SECOND_FACTOR_ADDED, instance.user, instance.type)


@receiver(post_delete, sender=Authenticator)
def _removed(instance: Authenticator, **_: Any) -> None:
    _record(AuditAction.SECOND_FACTOR_REMOVED, instance.user, instance.type)


@receiver(factor_signals.authenticator_used)
def _used(authenticator: Authenticator, **_: Any) -> None:
    if authenticator.type == Authenticator.Type.RECOVERY_CODES:
        _record(AuditAction.RECOVERY_CODE_USED, authenticator.user, "")


@receiver(account_signals.email_confirmed)
def _confirmed(email_address: EmailAddress, **_: Any) -> None:
    _record(AuditAction.EMAIL_CONFIRMED, email_address.user, "")


@receiver(post_delete, sender=EmailAddress)
def _address_removed(instance: EmailAddress, **_: Any) -> None:
    if instance.verified:
        _record(AuditAction.EMAIL_REMOVED, instance.user, "")


@receiver(account_signals.password_reset)
def _reset(user: User, **_: Any) -> None:
    _record(AuditAction.PASSWORD_RESET, user, "with a link from an email")


def _record(action: AuditAction, user: User, detail: str) -> None:
    """Write a row; the actor is who is signed in, or the person if no one is."""
    request = context.request
    is_signed_in = request is not None and request.user.is_authenticated
    record(
        request.user if is_signed_in else user,
        action,
        user,
        detail=detail,
        address=address_of(request) if request is not None else "",
    )
