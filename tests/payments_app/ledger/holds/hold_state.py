"""The state of a hold."""

from __future__ import annotations

from payments_app.models import Hold


def state(hold_id: str) -> str:
    return Hold.objects.get(pk=hold_id).state
