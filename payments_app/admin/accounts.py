"""The accounts in the admin, with their entries, and the state of the whole ledger.

Rows are read-only. Adjusting and unfreezing go through the services of `payments_app`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, StreamingHttpResponse
from django.urls import path, reverse
from django.utils.html import format_html

from audit_app.admin.columns import (
    id_link,
    linked,
    list_link,
    moment,
    moment_text,
)
from audit_app.admin.filters import DateRangeFilter
from audit_app.admin.windows import filter_by, open_filter_by
from audit_app.record import AuditAction
from payments_app import adjustments, services
from payments_app.admin.ledger import (
    KINDS,
    SCOPE,
    AmountForm,
    Done,
    LedgerAdmin,
    OrderForm,
    account_label,
    agent_link,
    amount_of,
)
from payments_app.models import (
    Account,
    AccountKind,
    AdjustmentRequest,
    AdjustmentState,
    Entry,
    Idempotency,
    LedgerState,
)
from payments_app.money import ASSETS, Money
from payments_app.reporting.statement_csv import sent_page_by_page, statement_pages

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from django.urls import URLPattern
    from django.utils.safestring import SafeString


class AdjustForm(AmountForm):
    """A change of a balance: a direction and an amount without a sign."""

    direction = forms.ChoiceField(
        choices=[
            ("credit", "Credit: add to the balance"),
            ("debit", "Debit: deduct from the balance"),
        ]
    )
    field_order = ("direction", "amount", "reason")


class ApprovalForm(OrderForm):
    """A second operator's decision about an adjustment."""

    decision = forms.ChoiceField(choices=[("approve", "Approve"), ("refuse", "Decline")])
    field_order = ("decision", "reason")


def signed_amount(options: dict[str, Any], asset: str) -> Money:
    """Return the amount of an adjustment, below zero for a debit; raises InvalidAmount."""
    amount = Money.parse(options["amount"], asset)
    return Money(-amount.amount, asset) if options["direction"] == "debit" else amount


