"""The REST paths of the chat domain, below `/api`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.urls import URLPattern

app_name = "chat_app"
urlpatterns: list[URLPattern] = []
