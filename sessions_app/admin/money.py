"""Money in the admin outside the ledger: payments that answers wait for, and the dashboard.

Staff without access to the ledger see none of its amounts here. The dashboard's figures are cached
for a minute: totals of the ledger (`payments_app.reporting.totals`) and sums of counted hours
(`sessions_app.reporting`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.http import urlencode

from audit_app.admin.columns import badge, id_link, linked, list_link, moment
from audit_app.admin.operations import OperationsAdmin
from audit_app.admin.records import RecordInline, record_request
from audit_app.record import AuditAction
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.members import chat_lists
from payments_app import selectors as ledger_rows
from payments_app.money import Money
from payments_app.reporting import answer_costs, totals
from payments_app.reporting.statement_csv import csv_text
from sessions_app.admin.timeline.links import link_to_response
from sessions_app.models import PaymentRequest
from sessions_app.reporting.charged_days import RANGE_DAYS, ChargedDays, charged_days
from sessions_app.reporting.figures import Series, server_figures
from sessions_app.reporting.hours import DAYS
from sessions_app.states import PaymentState

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

    from payments_app.selectors import Dimension


SEES_MONEY: Final = ("payments_app.view_transfer", "payments_app.view_account")
_PEOPLE: Final[tuple[Dimension, ...]] = ("user", "person")
SHADES: Final = 6
"""The number of colours in the plot; the last one is for all remaining agents."""
TITLES: Final[dict[str, str]] = {"user": "Paid by", "person": "Asked by", "chat": "Chat"}
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
    back = f", {cost.refunded} {cost.refunded.asset} refunded" if cost.refunded else ""
    return format_html(
        "{} {} charged{}. {}", cost.charged, cost.charged.asset, back, money_links(response_id)
    )


class DaysForm(forms.Form):
    """A range of days, inclusive, in UTC; without one, the last DAYS days."""

    first = forms.DateField(label="From", widget=forms.DateInput({"type": "date"}))
    last = forms.DateField(label="Until", widget=forms.DateInput({"type": "date"}))
    was_sent = False

    @classmethod
    def of(cls, request: HttpRequest) -> DaysForm:
        """Return the form of a request, with the default for a day that it leaves out."""
        today = datetime.now(UTC).date()
        default = {"first": today - timedelta(days=DAYS - 1), "last": today}
        sent = {name: request.GET[name] for name in default if request.GET.get(name)}
        form = cls({**default, **sent})
        form.was_sent = bool(sent)
        return form

    def clean(self) -> dict[str, Any]:
        """Refuse a range that ends before it begins, or is too long to be read at once."""
        days: dict[str, Any] = super().clean() or self.cleaned_data
        first, last = days.get("first"), days.get("last")
        if first and last and last < first:
            raise forms.ValidationError("The range ends before it begins.")
        if first and last and (last - first).days >= RANGE_DAYS:
            raise forms.ValidationError(f"The range has more than {RANGE_DAYS} days.")
        return days

    def charges(self) -> ChargedDays:
        """Return the charges of a valid range."""
        return charged_days(self.cleaned_data["first"], self.cleaned_data["last"], timezone.now())

    @property
    def query(self) -> str:
        """The range as a query."""
        return urlencode({name: self.data[name] for name in ("first", "last")})


class PaymentRequestInline(RecordInline):
    """The payments that a response has waited for."""

    model = PaymentRequest
    fields = ("number", "payer", "sum", "reason", "action", "status", "deadline", "decided_at")
    readonly_fields = ("sum",)
    show_change_link = True

    @admin.display(description="amount")
    def sum(self, row: PaymentRequest) -> str:
        """Return the amount as a decimal string."""
        return amount_text(row)


def amount_text(row: PaymentRequest) -> str:
    """Return the requested amount."""
    return f"{Money(row.amount, row.asset)} {row.asset}"


@admin.register(PaymentRequest)
class PaymentRequestAdmin(OperationsAdmin, HistoryAdmin):
    """Past and pending payments for answers, and the money dashboard."""

    list_display = (
        moment("created_at", "asked at"), linked("response", "answer"), linked("payer"), "sum",
        "state", moment("deadline"), moment("decided_at"),
    )  # fmt: skip
    list_filter = ("status",)
    list_select_related = ("response", "payer")
    search_fields = ("response__id__exact", "asked_in__exact", "payer__username__exact")
    search_help_text = "The id of an answer or a chat, or the payer's name."
    fields = (
        "response", "number", "payer", "chat", "sum", "reason", "action", "status", "hold",
        "account", "token", "transfers", "deadline", "created_at", "decided_at",
    )  # fmt: skip
    readonly_fields = ("sum", "chat", "hold", "account", "token", "transfers")
    chat = staticmethod(id_link("asked_in", "chat_app.chat", "asked in"))
    hold = staticmethod(id_link("hold_id", "payments_app.hold", "hold"))
    account = staticmethod(id_link("account_id", "payments_app.account", "account"))
    token = staticmethod(id_link("token_id", "payments_app.paymenttoken", "payment token"))

    @admin.display(description="transfers of the answer")
    def transfers(self, row: PaymentRequest) -> SafeString:
        """Return a link to the answer's charges."""
        return list_link("payments_app.transfer", f"q={row.response_id}", "Transfers")

    @admin.display(description="state")
    def state(self, row: PaymentRequest) -> SafeString:
        """Return the state, including a deadline that has just passed."""
        if row.decided_at is None and row.deadline < timezone.now():
            return badge("past its deadline", "bad")
        tones = {"paid": "good", "waiting": "busy"}
        return badge(row.status, tones.get(row.status, "quiet"))

    def row_links(self, request: HttpRequest, row: PaymentRequest) -> list[dict[str, str]]:
        """Return links to its timeline and, for those who may see the ledger, its hold."""
        links = [link_to_response(row.response_id)]
        if row.hold_id and sees_money(request):
            url = reverse("admin:payments_app_hold_change", args=[quote(row.hold_id)])
            links.append({"url": url, "label": "Hold"})
        return links

    @admin.display(description="amount")
    def sum(self, row: PaymentRequest) -> str:
        """Return the amount as a decimal string."""
        return amount_text(row)

    def get_urls(self) -> list[URLPattern]:
        """Add the dashboard's URL."""
        page = path(
            "dashboard/",
            self.admin_site.admin_view(self.dashboard),
            name="sessions_app_paymentrequest_dashboard",
        )
        export = path(
            "dashboard/charges.csv",
            self.admin_site.admin_view(self.charges),
            name="sessions_app_paymentrequest_charges",
        )
        return [page, export, *super().get_urls()]

    def charges(self, request: HttpRequest) -> HttpResponse:
        """Send the charges per day and agent as CSV, which is recorded.

        Raises PermissionDenied without access to the ledger. An invalid range is status 400.
        """
        if not sees_money(request):
            raise PermissionDenied
        form = DaysForm.of(request)
        if not form.is_valid():
            return HttpResponse(form.errors.as_text(), status=400, content_type="text/plain")
        charges = form.charges()
        record_request(
            request, AuditAction.CHARGES_EXPORTED, None, detail=f"{charges.first} to {charges.last}"
        )
        lines = [
            (str(row.day), row.agent_id, row.agent, row.amount, row.amount.asset)
            for row in charges.rows
        ]
        name = f"charges-{charges.first}-{charges.last}.csv"
        return HttpResponse(
            csv_text(("day", "agent_id", "agent", "amount", "asset"), lines),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    def dashboard(self, request: HttpRequest) -> HttpResponse:
        """Show the ledger's totals; raises PermissionDenied without access to the ledger."""
        if not sees_money(request):
            raise PermissionDenied
        overview, figures = totals.overview(), server_figures()
        form, charged, missing = DaysForm.of(request), figures.charged_by_agent, 0
        if not form.is_valid():
            charged = Series(places=(), names=(), values={})
        elif form.was_sent:
            days = form.charges()
            charged, missing = days.series(), days.missing_hours
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
                "overview": overview,
                "asset": overview.held.asset,
                "waiting": waiting.count(),
                "health": ledger_rows.ledger_health(),
                "form": form,
                "charged_today": Money(charged_on_last_day(figures.charged_by_agent)),
                "missing_hours": missing,
                "plot": plot_of(charged),
                "most": [*top_charges(overview), protocols_of(figures.charged_by_protocol)],
            },
        )


