"""Share links and invite links in the admin: who created them, their use, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from agents_app.rest.views import caller
from audit_app.admin.operations import Operation, OperationsAdmin
from audit_app.record import AuditAction
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.log.entries import lock_chats
from chat_app.members.link_validity import end_link
from chat_app.models import InviteLink, ShareLink

if TYPE_CHECKING:
    from django.http import HttpRequest

    from chat_app.members.link_validity import AnyLink

_FACTS = ("created_at", "expires_at", "revoked_at")


def _revoke(link: AnyLink, data: dict[str, Any], request: HttpRequest) -> str:
    """Revoke a link as the members of its chat do."""
    del data
    lock_chats({link.chat_id})
    return "it no longer works" if end_link(link, by=caller(request)) else ""


def _revocation(kind: type[AnyLink], effect: str) -> Operation:
    """Return the operation that revokes links of a kind; `effect` says what that means."""
    return Operation(
        name="revoke",
        label="Revoke",
        right=f"chat_app.change_{kind.__name__.lower()}",
        act=AuditAction.LINK_REVOKED,
        run=_revoke,
        facts=lambda link: (
            f"Link {link.pk} of the chat {link.chat_id}, created by"
            f" {link.created_by or 'a deleted account'}, will no longer work. {effect}"
        ),
        is_available=lambda link: link.revoked_at is None,
        in_list=True,
    )


class LinkAdmin(OperationsAdmin, HistoryAdmin):
    """Links of one kind. An operator may revoke them, but sees nothing of their secrets."""

    list_select_related = ("chat", "created_by")
    search_fields = ("chat__id__exact", "created_by__username__exact")
    search_help_text = "The id of a chat, or the creator's name."
    ordering = ("-id",)


@admin.register(ShareLink)
class ShareLinkAdmin(LinkAdmin):
    """Links that show chats to strangers."""

    operations = (_revocation(ShareLink, "The page that it opens will be gone."),)
    list_display = ("id", "chat", "created_by", "opened_count", *_FACTS)
    fields = (
        "chat", "title", "until_seq", "created_by", "opened_count", "opened_at", *_FACTS,
        "revoked_by",
    )  # fmt: skip


@admin.register(InviteLink)
class InviteLinkAdmin(LinkAdmin):
    """Links through which people join chats."""

    operations = (_revocation(InviteLink, "People who joined through it stay members."),)
    list_display = ("id", "chat", "role", "created_by", "uses", "expires_at", "revoked_at")
    fields = (
        "chat", "role", "created_by", "used_count", "most_uses", "used_at", *_FACTS, "revoked_by",
    )  # fmt: skip

    @admin.display(description="uses")
    def uses(self, link: InviteLink) -> str:
        """Return the number of people who joined through it, and the most who may."""
        if link.most_uses is None:
            return f"{link.used_count:,}"
        return f"{link.used_count:,} of {link.most_uses:,}"
