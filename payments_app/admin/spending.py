"""Tokens, limits and top-ups in the admin, for reading; top-up requests are decided here.

As in the ledger (`ledger`), no row is edited. A decision has a reason, requires a separate
permission, and is recorded.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin

from audit_app.admin.columns import linked, moment, short_id
from audit_app.admin.windows import filter_by, open_filter_by
from audit_app.record import AuditAction
from payments_app.admin.ledger import (
    Done,
    LedgerAdmin,
    OrderForm,
    agent_link,
    amount_of,
)
from payments_app.models import (
    Approval,
    PaymentToken,
    SpendingLimit,
    SpendingPeriod,
    TopUpRequest,
    TopUpRequestState,
)
from payments_app.money import ASSETS
from payments_app.top_ups import requests as top_ups


class DecisionForm(OrderForm):
    """An operator's answer to a request."""

    decision = forms.ChoiceField(choices=[("grant", "Approve"), ("refuse", "Decline")])
    field_order = ("decision", "reason")


@admin.register(TopUpRequest)
class TopUpRequestAdmin(LedgerAdmin):
    """Requests for a top-up, and the decision about each."""

    find_by = ("id__begins",)
    list_display = (
        short_id(), "provider", linked("user"), "sum", "state", moment("created_at"),
        linked("decided_by"),
    )  # fmt: skip
    list_filter = (
        filter_by("state", TopUpRequestState.values), open_filter_by("provider"),
    )  # fmt: skip
    list_select_related = ("user", "decided_by")
    search_fields = ("id__exact", "reference__exact", "user__username__exact")
    fields = (
        "id", "provider", "account", "user", "sum", "asset", "state", "reference", "url", "reason",
        "decided_by", "decided_at", "created_at",
    )  # fmt: skip
    readonly_fields = ("sum",)
    ordering: ClassVar[Any] = ("-created_at", "-pk")
    operation = ("grant_topup", "Decide")
    audit_action = AuditAction.TOP_UP_DECIDED
    form_class = DecisionForm

    @admin.display(description="amount")
    def sum(self, row: TopUpRequest) -> str:
        """Return the requested amount."""
        return amount_of(row.amount, row.asset)

    def facts(self, row: Any) -> str:
        """Return the facts to know before deciding."""
        state = row.get_state_display().lower()
        return f"{row.user} asks for {self.sum(row)} via {row.provider}. The request is {state}."

    def is_available(self, row: Any) -> bool:
        """Offer to decide while it is open."""
        return row is not None and row.state == TopUpRequestState.OPEN

    def operate(self, row: Any, data: dict[str, Any], by: int) -> Done:
        """Credit or refuse it."""
        decide = top_ups.grant if data["decision"] == "grant" else top_ups.refuse
        decided = decide(row.pk, by=by, reason=data["reason"])
        return Done(decided.get_state_display().lower())


@admin.register(PaymentToken)
class PaymentTokenAdmin(LedgerAdmin):
    """Tokens, without their secrets."""

    find_by = ("id__begins",)
    list_display = (
        short_id(), linked("owner"), "name", "depth", "form", moment("expires_at"),
        moment("revoked_at"),
    )  # fmt: skip
    list_filter = (open_filter_by("form"), open_filter_by("depth"))
    list_select_related = ("owner",)
    search_fields = ("id__exact", "owner__username__exact")
    # Neither `salt` nor `sha256`.
    fields = (
        "id", "account", "owner", "parent", "depth", "name", "form", "audience", "per_use",
        "expires_at", "revoked_at", "closed_at", "created_at",
    )  # fmt: skip
    readonly_fields = ("per_use",)
    ordering: ClassVar[Any] = ("-created_at", "-pk")

    @admin.display(description="limit per use", empty_value="none")
    def per_use(self, token: PaymentToken) -> str | None:
        """Return the most that one use may take."""
        limit, asset = token.per_use_limit, token.account.asset
        return None if limit is None else amount_of(limit, asset)


@admin.register(SpendingLimit)
class SpendingLimitAdmin(LedgerAdmin):
    """The limits on what people spend."""

    agent = staticmethod(agent_link)

    list_display = ("user", "period", "agent", "token", "sum")
    list_filter = (
        filter_by("period", SpendingPeriod.values), filter_by("asset", ASSETS),
    )  # fmt: skip
    list_select_related = ("user",)
    search_fields = ("user__username__exact", "agent_id__exact", "token__id__exact")
    fields = ("user", "period", "agent", "token", "sum", "asset")
    readonly_fields = ("sum", "agent")

    @admin.display(description="amount")
    def sum(self, limit: SpendingLimit) -> str:
        """Return the amount that may be spent in the period."""
        return amount_of(limit.amount, limit.asset)


@admin.register(Approval)
class ApprovalAdmin(LedgerAdmin):
    """The amounts that people let agents charge."""

    agent = staticmethod(agent_link)

    list_display = ("user", "agent", "sum", moment("created_at"))
    list_select_related = ("user",)
    search_fields = ("user__username__exact", "agent_id__exact")
    fields = ("user", "agent", "sum", "asset", "created_at")
    readonly_fields = ("sum", "agent")

    @admin.display(description="up to")
    def sum(self, approval: Approval) -> str:
        """Return the most that the agent may charge for one answer."""
        return amount_of(approval.up_to, approval.asset)
