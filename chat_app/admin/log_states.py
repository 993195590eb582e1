"""The state of a chat's log (intact or changed) for the chat's page; the signed heads of logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html

from audit_app.admin.columns import linked, moment
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.log.verification import check_log
from chat_app.models import LogCheckpoint, LogErasure
from uamp.logs.check import SENTENCES
from uamp.logs.spool import TMPDIR_ADVICE, SpoolError

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from chat_app.models import Chat

CHECKED: Final = 500
"""How many of the last entries are checked for a chat's page; `audit_log` checks all."""

SHOWN: Final = 10
"""How many problems are listed."""


def log_state(chat: Chat) -> SafeString | str:
    """Return the result of checking the last entries of a chat's log, with a link to its heads."""
    try:
        summary = check_log(chat.pk, last=CHECKED)
    except SpoolError as error:
        return f"Not checked: {error}. {TMPDIR_ADVICE}"
    if summary is None:
        return "-"
    url = reverse("admin:chat_app_logcheckpoint_changelist")
    heads = format_html('<a href="{}?q={}">Checkpoints</a>', url, chat.pk)
    read = f"{summary.entries} of {chat.last_seq} entries were checked"
    if summary.is_intact:
        outside = f", {summary.unchained} are outside the chain" if summary.unchained else ""
        return format_html("Not changed: {}{}. {}", read, outside, heads)
    visible = summary.problems[:SHOWN]
    listed = ", ".join(f"{problem.kind} at {problem.seq}" for problem in visible)
    reasons = " ".join(dict.fromkeys(SENTENCES[problem.kind] for problem in visible))
    return format_html("<strong>Changed: {}.</strong> {} {}. {}", listed, reasons, read, heads)


@admin.register(LogCheckpoint)
class LogCheckpointAdmin(HistoryAdmin):
    """The signed heads of logs."""

    list_display = (linked("chat"), "seq", moment("created_at"))
    list_select_related = ("chat",)
    search_fields = ("chat__id__exact",)
    search_help_text = "The id of a chat."
    ordering = ("-created_at", "-id")
    fields = ("chat", "seq", "note", "created_at")


@admin.register(LogErasure)
class LogErasureAdmin(HistoryAdmin):
    """The extent to which old messages were erased from logs (UAMP_MESSAGE_DAYS)."""

    list_display = ("entry", moment("changed_at"))
    fields = ("entry", "changed_at")
