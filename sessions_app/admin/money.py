"""Money in the admin beside the ledger: payments that answers wait for, the dashboard.

Staff who may not see the ledger see no amount of it here. Figures of the dashboard are
sums that are kept for a minute (`payments_app.reporting.totals`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from agents_app import selectors as agents
from agents_app.admin.records import RecordInline
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.members import chat_lists
from payments_app import selectors as ledger_rows
from payments_app.money import Money
from payments_app.reporting import answer_costs, totals
from sessions_app.models import PaymentRequest
from sessions_app.states import PaymentState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern
    from django.utils.safestring import SafeString


SEES_MONEY: Final = ("payments_app.view_transfer", "payments_app.view_account")
SHADES: Final = 6
"""Agents with a colour of their own in the plot; the last colour is for all others."""
TITLES: Final[dict[str, str]] = {"user": "Person", "chat": "Chat", "protocol": "Protocol"}
PLOT_WIDTH: Final = 560
PLOT_HEIGHT: Final = 160
GAP: Final = 0.25


def sees_money(request: HttpRequest) -> bool:
    """Return whether a person may see the ledger."""
    return request.user.has_perms(SEES_MONEY)


def ledger_link(model: str, label: str, row_id: str) -> SafeString:
    """Return a link to the transfers or holds of a response or chat."""
    url = reverse(f"admin:payments_app_{model}_changelist")
    return format_html('<a href="{}?{}">{}</a>', url, urlencode({"q": row_id}), label)


def money_links(response_id: str) -> SafeString:
    """Return links to the transfers and the holds of a response."""
    return format_html(
        "{}, {}",
        ledger_link("transfer", "Transfers", response_id),
        ledger_link("hold", "Holds", response_id),
    )


def cost_line(response_id: str) -> SafeString:
    """Return the cost of a response, with links to its rows."""
    cost = answer_costs.costs_of([response_id]).get(response_id)
    if cost is None:
        return format_html("Nothing was charged. {}", money_links(response_id))
    back = f", {cost.refunded} given back" if cost.refunded else ""
    return format_html(
        "{} {} charged{}. {}", cost.charged, cost.charged.asset, back, money_links(response_id)
    )


class PaymentRequestInline(RecordInline):
    """The payments that a response waited for."""

    model = PaymentRequest
    fields = ("number", "payer", "sum", "reason", "action", "status", "deadline", "decided_at")
    readonly_fields = ("sum",)

    @admin.display(description="amount")
    def sum(self, row: PaymentRequest) -> str:
        """Return the amount as a decimal string."""
        return amount_text(row)


def amount_text(row: PaymentRequest) -> str:
    """Return what a request asks for."""
    return f"{Money(row.amount, row.asset)} {row.asset}"


@admin.register(PaymentRequest)
class PaymentRequestAdmin(HistoryAdmin):
    """Payments that answers wait for or waited for; and the dashboard of money."""

    list_display = ("response", "number", "payer", "sum", "status", "created_at", "decided_at")
    list_filter = ("status",)
    list_select_related = ("response", "payer")
    search_fields = ("response__id__exact", "asked_in__exact", "payer__username__exact")
    search_help_text = "The id of a response or a chat, or the payer's name."
    fields = (
        "response", "number", "payer", "asked_in", "sum", "reason", "action", "status", "hold_id",
        "account_id", "token_id", "deadline", "created_at", "decided_at",
    )  # fmt: skip
    readonly_fields = ("sum",)

    @admin.display(description="amount")
    def sum(self, row: PaymentRequest) -> str:
        """Return the amount as a decimal string."""
        return amount_text(row)

    def get_urls(self) -> list[URLPattern]:
        """Add the dashboard."""
        page = path(
            "dashboard/",
            self.admin_site.admin_view(self.dashboard),
            name="sessions_app_paymentrequest_dashboard",
        )
        return [page, *super().get_urls()]

    def dashboard(self, request: HttpRequest) -> HttpResponse:
        """Show sums of the ledger; raises PermissionDenied without the right to view it."""
        if not sees_money(request):
            raise PermissionDenied
        found = totals.overview()
        waiting = PaymentRequest.objects.filter(
            status=PaymentState.WAITING, decided_at__isnull=True
        )
        return TemplateResponse(
            request,
            "admin/sessions_app/paymentrequest/dashboard.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": "Money",
                "overview": found,
                "asset": found.held.asset,
                "waiting": waiting.count(),
                "health": ledger_rows.ledger_health(),
                "plot": plot_of(found),
                "most": most_of(found),
            },
        )


def most_of(found: totals.Overview) -> list[dict[str, Any]]:
    """Return tables of who was charged most: {title, rows: [{label, url, amount, charges}]}."""
    people = User.objects.in_bulk([int(one.name) for one in found.most["user"] if one.name])
    titles = chat_lists.titles_of([one.name for one in found.most["chat"] if one.name])
    tables = []
    for dimension, most in found.most.items():
        rows = []
        for one in most:
            label, url = one.name or "none", ""
            if dimension == "user" and one.name and (person := people.get(int(one.name))):
                label = person.get_username()
            if dimension == "chat" and one.name:
                label = titles.get(one.name) or one.name
                url = reverse("admin:chat_app_chat_change", args=[quote(one.name)])
            rows.append(
                {"label": label, "url": url, "amount": one.amount, "charges": one.transfers}
            )
        tables.append({"title": TITLES[dimension], "rows": rows})
    return tables


def plot_of(found: totals.Overview) -> dict[str, Any]:
    """Return the plot of the last days for the template: placed bars and a legend.

    `bars` are {x, y, width, height, shade, title}, `legend` {name, shade, amount}, `rows` the same
    figures as a table: {day, cells}.
    """
    named, by_day = _by_agent(found)
    highest = max((sum(row) for row in by_day.values()), default=0)
    step = PLOT_WIDTH / len(found.days)
    bars = []
    for number, day in enumerate(found.days):
        floor = float(PLOT_HEIGHT)
        for shade, units in enumerate(by_day.get(day, ())):
            if units <= 0:
                continue
            height = PLOT_HEIGHT * units / highest
            floor -= height
            bars.append(
                {
                    "x": f"{step * (number + GAP / 2):.1f}",
                    "y": f"{floor:.1f}",
                    "width": f"{step * (1 - GAP):.1f}",
                    "height": f"{height:.1f}",
                    "shade": shade,
                    "title": f"{day}: {named[shade]} {Money(units)}",
                }
            )
    sums = [sum(row[shade] for row in by_day.values()) for shade in range(len(named))]
    return {
        "width": PLOT_WIDTH,
        "height": PLOT_HEIGHT,
        "bars": bars,
        "legend": [
            {"name": name, "shade": shade, "amount": str(Money(sums[shade]))}
            for shade, name in enumerate(named)
        ],
        "rows": [
            {"day": day, "cells": [str(Money(units)) for units in by_day[day]]}
            for day in found.days
            if day in by_day
        ],
    }


def _by_agent(found: totals.Overview) -> tuple[Sequence[str], dict[Any, list[int]]]:
    """Return the names of the dearest agents, and by day what each was charged for."""
    sums: dict[str, int] = {}
    for one in found.charged:
        sums[one.agent_id] = sums.get(one.agent_id, 0) + one.amount.amount
    ordered = sorted(sums, key=lambda agent_id: -sums[agent_id])
    place = {agent_id: min(i, SHADES - 1) for i, agent_id in enumerate(ordered)}
    named = [_name(agent_id) for agent_id in ordered[:SHADES]]
    if len(ordered) > SHADES:
        named[-1] = "others"
    by_day: dict[Any, list[int]] = {}
    for one in found.charged:
        row = by_day.setdefault(one.day, [0] * len(named))
        row[place[one.agent_id]] += one.amount.amount
    return named, by_day


def _name(agent_id: str) -> str:
    try:
        return agents.get_spec(agent_id).name if agent_id else "no agent"
    except agents.AgentNotFoundError:
        return "an agent that is gone"
