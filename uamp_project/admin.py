"""The second factors and mail addresses of people in the admin, without their secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib import admin

from agents_app.rest.views import caller
from audit_app.admin.records import RecordAdmin
from audit_app.authority import may_act_as

if TYPE_CHECKING:
    from django.http import HttpRequest

admin.site.unregister([Authenticator, EmailAddress])


class _OfPerson(RecordAdmin):
    """Rows of people that an operator who may act as them deletes, one at a time."""

    list_select_related = ("user",)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow it as for passwords: who has lost their phone can then sign in without it."""
        label = self.opts.label_lower
        name = f"{self.opts.app_label}.delete_{label.rpartition('.')[2]}"
        return (
            obj is not None
            and request.user.has_perm(name)
            and may_act_as(caller(request), obj.user)
        )


@admin.register(Authenticator)
class AuthenticatorAdmin(_OfPerson):
    """Authenticator apps, passkeys and recovery codes."""

    list_display = ("user", "type", "created_at", "last_used_at")
    list_filter = ("type",)
    fields = list_display


@admin.register(EmailAddress)
class EmailAddressAdmin(_OfPerson):
    """Mail addresses that people entered."""

    list_display = ("user", "email", "verified")
    list_filter = ("verified",)
    fields = list_display
    find_by = ("email",)
