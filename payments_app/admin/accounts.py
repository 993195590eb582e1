"""The ledger in the admin: read-only rows, and operations for operators with the permission.

Refunding, voiding, adjusting and unfreezing go through the services of `payments_app`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, StreamingHttpResponse
from django.urls import path, reverse

from agents_app.admin.records import RecordInline
from payments_app import services
from payments_app.admin.ledger import (
    SCOPE,
    AmountForm,
    LedgerAdmin,
    RefundForm,
    newest_by,
)
from payments_app.models import (
    Account,
    Entry,
    Hold,
    Idempotency,
    LedgerState,
    Receipt,
    ReceiptState,
    Transfer,
)
from payments_app.money import Money
from payments_app.reporting.statement_csv import sent_page_by_page, statement_pages

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from django.urls import URLPattern


class EntryInline(RecordInline):
    """The sides of a transfer."""

    model = Entry
    fields = ("account", "sum")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Entry]:
        """Read the accounts with the entries."""
        rows: QuerySet[Entry] = super().get_queryset(request)
        return rows.select_related("account", "transfer")

    @admin.display(description="amount")
    def sum(self, entry: Entry) -> str:
        """Return what the account got."""
        return str(Money(entry.amount, entry.transfer.asset))


@admin.register(Account)
class AccountAdmin(LedgerAdmin):
    """Accounts with their balances; the statement is a file."""

    list_display = ("code", "kind", "owner", "available", "reserved", "asset")
    list_filter = (newest_by("kind"), newest_by("asset"))
    list_select_related = ("owner",)
    search_fields = ("code__exact", "owner__username__exact", "agent_id__exact")
    search_help_text = "A code, a person's name, or the id of an agent."
    fields = (
        "code", "kind", "owner", "agent_id", "asset", "available", "reserved", "overdraft",
        "created_at",
    )  # fmt: skip
    readonly_fields = ("available", "reserved")
    operation = ("adjust_account", "Adjust")
    form_class = AmountForm

    @admin.display(description="available")
    def available(self, account: Account) -> str:
        """Return what may be spent."""
        return str(Money(account.posted - account.held, account.asset))

    @admin.display(description="held")
    def reserved(self, account: Account) -> str:
        """Return what holds reserve."""
        return str(Money(account.held, account.asset))

    def facts(self, row: Any) -> str:
        """Return the balance."""
        return f"{row.code} has {self.available(row)} {row.asset}. A minus takes away."

    def operate(self, row: Any, wanted: dict[str, Any], by: int) -> str:
        """Change the balance."""
        amount = Money.parse(wanted["amount"], row.asset, signed=True)
        done = services.adjust(
            key=wanted["key"],
            scope=SCOPE,
            account=row.pk,
            amount=amount,
            by=by,
            reason=wanted["reason"],
        )
        return f"{done.amount} {row.asset} by {done.transfer_id}"

    def links(self, request: HttpRequest, object_id: str) -> list[dict[str, str]]:
        """Add the statement."""
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
        self.log_change(request, account, "Exported the statement.")
        name = account.code.replace(":", "-")
        pages = statement_pages(account.pk)
        return StreamingHttpResponse(
            sent_page_by_page(pages) if isinstance(request, ASGIRequest) else pages,
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="statement-{name}.csv"'},
        )


@admin.register(Transfer)
class TransferAdmin(LedgerAdmin):
    """Movements of money with their sides."""

    list_display = ("id", "kind", "sum", "asset", "memo", "response_id", "agent_id", "created_at")
    list_filter = (newest_by("kind"), newest_by("asset"), newest_by("protocol"))
    search_fields = ("id__exact", "response_id__exact", "chat_id__exact", "agent_id__exact")
    search_help_text = "The id of a transfer, a response, a chat or an agent."
    ordering = ("-created_at",)
    fields = (
        "id", "kind", "sum", "asset", "memo", "hold", "reverses", "by", "response_id", "chat_id",
        "agent_id", "protocol", "created_at",
    )  # fmt: skip
    readonly_fields = ("sum",)
    inlines = (EntryInline,)
    operation = ("refund_transfer", "Refund")
    form_class = RefundForm

    @admin.display(description="amount")
    def sum(self, transfer: Transfer) -> str:
        """Return how much moved."""
        return str(Money(transfer.amount, transfer.asset))

    def facts(self, row: Any) -> str:
        """Return what was paid."""
        return f"{row.kind} of {self.sum(row)} {row.asset}: {row.memo}"

    def operate(self, row: Any, wanted: dict[str, Any], by: int) -> str:
        """Return money to the payer."""
        text = wanted["amount"]
        done = services.refund(
            key=wanted["key"],
            scope=SCOPE,
            transfer_id=row.pk,
            amount=Money.parse(text, row.asset) if text else None,
            by=by,
            reason=wanted["reason"],
        )
        return f"{done.amount} {row.asset} by {done.transfer_id}"


@admin.register(Hold)
class HoldAdmin(LedgerAdmin):
    """Reservations."""

    list_display = (
        "id", "account", "sum", "taken", "state", "response_id", "expires_at", "created_at",
    )  # fmt: skip
    list_filter = (newest_by("state"),)
    list_select_related = ("account",)
    search_fields = ("id__exact", "response_id__exact", "account__code__exact")
    search_help_text = "The id of a hold or a response, or the code of an account."
    ordering = ("-created_at",)
    fields = (
        "id", "account", "sum", "taken", "state", "purpose", "response_id", "extends",
        "expires_at", "created_at",
    )  # fmt: skip
    readonly_fields = ("sum", "taken")
    operation = ("void_hold", "Void")

    @admin.display(description="amount")
    def sum(self, hold: Hold) -> str:
        """Return how much is reserved."""
        return str(Money(hold.amount, hold.account.asset))

    @admin.display(description="captured")
    def taken(self, hold: Hold) -> str:
        """Return how much of it was taken."""
        return str(Money(hold.captured, hold.account.asset))

    def facts(self, row: Any) -> str:
        """Return what is held."""
        return f"{self.sum(row)} of {row.account}, captured {self.taken(row)}, {row.state}."

    def operate(self, row: Any, wanted: dict[str, Any], by: int) -> str:  # noqa: ARG002 the log says who
        """Give back what is left."""
        done = services.void(key=wanted["key"], scope=SCOPE, hold_id=row.pk)
        return f"{done.released} {done.released.asset} released"


@admin.register(Receipt)
class ReceiptAdmin(LedgerAdmin):
    """What providers reported, and the way out where one never reported a payment's end."""

    list_display = ("provider", "external_id", "state", "sum", "account", "created_at")
    list_filter = (newest_by("state"), newest_by("provider"))
    list_select_related = ("account",)
    search_fields = ("external_id__exact", "account__code__exact")
    fields = (
        "provider", "external_id", "state", "sum", "account", "transfer", "payload", "created_at",
        "updated_at",
    )  # fmt: skip
    readonly_fields = ("sum",)
    operation = ("adjust_account", "Credit")

    @admin.display(description="amount")
    def sum(self, receipt: Receipt) -> str:
        """Return how much came in."""
        return str(Money(receipt.amount, receipt.asset))

    def links(self, request: HttpRequest, object_id: str) -> list[dict[str, str]]:
        """Offer it for what is not credited yet."""
        receipt = self.get_object(request, unquote(object_id))
        credited = receipt is None or receipt.state == ReceiptState.CONFIRMED
        return [] if credited else super().links(request, object_id)

    def facts(self, row: Any) -> str:
        """Return what has to be known to be true before it is credited."""
        return (
            f"{self.sum(row)} {row.asset} by {row.provider}, {row.state}. Credit it only where the"
            f" provider's own statement shows the payment: {row.external_id}"
        )

    def operate(self, row: Any, wanted: dict[str, Any], by: int) -> str:
        """Credit it, once: an answer of the provider that comes later finds it done."""
        done = services.top_up(
            key=wanted["key"],
            scope=SCOPE,
            account=row.account_id,
            amount=Money(row.amount, row.asset),
            provider=row.provider,
            external_id=row.external_id,
            memo=wanted["reason"],
            by=by,
        )
        return f"{done.amount} {row.asset} by {done.transfer_id}"


@admin.register(Idempotency)
class IdempotencyAdmin(LedgerAdmin):
    """Keys that were used."""

    list_display = ("scope", "key", "created_at")
    search_fields = ("key__exact",)


@admin.register(LedgerState)
class LedgerStateAdmin(LedgerAdmin):
    """The last audit, and the way out of a freeze."""

    list_display = ("__str__", "checked_at", "whole_at", "frozen_at", "reason")
    operation = ("unfreeze_ledger", "Allow payouts again")

    def operate(self, row: Any, wanted: dict[str, Any], by: int) -> str:  # noqa: ARG002 the log says who
        """End the freeze."""
        return "payouts are open" if services.unfreeze() else "they were open"