def charged_on_last_day(charged: Series) -> int:
    """Return the sum of the last day of a series."""
    return sum(charged.values.get((charged.places[-1], name), 0) for name in charged.names)


def top_charges(overview: totals.Overview) -> list[dict[str, Any]]:
    """Return tables of the largest charges: {title, rows: [{label, url, amount, charges}]}."""
    named = [row for name in _PEOPLE for row in overview.most.get(name, ()) if row.name]
    people = User.objects.in_bulk({int(row.name) for row in named})
    titles = chat_lists.titles_of([row.name for row in overview.most["chat"] if row.name])
    tables = []
    for dimension, entries in overview.most.items():
        rows = []
        for row in entries:
            label, url = row.name or "none", ""
            if dimension in _PEOPLE and row.name and (person := people.get(int(row.name))):
                label = person.get_username()
            if dimension == "chat" and row.name:
                label = titles.get(row.name) or row.name
                url = reverse("admin:chat_app_chat_change", args=[quote(row.name)])
            rows.append({"label": label, "url": url, "amount": row.amount, "charges": row.charges})
        tables.append({"title": TITLES[dimension], "rows": rows})
    return tables


def protocols_of(charged: Series) -> dict[str, Any]:
    """Return a table of charges by protocol, largest first."""
    sums = {
        name: sum(charged.values.get((day, name), 0) for day in charged.places)
        for name in charged.names
    }
    rows = [{"label": name, "url": "", "amount": Money(sums[name])} for name in sums]
    return {"title": "Protocol", "rows": rows}


