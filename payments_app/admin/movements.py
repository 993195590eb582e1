"""Movements of money in the admin: transfers, holds, and providers' reports.

Rows are read-only. Refunding, voiding and crediting go through the services of `payments_app`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.utils.html import format_html_join

from audit_app.admin.columns import (
    TIMED_ID_CHARS,
    id_link,
    linked,
    list_link,
    moment,
    row_link,
    short_id,
)
from audit_app.admin.filters import DateRangeFilter
from audit_app.admin.records import RecordInline
from audit_app.admin.windows import filter_by, open_filter_by
from audit_app.record import AuditAction
from payments_app import services
from payments_app.admin.ledger import (
    KINDS,
    SCOPE,
    Done,
    LedgerAdmin,
    RefundForm,
    account_label,
    agent_link,
    amount_of,
)
from payments_app.ledger import captures
from payments_app.ledger.sums import Total
from payments_app.models import (
    Entry,
    Hold,
    HoldState,
    Receipt,
    ReceiptState,
    Transfer,
)
from payments_app.money import ASSETS, Money

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString


REFUNDS = 20
"""The most refunds that the page of a transfer links to."""


class EntryInline(RecordInline):
    """The sides of a transfer."""

    model = Entry
    fields = ("account", "sum")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Entry]:
        """Fetch the accounts with the entries."""
        rows: QuerySet[Entry] = super().get_queryset(request)
        return rows.select_related("account", "transfer")

    @admin.display(description="amount")
    def sum(self, entry: Entry) -> str:
        """Return the amount that the account received."""
        return amount_of(entry.amount, entry.transfer.asset)


def left_of(transfer: Transfer) -> int:
    """Return the part of a transfer that was not refunded yet, in units."""
    back = transfer.reversals.aggregate(sum=Total("amount"))["sum"] or 0
    return int(transfer.amount - back)


def _accounts(transfer: Transfer, is_side: Callable[[int], bool]) -> SafeString | str:
    """Return links to the accounts on one side of a transfer."""
    links = (
        (row_link("payments_app.account", entry.account_id, account_label(entry.account)),)
        for entry in transfer.entries.all()
        if is_side(entry.amount)
    )
    return format_html_join(", ", "{}", links) or "-"


@admin.register(Transfer)
class TransferAdmin(LedgerAdmin):
    """Movements of money with their sides."""

    find_by = ("id__begins",)
    list_display = (
        short_id(chars=TIMED_ID_CHARS), "kind", "sum", "payers", "payees", "response",
        moment("created_at"),
    )  # fmt: skip
    list_filter = (
        open_filter_by("kind", KINDS, common=("answer",)), filter_by("asset", ASSETS),
        open_filter_by("protocol"),
        ("created_at", DateRangeFilter),
    )  # fmt: skip
    search_fields = (
        "id__exact", "response_id__exact", "chat_id__exact", "hold__id__exact",
        "reverses__id__exact",
    )  # fmt: skip
    filled_only = ("response_id", "chat_id")
    search_help_text = "The id of a transfer, a hold, an answer or a chat."
    ordering = ("-created_at",)
    fields = (
        "id", "kind", "sum", "asset", "memo", "hold", "reverses", "reversed_by", "by", "response",
        "chat", "agent", "protocol", "created_at",
    )  # fmt: skip
    readonly_fields = ("sum", "response", "chat", "agent", "reversed_by")
    response = staticmethod(id_link("response_id", "sessions_app.response", "answer"))
    chat = staticmethod(id_link("chat_id", "chat_app.chat", "chat"))
    agent = staticmethod(agent_link)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Transfer]:
        """Fetch both sides with the transfers."""
        rows: QuerySet[Transfer] = super().get_queryset(request)
        return rows.prefetch_related("entries__account__owner")

    @admin.display(description="refunded by")
    def reversed_by(self, transfer: Transfer) -> SafeString | str:
        """Return links to its refunds."""
        refunds = transfer.reversals.order_by("pk")[:REFUNDS]
        links = ((row_link("payments_app.transfer", row.pk, self.sum(row)),) for row in refunds)
        return format_html_join(", ", "{}", links) or "-"

    @admin.display(description="from")
    def payers(self, transfer: Transfer) -> SafeString | str:
        """Return links to the accounts that paid."""
        return _accounts(transfer, lambda amount: amount < 0)

    @admin.display(description="to")
    def payees(self, transfer: Transfer) -> SafeString | str:
        """Return links to the accounts that received money."""
        return _accounts(transfer, lambda amount: amount > 0)

    def audit_links(self, request: HttpRequest, object_id: str) -> list[dict[str, str]]:
        """Lead from a refund to the records of the payment that it returned."""
        row = self.get_object(request, unquote(object_id))
        recorded = object_id if row is None else row.reverses_id or row.pk
        return super().audit_links(request, recorded)

    def is_available(self, row: Any) -> bool:
        """Offer a refund while something is left of a payment."""
        return row is not None and row.reverses_id is None and left_of(row) > 0

    inlines = (EntryInline,)
    operation = ("refund_transfer", "Refund")
    audit_action = AuditAction.TRANSFER_REFUNDED
    form_class = RefundForm

    @admin.display(description="amount")
    def sum(self, transfer: Transfer) -> str:
        """Return the amount moved."""
        return amount_of(transfer.amount, transfer.asset)

    def facts(self, row: Any) -> str:
        """Return the payment in words."""
        return f"{row.kind} of {self.sum(row)}: {row.memo}"

    def operate(self, row: Any, data: dict[str, Any], by: int) -> Done:
        """Return money to the payer."""
        text = data["amount"]
        done = services.refund(
            key=data["key"],
            scope=SCOPE,
            transfer_id=row.pk,
            amount=Money.parse(text, row.asset) if text else None,
            by=by,
            reason=data["reason"],
        )
        return Done(f"{done.amount} {row.asset} in transfer {done.transfer_id}", done.replayed)


@admin.register(Hold)
class HoldAdmin(LedgerAdmin):
    """Reservations."""

    find_by = ("id__begins",)
    list_display = (
        short_id(chars=TIMED_ID_CHARS), linked("account"), "sum", "taken", "state", "response",
        moment("created_at"),
    )  # fmt: skip
    list_filter = (
        filter_by("state", HoldState.values, common=("active", "settled")),
        ("created_at", DateRangeFilter),
    )  # fmt: skip
    list_select_related = ("account",)
    search_fields = ("id__exact", "response_id__exact", "account__code__exact")
    filled_only = ("response_id",)
    search_help_text = "The id of a hold or an answer, or the code of an account."
    ordering = ("-created_at",)
    fields = (
        "id", "account", "sum", "taken", "state", "purpose", "response", "chat", "agent",
        "extends", "transfers", "expires_at", "created_at",
    )  # fmt: skip
    readonly_fields = ("sum", "taken", "response", "chat", "agent", "transfers")
    response = staticmethod(id_link("response_id", "sessions_app.response", "answer"))
    chat = staticmethod(id_link("chat_id", "chat_app.chat", "chat"))
    agent = staticmethod(agent_link)

    @admin.display(description="transfers")
    def transfers(self, hold: Hold) -> SafeString:
        """Return a link to the transfers that captured it."""
        return list_link("payments_app.transfer", f"q={hold.pk}", "Transfers")

    operation = ("void_hold", "Void")
    audit_action = AuditAction.HOLD_VOIDED

    def is_available(self, row: Any) -> bool:
        """Return whether a hold can be voided: it is active and its answer is not running."""
        if row is None or row.state != HoldState.ACTIVE:
            return False
        return not captures.is_running(row.response_id)

    @admin.display(description="amount")
    def sum(self, hold: Hold) -> str:
        """Return the reserved amount."""
        return amount_of(hold.amount, hold.account.asset)

    @admin.display(description="captured")
    def taken(self, hold: Hold) -> str:
        """Return the captured amount."""
        return amount_of(hold.captured, hold.account.asset)

    def facts(self, row: Any) -> str:
        """Return the state of the hold in words."""
        return f"{self.sum(row)} of {row.account}, captured {self.taken(row)}, {row.state}."

    def operate(self, row: Any, data: dict[str, Any], by: int) -> Done:
        """Release what is left."""
        done = services.void(key=data["key"], scope=SCOPE, hold_id=row.pk, by=by)
        return Done(f"{done.released} {done.released.asset} released", done.replayed)


@admin.register(Receipt)
class ReceiptAdmin(LedgerAdmin):
    """Providers' reports, and a way to credit a payment whose end was never reported."""

    find_by = ("external_id",)
    list_display = (
        short_id("external_id", "provider id"), "provider", "state", "sum", linked("account"),
        moment("created_at"),
    )  # fmt: skip
    list_filter = (
        filter_by("state", ReceiptState.values), open_filter_by("provider"),
    )  # fmt: skip
    list_select_related = ("account",)
    search_fields = ("external_id__exact", "account__code__exact")
    fields = (
        "provider", "external_id", "state", "sum", "account", "transfer", "payload", "created_at",
        "updated_at",
    )  # fmt: skip
    readonly_fields = ("sum",)
    operation = ("adjust_account", "Credit")
    audit_action = AuditAction.BALANCE_ADJUSTED

    @admin.display(description="amount")
    def sum(self, receipt: Receipt) -> str:
        """Return the amount received."""
        return amount_of(receipt.amount, receipt.asset)

    def is_available(self, row: Any) -> bool:
        """Offer to credit receipts that are not credited yet."""
        return row is not None and row.state != ReceiptState.CONFIRMED

    def facts(self, row: Any) -> str:
        """Return the facts to verify before crediting."""
        return (
            f"{self.sum(row)} via {row.provider}, {row.state}. Credit it only where the"
            f" provider's own statement shows the payment: {row.external_id}"
        )

    def operate(self, row: Any, data: dict[str, Any], by: int) -> Done:
        """Credit it once: a later report of the provider finds it done."""
        done = services.top_up(
            key=data["key"],
            scope=SCOPE,
            account=row.account_id,
            amount=Money(row.amount, row.asset),
            provider=row.provider,
            external_id=row.external_id,
            memo=data["reason"],
            by=by,
        )
        return Done(f"{done.amount} {row.asset} in transfer {done.transfer_id}", done.replayed)
