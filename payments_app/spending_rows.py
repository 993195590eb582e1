"""Rows of permissions to spend: payment tokens, limits, approvals, top-up requests.

None of these rows is money. A token's money is in its account, where the ledger guards it; limits
and approvals bound what may be taken from an account that has more.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class PaymentToken(models.Model):
    """A budget that the holder of its secret may spend; its money is in a separate account.

    `id` is the `jti` of its JWT form. The secret of the opaque form is stored as a hash; with the
    server's key, `salt` recreates the same secret when a client repeats the request that made it.
    """

    id = models.CharField(primary_key=True, max_length=40)
    account = models.OneToOneField("payments_app.Account", models.PROTECT, related_name="token")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    parent = models.ForeignKey(
        "self", models.PROTECT, null=True, blank=True, related_name="children"
    )
    depth = models.PositiveSmallIntegerField(default=0)
    name = models.CharField(max_length=100, blank=True)
    form = models.CharField(max_length=10)
    salt = models.CharField(max_length=64, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    # The names of the agents that it may pay, and the ids of those that the names mean.
    audience = models.JSONField(default=list, blank=True)
    audience_ids = models.JSONField(default=dict, blank=True, db_default={})
    per_use_limit = models.BigIntegerField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        """A secret opens one token; a token is passed on at most five times."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["sha256"], condition=~Q(sha256=""), name="secret_opens_one_token"
            ),
            models.CheckConstraint(condition=Q(depth__lte=5), name="token_is_passed_on_five_times"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["expires_at"], condition=Q(closed_at__isnull=True), name="token_to_close"
            ),
            models.Index(fields=["-created_at", "-id"], name="token_listing"),
        ]

    def __str__(self) -> str:
        return self.id


class SpendingPeriod(models.TextChoices):
    """Calendar periods in UTC; weeks begin on Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class SpendingLimit(models.Model):
    """The amount that a person may spend in a period, on one agent or (blank) on all.

    The limit of a `token` counts spending by that token and its descendants. The limit of a
    `credential` (such as `key:7`) counts what is requested with it, and is its budget.
    """

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    period = models.CharField(max_length=5, choices=SpendingPeriod)
    agent_id = models.CharField(max_length=40, blank=True)
    token = models.ForeignKey(
        PaymentToken, models.CASCADE, null=True, blank=True, related_name="limits"
    )
    credential = models.CharField(max_length=40, blank=True, default="", db_default="")
    asset = models.CharField(max_length=10)
    amount = models.BigIntegerField()

    class Meta:
        """One limit for each period and agent, for each period of a token, and for a credential."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "period", "agent_id", "asset"],
                condition=Q(token__isnull=True, credential=""),
                name="limit_is_set_once",
            ),
            models.UniqueConstraint(
                fields=["credential", "asset"],
                condition=~Q(credential=""),
                name="credential_has_one_budget",
            ),
            models.UniqueConstraint(
                fields=["token", "period"],
                condition=Q(token__isnull=False),
                name="token_limit_is_set_once",
            ),
            models.CheckConstraint(
                condition=Q(token__isnull=True) | Q(agent_id=""), name="token_limit_is_on_all"
            ),
            models.CheckConstraint(condition=Q(amount__gte=0), name="limit_is_not_negative"),
        ]
        indexes: ClassVar = [models.Index(fields=["agent_id"], name="limits_of_an_agent")]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.period} {self.agent_id}"


class Approval(models.Model):
    """The amount that a person lets an agent charge for each answer without asking."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    agent_id = models.CharField(max_length=40)
    asset = models.CharField(max_length=10)
    up_to = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        """One approval for each agent."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "agent_id"], name="agent_is_approved_once"),
            models.CheckConstraint(condition=Q(up_to__gt=0), name="approval_is_of_something"),
        ]
        indexes: ClassVar = [models.Index(fields=["agent_id"], name="approvals_of_an_agent")]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.agent_id}"


class TopUpRequestState(models.TextChoices):
    """Open until the provider's money arrives, or the request is refused."""

    OPEN = "open"
    CREDITED = "credited"
    REFUSED = "refused", "Declined"


class TopUpRequest(models.Model):
    """Money that a person asked to pay in through a provider; its id is the receipt's."""

    id = models.CharField(primary_key=True, max_length=40)
    provider = models.CharField(max_length=40)
    account = models.ForeignKey("payments_app.Account", models.PROTECT, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    amount = models.BigIntegerField()
    asset = models.CharField(max_length=10)
    state = models.CharField(
        max_length=10,
        choices=TopUpRequestState,
        default=TopUpRequestState.OPEN,
        db_default=TopUpRequestState.OPEN,
    )
    reference = models.CharField(max_length=200, blank=True, help_text="The provider's own id.")
    url = models.CharField(max_length=2000, blank=True, help_text="Where the person pays.")
    reason = models.CharField(max_length=500, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        """A request is for a positive amount."""

        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="top_up_is_of_something")
        ]
        indexes: ClassVar = [
            models.Index(fields=["user", "-created_at"], name="top_ups_of_a_person"),
            models.Index(fields=["-created_at", "-id"], name="top_up_listing"),
            models.Index(fields=["created_at"], condition=Q(state="open"), name="open_top_ups"),
            models.Index(fields=["reference"], name="top_up_reference"),
        ]
        permissions: ClassVar = [("grant_topup", "Can credit or refuse a request for a top-up")]

    def __str__(self) -> str:
        return self.id


class AdjustmentState(models.TextChoices):
    """The state of an adjustment that needs two operators."""

    OPEN = "open", "Waiting"
    MADE = "made", "Made"
    REFUSED = "refused", "Declined"


class AdjustmentRequest(models.Model):
    """A large adjustment of a balance, which a second operator makes or refuses.

    `amount` is signed. `transfer_id` is the ledger's row, once it is made. `key` is that of the
    form, so that a form sent twice is one request.
    """

    key = models.CharField(max_length=64, unique=True)
    account = models.ForeignKey("payments_app.Account", models.PROTECT, related_name="+")
    amount = models.BigIntegerField()
    asset = models.CharField(max_length=10)
    reason = models.CharField(max_length=500)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    state = models.CharField(
        max_length=10,
        choices=AdjustmentState,
        default=AdjustmentState.OPEN,
        db_default=AdjustmentState.OPEN,
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    decision = models.CharField(max_length=500, blank=True)
    transfer_id = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        """Few are open; the list shows the newest first."""

        indexes: ClassVar = [
            models.Index(fields=["-created_at", "-id"], name="adjustment_listing"),
            models.Index(fields=["created_at"], condition=Q(state="open"), name="open_adjustments"),
        ]

    def __str__(self) -> str:
        return f"adjustment {self.pk}"
