"""Files sent in parts, in the admin; read-only, and deleted when they expire."""

from __future__ import annotations

from django.contrib import admin

from audit_app.admin.columns import linked, moment
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.models import Upload, UploadPart


@admin.register(Upload)
class UploadAdmin(HistoryAdmin):
    """Files that people send in parts, and how much of each has arrived."""

    list_display = (
        "id", linked("owner"), "offset", "length", "filename", moment("created_at"),
        moment("expires_at"),
    )  # fmt: skip
    list_select_related = ("owner",)
    search_fields = ("id__exact", "owner__username__exact")
    search_help_text = "The id of an upload, or a person's name."
    ordering = ("-expires_at",)
    fields = (
        "owner", "offset", "length", "filename", "mime_type", "content", "created_at", "expires_at",
    )  # fmt: skip
    content_fields = ("filename",)
    content_columns = ("filename",)


@admin.register(UploadPart)
class UploadPartAdmin(HistoryAdmin):
    """The received parts of each."""

    list_display = ("id", linked("upload"), "start")
    list_select_related = ("upload",)
    search_fields = ("upload__id__exact",)
    search_help_text = "The id of an upload."
    ordering = ("-id",)
    fields = ("upload", "start")
