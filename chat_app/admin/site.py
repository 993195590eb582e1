"""The name of this server in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin

from audit_app.admin.records import AuditedAdmin
from chat_app.browser.site import SiteNameField
from chat_app.models import Site

if TYPE_CHECKING:
    from django.http import HttpRequest

    # Django's classes take type arguments in its stubs only.
    _SiteForm = forms.ModelForm[Site]
else:
    _SiteForm = forms.ModelForm


class SiteForm(_SiteForm):
    """The name, cleaned as on the setup page."""

    name = SiteNameField(
        help_text="Shown in page titles, on the sign-in page, in emails and in authenticator apps."
    )


@admin.register(Site)
class SiteAdmin(AuditedAdmin):
    """The one row, which can be changed, and added where the setup page was not used."""

    form = SiteForm
    fields = ("name",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse a second row."""
        return super().has_add_permission(request) and not Site.objects.exists()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 required by the interface
        """Refuse to delete."""
        return False
