"""The HTTP paths of the protocol: what the server can do, and UAMP without a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.urls import URLPattern

app_name = "sessions_app"
urlpatterns: list[URLPattern] = []
