"""The ledger's rows: accounts, transfers with their entries, holds, keys, receipts.

Transfers and entries are written once; a hold changes only while it is active; the entries of a
transfer add up to zero. Triggers in the first migration enforce this on both databases, against
every writer. Amounts are in the smallest unit of the account's asset (`money.ASSETS`). Times are
the database's. Only the services may write rows: an account's balance is a sum that they alone
maintain.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from payments_app.spending_rows import (
    AdjustmentRequest,
    AdjustmentState,
    Approval,
    PaymentToken,
    SpendingLimit,
    SpendingPeriod,
    TopUpRequest,
    TopUpRequestState,
)

__all__ = [
    "Account",
    "AccountKind",
    "AdjustmentRequest",
    "AdjustmentState",
    "Approval",
    "Entry",
    "Hold",
    "HoldState",
    "Idempotency",
    "LedgerState",
    "PaymentToken",
    "Receipt",
    "ReceiptState",
    "SpendingLimit",
    "SpendingPeriod",
    "TopUpRequest",
    "TopUpRequestState",
    "Transfer",
    "VerifiedAccount",
]


class AccountKind(models.TextChoices):
    """Kinds of account: who owns the money."""

    EXTERNAL = "external", "outside world, by provider"
    USER = "user", "person"
    AGENT = "agent"
    PLATFORM = "platform", "this server"
    SUSPENSE = "suspense", "suspense (adjustments)"
    POOL = "pool", "shared by a chat"
    TOKEN = "token", "payment token"


class Account(models.Model):
    """A place where money is. `posted` is the sum of its entries, `held` what holds reserve."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    code = models.CharField(max_length=120, unique=True)
    kind = models.CharField(max_length=10, choices=AccountKind)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    agent_id = models.CharField(max_length=40, blank=True, db_index=True)
    asset = models.CharField(max_length=10)
    posted = models.BigIntegerField(default=0, db_default=0)
    held = models.BigIntegerField(default=0, db_default=0)
    overdraft = models.BooleanField(
        default=False, db_default=False, help_text="May go negative: mirrors an external account."
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        """The database itself refuses to overdraw an account."""

        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(held__gte=0), name="account_held_is_not_negative"),
            models.CheckConstraint(
                condition=Q(overdraft=True) | Q(posted__gte=F("held")),
                name="account_is_not_overdrawn",
            ),
        ]
        permissions: ClassVar = [("adjust_account", "Can adjust the balance of an account")]

    def __str__(self) -> str:
        return self.code


class HoldState(models.TextChoices):
    """Only an active hold changes; the other states say how it ended."""

    ACTIVE = "active"
    SETTLED = "settled"
    RELEASED = "released"
    EXPIRED = "expired"


class Hold(models.Model):
    """A pending transfer: money reserved until it is captured, released or expires.

    A hold that `extends` another belongs to it: they are captured and released together, the older
    first. The same goes for the holds of one response.
    """

    id = models.CharField(primary_key=True, max_length=40)
    account = models.ForeignKey(Account, models.PROTECT, related_name="holds")
    amount = models.BigIntegerField()
    captured = models.BigIntegerField(default=0, db_default=0)
    state = models.CharField(
        max_length=10, choices=HoldState, default=HoldState.ACTIVE, db_default=HoldState.ACTIVE
    )
    purpose = models.CharField(max_length=100, blank=True)
    response_id = models.CharField(max_length=40, blank=True)
    agent_id = models.CharField(max_length=40, blank=True)
    # The chat whose budgets count it; None if none does.
    chat_id = models.CharField(max_length=40, null=True, blank=True)  # noqa: DJ001 the column was added to a large table
    # The credential whose budget counts it, such as `key:7`; None if none does.
    credential = models.CharField(max_length=40, null=True, blank=True)  # noqa: DJ001 as above
    # Who asked for what it pays, by number like Transfer.by; None for visitors and older holds.
    asker = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    extends = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="+")
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())
    # None while it is active, and for holds that ended before the column existed.
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """A hold never yields more than it reserved."""

        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="hold_is_of_something"),
            models.CheckConstraint(
                condition=Q(captured__gte=0, captured__lte=F("amount")),
                name="hold_captures_at_most_its_amount",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["expires_at"], condition=Q(state="active"), name="hold_expiry"),
            models.Index(fields=["-created_at", "-id"], name="hold_listing"),
            models.Index(
                fields=["response_id"], condition=~Q(response_id=""), name="hold_response"
            ),
            models.Index(fields=["chat_id"], condition=Q(state="active"), name="holds_of_a_chat"),
            # For operators: holds of which nothing was captured, which are few.
            models.Index(
                fields=["state", "-created_at", "-id"],
                condition=~Q(state__in=["active", "settled"]),
                name="hold_ends",
            ),
            models.Index(
                fields=["credential", "state"],
                condition=Q(credential__isnull=False),
                name="holds_of_a_credential",
            ),
        ]
        permissions: ClassVar = [("void_hold", "Can void a hold")]

    def __str__(self) -> str:
        return self.id


