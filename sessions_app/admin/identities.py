"""External identities in the admin: displayed, and never changed here."""

from __future__ import annotations

from django.contrib import admin

from audit_app.admin.columns import linked, moment
from chat_app.admin.history_pages import HistoryAdmin
from sessions_app.models import ExternalIdentity


@admin.register(ExternalIdentity)
class ExternalIdentityAdmin(HistoryAdmin):
    """The issuers and subjects with which people sign in or send tokens."""

    list_display = (linked("user"), "subject", "issuer", moment("created_at"))
    list_select_related = ("user",)
    search_fields = ("user__username__exact", "subject__exact")
    search_help_text = "A person's name, or a subject."
    ordering = ("-id",)
    fields = ("user", "subject", "issuer", "created_at")