class EntryAccountFilter(admin.SimpleListFilter):
    """The entries of one account, linked from the pages of accounts."""

    title = "account"
    parameter_name = "account"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002 required by the interface
        """Return the chosen account: accounts are searched for in their own list."""
        chosen = request.GET.get("account", "")
        account = Account.objects.filter(pk=chosen).first() if chosen.isdecimal() else None
        return [(str(account.pk), account.code)] if account else [("0", "Choose one in Accounts")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002 required by the interface
        """Return its entries."""
        value = self.value() or ""
        return queryset.filter(account_id=int(value)) if value.isdecimal() else queryset


@admin.register(Entry)
class EntryAdmin(LedgerAdmin):
    """The sides of all transfers: what each account received and paid."""

    list_display = ("id", linked("transfer"), linked("account"), "debit", "credit", "at")
    list_filter = (EntryAccountFilter, open_filter_by("transfer__kind", KINDS))
    list_select_related = ("account", "transfer")
    search_fields = ("transfer__id__exact", "account__code__exact")
    search_help_text = "The id of a transfer, or the code of an account."
    fields = ("id", "transfer", "account", "debit", "credit", "at")
    readonly_fields = ("debit", "credit", "at")

    @admin.display(description="debit")
    def debit(self, entry: Entry) -> str:
        """Return the amount that the account paid, if it paid."""
        return amount_of(-entry.amount, entry.transfer.asset) if entry.amount < 0 else ""

    @admin.display(description="credit")
    def credit(self, entry: Entry) -> str:
        """Return the amount that the account received, if it received any."""
        return amount_of(entry.amount, entry.transfer.asset) if entry.amount > 0 else ""

    @admin.display(description="at")
    def at(self, entry: Entry) -> SafeString:
        """Return the time of the transfer."""
        return moment_text(entry.transfer.created_at)


@admin.register(Account)
class AccountAdmin(LedgerAdmin):
    """Accounts with their balances; the statement is a file."""

    find_by = ("code",)
    list_display = ("code", "kind", linked("owner"), "agent", "available", "reserved", "movements")
    list_filter = (filter_by("kind", AccountKind.values), filter_by("asset", ASSETS))
    list_select_related = ("owner",)
    search_fields = ("code__exact", "owner__username__exact", "agent_id__exact")
    search_help_text = "A code, a person's name, or the id of an agent."
    fields = (
        "code", "kind", "owner", "agent", "asset", "available", "reserved", "movements",
        "overdraft", "created_at",
    )  # fmt: skip
    readonly_fields = ("available", "reserved", "agent", "movements")
    agent = staticmethod(agent_link)
    operation = ("adjust_account", "Adjust")
    audit_action = AuditAction.BALANCE_ADJUSTED
    form_class = AdjustForm

    @admin.display(description="available")
    def available(self, account: Account) -> str:
        """Return the amount that may be spent."""
        return amount_of(account.posted - account.held, account.asset)

    @admin.display(description="held")
    def reserved(self, account: Account) -> str:
        """Return the amount reserved by holds."""
        return amount_of(account.held, account.asset)

    @admin.display(description="movements")
    def movements(self, account: Account) -> SafeString:
        """Return links to its entries and its holds."""
        return format_html(
            "{}, {}",
            list_link("payments_app.entry", f"account={account.pk}", "Entries"),
            list_link("payments_app.hold", f"q={account.code}", "Holds"),
        )

    def facts(self, row: Any) -> str:
        """Return the balance."""
        return f"{account_label(row)} has {self.available(row)} available."

    def preview(self, row: Any, options: dict[str, Any], by: int) -> str:
        """Return the balance before and after."""
        amount = signed_amount(options, row.asset)
        before = row.posted - row.held
        after = amount_of(before + amount.amount, row.asset)
        verb = "Credit" if amount.amount > 0 else "Debit"
        text = (
            f"{verb} {amount_of(abs(amount.amount), row.asset)}: the available balance changes from"
            f" {amount_of(before, row.asset)} to {after}."
        )
        needs_second = adjustments.needs_second(amount, by)
        return f"{text} A second operator has to approve it." if needs_second else text

    def operate(self, row: Any, data: dict[str, Any], by: int) -> Done:
        """Change the balance, or ask a second operator to."""
        done = adjustments.adjust(
            key=data["key"],
            scope=SCOPE,
            account=row.pk,
            amount=signed_amount(data, row.asset),
            by=by,
            reason=data["reason"],
        )
        if done.transfer is not None:
            text = f"{done.transfer.amount} {row.asset} in transfer {done.transfer.transfer_id}"
            return Done(text, done.replayed)
        return Done(f"{done.request} waits for a second operator", done.replayed)

    def links(self, request: HttpRequest, object_id: str) -> list[dict[str, str]]:
        """Add the statement."""
        if not object_id.isdecimal():
            return super().links(request, object_id)
        url = reverse("admin:payments_app_account_statement", args=[object_id])
        return [{"url": url, "label": "Statement (CSV)"}, *super().links(request, object_id)]

    def get_urls(self) -> list[URLPattern]:
        """Add the statement."""
        statement = path(
            "<int:account_id>/statement.csv",
            self.admin_site.admin_view(self.statement),
            name="payments_app_account_statement",
        )
        return [statement, *super().get_urls()]

    def statement(self, request: HttpRequest, account_id: int) -> HttpResponseBase:
        """Send all entries of an account, the newest first; the request is recorded."""
        if not request.user.has_perms(["payments_app.view_account", "payments_app.view_entry"]):
            raise PermissionDenied
        account = Account.objects.filter(pk=account_id).first()
        if account is None:
            raise Http404
        text = "Exported the statement."
        self.log_act(request, account, AuditAction.STATEMENT_EXPORTED, text)
        name = account.code.replace(":", "-")
        pages = statement_pages(account.pk)
        return StreamingHttpResponse(
            sent_page_by_page(pages) if isinstance(request, ASGIRequest) else pages,
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="statement-{name}.csv"'},
        )


@admin.register(AdjustmentRequest)
class AdjustmentRequestAdmin(LedgerAdmin):
    """Large adjustments, which a second operator makes or refuses."""

    list_display = (
        "id", linked("account"), "sum", "state", "reason", linked("asked_by", "asked by"),
        moment("created_at"),
    )  # fmt: skip
    list_filter = ("state", ("created_at", DateRangeFilter))
    list_select_related = ("account", "asked_by", "decided_by")
    search_fields = ("account__code__exact", "asked_by__username__exact")
    search_help_text = "The code of an account, or an operator's name."
    fields = (
        "account", "sum", "reason", "state", "asked_by", "created_at", "decided_by", "decided_at",
        "decision", "transfer",
    )  # fmt: skip
    readonly_fields = ("sum", "transfer")
    ordering: ClassVar[Any] = ("-created_at", "-id")
    operation = ("adjust_account", "Decide")
    audit_action = AuditAction.BALANCE_ADJUSTED
    form_class = ApprovalForm
    transfer = staticmethod(id_link("transfer_id", "payments_app.transfer", "transfer"))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 required by the interface
        """Show them to those who see accounts."""
        return request.user.has_perm("payments_app.view_account")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """List them for those who see accounts."""
        return self.has_view_permission(request)

    def is_available(self, row: Any) -> bool:
        """Offer to decide while it is open."""
        return row is not None and row.state == AdjustmentState.OPEN

    @admin.display(description="amount")
    def sum(self, row: AdjustmentRequest) -> str:
        """Return the amount with its direction."""
        verb = "credit" if row.amount > 0 else "debit"
        return f"{verb} {amount_of(abs(row.amount), row.asset)}"

    def facts(self, row: Any) -> str:
        """Return the request in words."""
        return (
            f"{row.asked_by or 'An operator'} asks to {self.sum(row)} {account_label(row.account)}:"
            f" {row.reason}"
        )

    def operate(self, row: Any, data: dict[str, Any], by: int) -> Done:
        """Make or refuse it."""
        if data["decision"] == "refuse":
            adjustments.refuse(row.pk, by=by, reason=data["reason"])
            return Done(f"{row} declined")
        done = adjustments.approve(row.pk, by=by, reason=data["reason"])
        return Done(f"{done.amount} {row.asset} in transfer {done.transfer_id}")


@admin.register(Idempotency)
class IdempotencyAdmin(LedgerAdmin):
    """Idempotency keys that were used."""

    list_display = ("scope", "key", moment("created_at"))
    search_fields = ("key",)
    search_help_text = "A part of a key, among the newest rows."


@admin.register(LedgerState)
class LedgerStateAdmin(LedgerAdmin):
    """The last audit, and the way out of a freeze."""

    list_display = ("__str__", "checked_at", "whole_at", "frozen_at", "reason")
    operation = ("unfreeze_ledger", "Allow payouts again")
    audit_action = AuditAction.LEDGER_UNFROZEN

    def is_available(self, row: Any) -> bool:
        """Offer to end a freeze."""
        return row is not None and row.frozen_at is not None

    def operate(self, row: Any, data: dict[str, Any], by: int) -> Done:  # noqa: ARG002 the log says who
        """End the freeze."""
        if services.unfreeze():
            return Done("payouts are allowed again")
        return Done("payouts were not frozen", replayed=True)
