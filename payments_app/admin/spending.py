"""Tokens, limits and top-ups in the admin: to be looked at; a request for a top-up is decided here.

As in the ledger (`ledger`), no row is edited. A decision has a reason and a permission
of its own, and is recorded.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin

from payments_app.admin.ledger import LedgerAdmin, OrderForm, newest_by
from payments_app.models import Approval, PaymentToken, SpendingLimit, TopUpRequest
from payments_app.money import Money
from payments_app.top_ups import requests as top_ups


class DecisionForm(OrderForm):
    """An operator's answer to a request."""

    decision = forms.ChoiceField(choices=[("grant", "Credit it"), ("refuse", "Refuse it")])
    field_order = ("decision", "reason")


@admin.register(TopUpRequest)
class TopUpRequestAdmin(LedgerAdmin):
    """Requests for a top-up, and the decision about each."""

    list_display = ("id", "provider", "user", "sum", "asset", "state", "created_at", "decided_by")
    list_filter = (newest_by("state"), newest_by("provider"))
    list_select_related = ("user", "decided_by")
    search_fields = ("=id", "=reference", "=user__username")
    fields = (
        "id", "provider", "account", "user", "sum", "asset", "state", "reference", "url", "reason",
        "decided_by", "decided_at", "created_at",
    )  # fmt: skip
    readonly_fields = ("sum",)
    ordering: ClassVar[Any] = ("-created_at", "-pk")
    operation = ("grant_topup", "Decide")
    form_class = DecisionForm

    @admin.display(description="amount")
    def sum(self, row: TopUpRequest) -> str:
        """Return how much the person asks for."""
        return str(Money(row.amount, row.asset))

    def facts(self, row: Any) -> str:
        """Return what is to be known before deciding."""
        return (
            f"{row.user} asks for {self.sum(row)} {row.asset} by {row.provider}; the request is"
            f" {row.state}."
        )

    def operate(self, row: Any, wanted: dict[str, Any], by: int) -> str:
        """Credit or refuse it."""
        decide = top_ups.grant if wanted["decision"] == "grant" else top_ups.refuse
        return decide(row.pk, by=by, reason=wanted["reason"]).state


@admin.register(PaymentToken)
class PaymentTokenAdmin(LedgerAdmin):
    """Tokens, without what opens them."""

    list_display = ("id", "owner", "name", "depth", "form", "expires_at", "revoked_at")
    list_filter = (newest_by("form"), newest_by("depth"))
    list_select_related = ("owner",)
    search_fields = ("=id", "=owner__username")
    # Neither `salt` nor `sha256`.
    fields = (
        "id", "account", "owner", "parent", "depth", "name", "form", "audience", "most",
        "expires_at", "revoked_at", "closed_at", "created_at",
    )  # fmt: skip
    readonly_fields = ("most",)
    ordering: ClassVar[Any] = ("-created_at", "-pk")

    @admin.display(description="limit of one use", empty_value="none")
    def most(self, token: PaymentToken) -> str | None:
        """Return what one use may take at most."""
        limit, asset = token.per_use_limit, token.account.asset
        return None if limit is None else f"{Money(limit, asset)} {asset}"


@admin.register(SpendingLimit)
class SpendingLimitAdmin(LedgerAdmin):
    """What people may spend."""

    list_display = ("user", "period", "agent_id", "token", "sum", "asset")
    list_filter = (newest_by("period"), newest_by("asset"))
    list_select_related = ("user",)
    search_fields = ("=user__username", "=agent_id", "=token_id")
    fields = ("user", "period", "agent_id", "token", "sum", "asset")
    readonly_fields = ("sum",)

    @admin.display(description="amount")
    def sum(self, limit: SpendingLimit) -> str:
        """Return how much may be spent in the period."""
        return str(Money(limit.amount, limit.asset))


@admin.register(Approval)
class ApprovalAdmin(LedgerAdmin):
    """What people let agents take."""

    list_display = ("user", "agent_id", "sum", "asset", "created_at")
    list_select_related = ("user",)
    search_fields = ("=user__username", "=agent_id")
    fields = ("user", "agent_id", "sum", "asset", "created_at")
    readonly_fields = ("sum",)

    @admin.display(description="up to")
    def sum(self, approval: Approval) -> str:
        """Return what the agent may take for one answer."""
        return str(Money(approval.up_to, approval.asset))
