"""Serializers of the clients' own routes, in and out (webagents §5.2)."""

from __future__ import annotations

from typing import Final

from rest_framework import serializers

from payments_app.rest.edge import AmountField, shape
from payments_app.tokens import issuance

USAGE_MAX: Final = 200
SECRET_CHARS: Final = 16_384
TO_PLATFORM: Final = ("platform_fee", "platform_llm")
TO_AGENT: Final = ("agent_fee", "byok_llm", "byok_mcp_sampling")


def text(chars: int = 150) -> serializers.CharField:
    """Return an optional text member."""
    return serializers.CharField(required=False, default="", allow_blank=True, max_length=chars)


def secret(*, required: bool = True) -> serializers.CharField:
    """Return a member for a token's secret."""
    if required:
        return serializers.CharField(max_length=SECRET_CHARS)
    return text(SECRET_CHARS)


def names() -> serializers.ListField:
    """Return a member for names of agents."""
    return serializers.ListField(
        child=serializers.CharField(max_length=issuance.AGENT_CHARS),
        max_length=issuance.MAX_AUDIENCE,
        required=False,
        default=list,
    )


def seconds() -> serializers.IntegerField:
    """Return an optional member for a duration."""
    return serializers.IntegerField(
        required=False,
        default=None,
        min_value=1,
        max_value=int(issuance.MAX_SECONDS),
        allow_null=True,
    )


Verify = shape("PaymentVerify", token=secret(), expectedAudience=text())
Verified = shape(
    "PaymentVerified",
    valid=serializers.BooleanField(),
    invalidReason=serializers.CharField(required=False),
    balance=serializers.CharField(required=False),
    balanceDollars=serializers.CharField(required=False),
    currency=serializers.CharField(required=False),
    expiresAt=serializers.DateTimeField(required=False, allow_null=True),
    issuer=serializers.CharField(required=False),
    tokenId=serializers.CharField(required=False),
    audience=serializers.ListField(child=serializers.CharField(), required=False),
)
NewLock = shape(
    "PaymentLockRequest",
    token=secret(required=False),
    amount=AmountField(),
    currency=text(10),
    agent=text(),
    recipientId=text(),
    audience=names(),
    expiresIn=seconds(),
    idempotencyKey=text(200),
)
Lock = shape(
    "PaymentLock",
    lockId=serializers.CharField(),
    tokenId=serializers.CharField(),
    lockedAmount=serializers.CharField(),
    lockedAmountDollars=serializers.CharField(),
    locked=serializers.CharField(),
    available=serializers.CharField(),
    availableDollars=serializers.CharField(),
    currency=serializers.CharField(),
    expiresAt=serializers.DateTimeField(),
)
LockToken = shape(
    "PaymentLockToken",
    token=serializers.CharField(),
    tokenId=serializers.CharField(),
    expiresAt=serializers.DateTimeField(allow_null=True),
    lockedAmount=serializers.CharField(),
    lockedAmountDollars=serializers.CharField(),
    currency=serializers.CharField(),
)
MoreLock = shape(
    "PaymentLockExtension",
    additionalAmount=AmountField(required=False),
    amount=AmountField(required=False),
    currency=text(10),
    idempotencyKey=text(200),
)
Extended = shape(
    "PaymentLockExtended",
    success=serializers.BooleanField(),
    lockId=serializers.CharField(),
    newAmount=serializers.CharField(),
    newAmountDollars=serializers.CharField(),
    currency=serializers.CharField(),
    replayed=serializers.BooleanField(),
)
Settle = shape(
    "PaymentSettle",
    lockId=text(40),
    token=secret(required=False),
    amount=AmountField(required=False),
    usage=serializers.ListField(
        child=serializers.DictField(), max_length=USAGE_MAX, required=False, default=list
    ),
    currency=text(10),
    description=text(500),
    resource=text(500),
    chargeType=serializers.ChoiceField(
        choices=[*TO_PLATFORM, *TO_AGENT], required=False, default="agent_fee"
    ),
    cid=text(40),
    release=serializers.BooleanField(required=False, default=False),
    recipientId=text(),
    idempotencyKey=text(200),
)
Settled = shape(
    "PaymentSettled",
    success=serializers.BooleanField(),
    lockId=serializers.CharField(),
    charged=serializers.CharField(),
    chargedDollars=serializers.CharField(),
    settled=serializers.CharField(),
    released=serializers.CharField(),
    remaining=serializers.CharField(),
    remainingDollars=serializers.CharField(),
    requested=serializers.CharField(),
    unbilled=serializers.CharField(),
    partial=serializers.BooleanField(),
    computedFromUsage=serializers.BooleanField(),
    replayed=serializers.BooleanField(),
    currency=serializers.CharField(),
    transferIds=serializers.ListField(child=serializers.CharField()),
)
Delegate = shape(
    "PaymentDelegate",
    parentToken=secret(),
    delegateTo=serializers.CharField(max_length=issuance.AGENT_CHARS),
    amount=AmountField(),
    currency=text(10),
    expiresIn=seconds(),
    audience=names(),
    idempotencyKey=text(200),
)
