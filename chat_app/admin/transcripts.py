"""Transcripts of recordings in the admin; read-only."""

from __future__ import annotations

from django.contrib import admin

from audit_app.admin.windows import filter_by
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.models import Transcript, TranscriptState


@admin.register(Transcript)
class TranscriptAdmin(HistoryAdmin):
    """Transcripts of recordings, and recordings without one."""

    list_display = ("content", "state", "created_at")
    list_filter = (filter_by("state", TranscriptState.values),)
    list_select_related = ("content",)
    search_fields = ("content__id__exact",)
    search_help_text = "The id of a file."
    ordering = ("-content_id",)
    fields = ("content", "state", "text", "created_at")
    content_fields = ("text",)
