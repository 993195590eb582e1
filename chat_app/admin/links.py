"""Share links and invite links in the admin: who created them, their use, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin, messages
from django.db import transaction

from agents_app.rest.views import caller
from audit_app.record import AuditAction
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.log.entries import lock_chats
from chat_app.members.links import end_link
from chat_app.models import InviteLink, ShareLink

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest

    from chat_app.members.links import AnyLink

_FACTS = ("created_at", "expires_at", "revoked_at")


class LinkAdmin(HistoryAdmin):
    """Links of one kind. An operator may revoke them, but sees nothing of their secrets."""

    list_select_related = ("chat", "created_by")
    search_fields = ("chat__id__exact", "created_by__username__exact")
    search_help_text = "The id of a chat, or the creator's name."
    ordering = ("-id",)
    actions = ("revoke",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Return whether a person may revoke links."""
        return request.user.has_perm(f"chat_app.change_{self.opts.model_name}")

    @admin.action(description="Revoke the selected links", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[AnyLink]) -> None:
        """Revoke links as their chats' members do, and record it."""
        operator = caller(request)
        with transaction.atomic():
            links = list(queryset.order_by("pk"))
            lock_chats({link.chat_id for link in links})
            for link in links:
                end_link(link, by=operator)
                self.log_act(request, link, AuditAction.LINK_REVOKED, "Revoked.")
        self.message_user(request, f"Links revoked: {len(links)}.", messages.SUCCESS)


@admin.register(ShareLink)
class ShareLinkAdmin(LinkAdmin):
    """Links that show chats to strangers."""

    list_display = ("id", "chat", "title", "created_by", "opened_count", "opened_at", *_FACTS)
    fields = (
        "chat", "title", "until_seq", "created_by", "opened_count", "opened_at", *_FACTS,
        "revoked_by",
    )  # fmt: skip


@admin.register(InviteLink)
class InviteLinkAdmin(LinkAdmin):
    """Links through which people join chats."""

    list_display = ("id", "chat", "role", "created_by", "used_count", "most_uses", *_FACTS)
    fields = (
        "chat", "role", "created_by", "used_count", "most_uses", "used_at", *_FACTS, "revoked_by",
    )  # fmt: skip
