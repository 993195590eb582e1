"""People as other issuers name them, in the admin: shown, and removed where one is not theirs."""

from __future__ import annotations

from django.contrib import admin

from audit_app.admin.columns import linked, moment
from chat_app.admin.history_pages import HistoryAdmin
from sessions_app.models import ExternalIdentity


@admin.register(ExternalIdentity)
class ExternalIdentityAdmin(HistoryAdmin):
    """By which subject of which issuer a person signs in, or sends tokens."""

    list_display = (linked("user"), "subject", "issuer", moment("created_at"))
    list_select_related = ("user",)
    search_fields = ("user__username__exact", "subject__exact")
    search_help_text = "A person's name, or a subject."
    ordering = ("-id",)
    fields = ("user", "subject", "issuer", "created_at")
