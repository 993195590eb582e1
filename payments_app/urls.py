"""The REST paths of payments (docs/rest.md). Paths match only well-formed ids."""

from django.urls import path, re_path

from payments_app.rest import (
    accounts,
    entries,
    locks,
    onward,
    spending,
    sponsoring,
    tokens,
    top_ups,
    usage,
)

app_name = "payments_app"

_ONE = r"^api/payments/tokens/(?P<token_id>[A-Za-z0-9_-]{1,40})"

urlpatterns = [
    path("api/payments/balance", accounts.BalanceView.as_view(), name="balance"),
    path("api/balance", accounts.ShortBalanceView.as_view(), name="short_balance"),
    path("api/payments/statement", accounts.StatementView.as_view(), name="statement"),
    path("api/v1/ledger/entries", entries.EntriesView.as_view(), name="ledger_entries"),
    path("api/v1/usage", usage.UsageView.as_view(), name="usage"),
    path("api/payments/spend", accounts.SpendView.as_view(), name="spend"),
    path("api/payments/limits", spending.LimitsView.as_view(), name="limits"),
    path("api/payments/approvals", spending.ApprovalsView.as_view(), name="approvals"),
    path("api/payments/approvals/<str:agent>", spending.ApprovalView.as_view(), name="approval"),
    path("api/payments/sponsorships", sponsoring.SponsorshipsView.as_view(), name="sponsorships"),
    path(
        "api/payments/sponsorships/<str:agent>",
        sponsoring.SponsorshipView.as_view(),
        name="sponsorship",
    ),
    path("api/payments/onward/<str:agent>", onward.OnwardBudgetView.as_view(), name="onward"),
    path("api/payments/verify", locks.VerifyView.as_view(), name="verify"),
    path("api/payments/lock", locks.LocksView.as_view(), name="locks"),
    re_path(
        r"^api/payments/lock/(?P<lock_id>[A-Za-z0-9_-]{1,40})\Z",
        locks.LockView.as_view(),
        name="lock",
    ),
    path("api/payments/settle", locks.SettleView.as_view(), name="settle"),
    path("api/payments/delegate", locks.DelegateView.as_view(), name="delegate"),
    path("api/payments/tokens", tokens.TokensView.as_view(), name="tokens"),
    re_path(rf"{_ONE}\Z", tokens.TokenView.as_view(), name="token"),
    re_path(rf"{_ONE}/tree\Z", tokens.TreeView.as_view(), name="token_tree"),
    re_path(rf"{_ONE}/topup\Z", tokens.TokenTopUpView.as_view(), name="token_topup"),
    re_path(rf"{_ONE}/revoke\Z", tokens.RevokeView.as_view(), name="token_revoke"),
    path("api/payments/topups", top_ups.TopUpsView.as_view(), name="top_ups"),
    path("api/payments/topups/providers", top_ups.ProvidersView.as_view(), name="providers"),
    re_path(
        r"^api/payments/topups/hooks/(?P<provider>[a-z0-9_-]{1,40})\Z", top_ups.hook, name="hook"
    ),
    re_path(
        r"^api/payments/topups/(?P<request_id>topup_[0-9a-f]{32})\Z",
        top_ups.TopUpView.as_view(),
        name="top_up",
    ),
]