def plot_of(charged: Series) -> dict[str, Any]:
    """Return the plot of recent days for the template: positioned bars and a legend.

    `bars` are {x, y, width, height, shade, title}, `legend` {name, shade, amount}, and `rows` the
    same figures as a table: {day, cells}. The last of SHADES combines all remaining agents.
    """
    named = list(charged.names[:SHADES])
    if len(charged.names) > SHADES:
        named[-1] = "others"
    by_day = _by_day(charged, len(named))
    sums = [sum(row[shade] for row in by_day.values()) for shade in range(len(named))]
    return {
        "width": PLOT_WIDTH,
        "height": PLOT_HEIGHT,
        "bars": _bars(charged, named, by_day),
        "legend": [
            {"name": name, "shade": shade, "amount": str(Money(sums[shade]))}
            for shade, name in enumerate(named)
        ],
        "rows": [
            {"day": day, "cells": [str(Money(units)) for units in by_day[day]]}
            for day in charged.places
            if day in by_day
        ],
    }


def _by_day(charged: Series, shades: int) -> dict[datetime, list[int]]:
    """Return the charges of each shade by day."""
    by_day: dict[datetime, list[int]] = {}
    for number, name in enumerate(charged.names):
        for day in charged.places:
            if units := charged.values.get((day, name), 0):
                by_day.setdefault(day, [0] * shades)[min(number, shades - 1)] += units
    return by_day


def _bars(
    charged: Series, named: list[str], by_day: dict[datetime, list[int]]
) -> list[dict[str, Any]]:
    highest = max((sum(row) for row in by_day.values()), default=0)
    step = PLOT_WIDTH / max(len(charged.places), 1)
    bars = []
    for number, day in enumerate(charged.places):
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
                    "title": f"{day:%Y-%m-%d}: {named[shade]} {Money(units)}",
                }
            )
    return bars