class Transfer(models.Model):
    """One movement of money, and its purpose. `amount` is what left the debited account.

    `by` is a number without a constraint, so that erasing the person leaves the row unchanged.
    """

    id = models.CharField(primary_key=True, max_length=40)
    kind = models.CharField(max_length=30)
    asset = models.CharField(max_length=10)
    amount = models.BigIntegerField()
    hold = models.ForeignKey(Hold, models.PROTECT, null=True, blank=True, related_name="transfers")
    reverses = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="reversals"
    )
    memo = models.CharField(max_length=500, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    response_id = models.CharField(max_length=40, blank=True)
    chat_id = models.CharField(max_length=40, blank=True)
    agent_id = models.CharField(max_length=40, blank=True)
    protocol = models.CharField(max_length=20, blank=True)
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        """Charges are looked up by their response, adjustments by their operator."""

        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="transfer_is_of_something")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["response_id"], condition=~Q(response_id=""), name="transfer_response"
            ),
            models.Index(
                fields=["chat_id", "agent_id", "created_at"],
                condition=~Q(chat_id=""),
                name="transfers_of_a_chat",
            ),
            models.Index(
                fields=["by", "created_at"],
                condition=Q(kind="adjust"),
                name="adjustments_by_operator",
            ),
            # For operators: movements by kind, without those that answers write all the time.
            models.Index(
                fields=["kind", "-created_at", "-id"],
                condition=~Q(kind__in=["answer"]),
                name="transfer_kinds",
            ),
        ]
        permissions: ClassVar = [("refund_transfer", "Can refund a transfer")]

    def __str__(self) -> str:
        return self.id


class Entry(models.Model):
    """One side of a transfer. Ids grow within an account: they are assigned under its row lock."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    transfer = models.ForeignKey(Transfer, models.PROTECT, related_name="entries", db_index=False)
    account = models.ForeignKey(Account, models.PROTECT, related_name="entries", db_index=False)
    amount = models.BigIntegerField()

    class Meta:
        """An account has one side of a transfer; its statement is read backwards."""

        constraints: ClassVar = [
            models.CheckConstraint(condition=~Q(amount=0), name="entry_is_of_something"),
            models.UniqueConstraint(
                fields=["transfer", "account"], name="account_is_once_in_a_transfer"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["account", "id"], name="entry_statement")]
        verbose_name_plural = "entries"

    def __str__(self) -> str:
        return f"entry {self.pk} of {self.transfer_id}"


class Idempotency(models.Model):
    """A used idempotency key, with a hash of the request and the outcome."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    scope = models.CharField(max_length=100, blank=True)
    key = models.CharField(max_length=255)
    sha256 = models.CharField(max_length=64)
    outcome = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        """A key has one effect."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["scope", "key"], name="key_is_used_once")
        ]
        verbose_name = "idempotency key"

    def __str__(self) -> str:
        return f"{self.scope}:{self.key}"


class ReceiptState(models.TextChoices):
    """Money is credited once, at `confirmed`; a late success may follow a failure."""

    RECEIVED = "received"
    VERIFIED = "verified"
    SUBMITTED = "submitted"
    CONFIRMED = "confirmed"
    FAILED = "failed"


class Receipt(models.Model):
    """An outside provider's report of incoming money, under the provider's own id."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    provider = models.CharField(max_length=40)
    external_id = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=ReceiptState, default=ReceiptState.RECEIVED)
    account = models.ForeignKey(Account, models.PROTECT, related_name="receipts")
    amount = models.BigIntegerField()
    asset = models.CharField(max_length=10)
    transfer = models.ForeignKey(
        Transfer, models.PROTECT, null=True, blank=True, related_name="receipts"
    )
    payload = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        """A payment has one receipt."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["provider", "external_id"], name="receipt_is_told_once"
            ),
            models.CheckConstraint(condition=Q(amount__gt=0), name="receipt_is_of_something"),
            models.CheckConstraint(
                condition=Q(state="confirmed", transfer__isnull=False)
                | (~Q(state="confirmed") & Q(transfer__isnull=True)),
                name="receipt_is_credited_when_confirmed",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["external_id"], name="receipt_external_id")]

    def __str__(self) -> str:
        return f"{self.provider}:{self.external_id}"


class VerifiedAccount(models.Model):
    """The last entry of an account that a clean audit covers; entries so far add up to `posted`."""

    account = models.OneToOneField(Account, models.CASCADE, primary_key=True, related_name="+")
    entry_id = models.BigIntegerField()
    posted = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.account_id}: {self.entry_id}"


class LedgerState(models.Model):
    """The single row that says when the ledger was last audited, and whether payouts are frozen.

    `report` is from the last audit of new rows, `whole_report` from the last audit of all rows.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    frozen_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    report = models.JSONField(default=list, blank=True)
    whole_at = models.DateTimeField(null=True, blank=True)
    whole_due_at = models.DateTimeField(null=True, blank=True)
    whole_report = models.JSONField(
        default=list, db_default=models.Value([], models.JSONField()), blank=True
    )
    verified_key = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        """There is one ledger."""

        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(id=1), name="ledger_has_one_state")
        ]
        verbose_name = verbose_name_plural = "ledger state"
        permissions: ClassVar = [("unfreeze_ledger", "Can allow payouts again")]

    def __str__(self) -> str:
        return "frozen" if self.frozen_at else "open"
