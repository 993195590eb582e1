"""The buttons that lead from a row's page to its timelines."""

from __future__ import annotations

from django.contrib.admin.utils import quote
from django.urls import reverse


def link_to_response(response_id: str) -> dict[str, str]:
    """Return the button for a response's timeline: {url, label}."""
    url = reverse("admin:sessions_app_response_timeline", args=[quote(response_id)])
    return {"url": url, "label": "Timeline"}


def link_to_chat(chat_id: str) -> dict[str, str]:
    """Return the button for a chat's timeline: {url, label}."""
    url = reverse("admin:sessions_app_chat_timeline", args=[quote(chat_id)])
    return {"url": url, "label": "Timeline of its chat"}
