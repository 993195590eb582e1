"""REST: verify, lock, settle and delegate, as the network's clients call them (webagents §5.2).

Unknown members are allowed here, because clients send more than a route needs. Every amount is
returned as a decimal string, under its name and again with the suffix `Dollars`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from agents_app import selectors as agents
from agents_app.rest.views import caller
from payments_app.money import DEFAULT_ASSET, Money
from payments_app.rest import wire
from payments_app.rest.edge import (
    AmountField,
    PaymentProblem,
    PaymentView,
    checked,
    key_of,
    money,
    refusals,
)
from payments_app.services import InsufficientFunds
from payments_app.tokens import issuance, locks
from payments_app.tokens import lookup as token_lookup
from payments_app.tokens.locks import Charge, Payee
from payments_app.tokens.lookup import TokenRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

TOKEN_SECONDS: Final = 3600
USAGE_AMOUNTS: Final = ("amount", "cost", "credits")


class VerifyView(PaymentView):
    """Checks whether a token can be spent."""

    write_scope = "payments:read"

    @extend_schema(
        operation_id="verify_payment_token",
        request=wire.Verify,
        responses={200: wire.Verified, **refusals(400)},
    )
    def post(self, request: Request) -> Response:
        """Return the balance of a token; an invalid one is a normal answer too."""
        values = checked(request, wire.Verify)
        try:
            token = token_lookup.resolve(values["token"], agent=values["expectedAudience"])
        except TokenRefused as error:
            return Response({"valid": False, "invalidReason": str(error), "code": error.code})
        return Response(
            {
                "valid": True,
                **_twins("balance", str(token.available)),
                "currency": token.asset,
                "expiresAt": token.expires_at,
                "issuer": settings.UAMP_ISSUER,
                "tokenId": token.id,
                "audience": list(token.audience),
            }
        )


class LocksView(PaymentView):
    """Money set aside: from a token by the payee, or into a new token by the payer."""

    write_scope = "payments:write"

    @extend_schema(
        operation_id="lock_payment",
        request=wire.NewLock,
        responses={
            200: PolymorphicProxySerializer(
                component_name="PaymentLocked",
                serializers=[wire.Lock, wire.LockToken],
                resource_type_field_name=None,
            ),
            **refusals(400, 402, 409),
        },
    )
    def post(self, request: Request) -> Response:
        """Lock an amount of `token`; without one, create a token from the caller's own money."""
        values = checked(request, wire.NewLock)
        key = key_of(request, values["idempotencyKey"])
        if not values["token"]:
            return self._of_own_money(request, values, key)
        payee = _payee(request)
        amount, agent_id = money(values), _recipient(payee, values)
        terms = {
            "amount": str(amount),
            "currency": amount.asset,
            "agent": agent_id,
            "seconds": values["expiresIn"],
        }
        answer, replayed = locks.once(
            f"rest:locks:{payee.user_id}",
            key,
            {**terms, "token": values["token"]},
            lambda: locks.lock(
                payee,
                key=key,
                secret=values["token"],
                amount=amount,
                agent_id=agent_id,
                seconds=min(values["expiresIn"] or 0, locks.LOCK_SECONDS),
            ),
        )
        return _replayable(
            {
                "lockId": answer["lock_id"],
                "tokenId": answer["token_id"],
                **_twins("lockedAmount", answer["amount"]),
                "locked": answer["amount"],
                **_twins("available", answer["available"]),
                "currency": answer["currency"],
                "expiresAt": answer["expires_at"],
            },
            replayed=replayed,
        )

    def _of_own_money(self, request: Request, values: Mapping[str, Any], key: str) -> Response:
        made = issuance.issue(
            key=key,
            user_id=caller(request).pk,
            amount=money(values),
            expires_in=values["expiresIn"] or TOKEN_SECONDS,
            audience=values["audience"],
            form="jwt",
        )
        return _replayable(
            {
                "token": made.token,
                "tokenId": made.id,
                "expiresAt": made.expires_at,
                **_twins("lockedAmount", str(made.amount)),
                "currency": made.amount.asset,
            },
            replayed=made.replayed,
        )


class LockView(PaymentView):
    """One lock."""

    write_scope = "payments:write"

    @extend_schema(
        operation_id="extend_payment_lock",
        request=wire.MoreLock,
        responses={200: wire.Extended, **refusals(400, 402, 404, 409)},
    )
    def patch(self, request: Request, lock_id: str) -> Response:
        """Lock more, by `additionalAmount` or `amount`."""
        values = checked(request, wire.MoreLock)
        names = [name for name in ("additionalAmount", "amount") if name in values]
        if len(names) != 1:
            raise ValidationError({"additionalAmount": "Send either additionalAmount or amount."})
        payee, amount = _payee(request), money(values, names[0])
        key = key_of(request, values["idempotencyKey"])
        answer, replayed = locks.once(
            f"rest:extensions:{payee.user_id}",
            key,
            {"lock": lock_id, "amount": str(amount), "currency": amount.asset},
            lambda: locks.extend(payee, key=key, lock_id=lock_id, amount=amount),
        )
        return _replayable(
            {
                "success": True,
                "lockId": answer["lock_id"],
                **_twins("newAmount", answer["amount"]),
                "currency": answer["currency"],
            },
            replayed=replayed,
        )


class SettleView(PaymentView):
    """The amount to take from a lock, or from a token at once."""

    write_scope = "payments:write"

    @extend_schema(
        operation_id="settle_payment",
        request=wire.Settle,
        responses={200: wire.Settled, **refusals(400, 402, 404, 409)},
    )
    def post(self, request: Request) -> Response:
        """Take an amount, as far as it is locked; `release` returns the rest."""
        values = checked(request, wire.Settle)
        if bool(values["lockId"]) == bool(values["token"]):
            raise ValidationError({"lockId": "Send either lockId or token."})
        payee, key = _payee(request), key_of(request, values["idempotencyKey"])
        amount, from_usage = _amount(values)
        charge = Charge(
            amount=amount,
            agent_id=self._agent(payee, values, amount),
            release=values["release"] or bool(values["token"]),
            memo=values["description"] or values["resource"],
            chat_id=values["cid"],
            kind=values["chargeType"],
        )
        terms = {
            "lock": values["lockId"],
            "token": values["token"],
            "amount": str(amount),
            "currency": amount.asset,
            "agent": charge.agent_id,
            "kind": charge.kind,
            "release": charge.release,
            "memo": charge.memo,
            "chat": charge.chat_id,
        }

        def work() -> dict[str, Any]:
            if values["lockId"]:
                return locks.settle(payee, key=key, lock_id=values["lockId"], charge=charge)
            return locks.settle_token(payee, key=key, secret=values["token"], charge=charge)

        answer, replayed = locks.once(f"rest:settles:{payee.user_id}", key, terms, work)
        return _replayable(
            {
                "success": True,
                "lockId": answer["lock_id"],
                **_twins("charged", answer["charged"]),
                "settled": answer["charged"],
                "released": answer["released"],
                **_twins("remaining", answer["remaining"]),
                "requested": answer["requested"],
                "unbilled": answer["unbilled"],
                "partial": answer["partial"],
                "computedFromUsage": from_usage,
                "currency": answer["currency"],
                "transferIds": answer["transfer_ids"],
            },
            replayed=replayed,
        )

    def _agent(self, payee: Payee, values: Mapping[str, Any], amount: Money) -> str:
        """Return the agent to be paid; "" means the platform."""
        if values["chargeType"] in wire.TO_PLATFORM or not amount:
            return ""
        if named := _recipient(payee, values):
            return named
        if values["lockId"]:
            locked_for = locks.lock_of(payee, values["lockId"]).agent_id
            if payee.agent(locked_for):
                return locked_for
        if len(payee.agents) == 1:
            return payee.agents[0][0]
        raise ValidationError({"recipientId": "Specify the agent to be paid."})


class DelegateView(PaymentView):
    """A part of a token for another agent."""

    write_scope = "payments:write"

    @extend_schema(
        operation_id="delegate_payment",
        request=wire.Delegate,
        responses={200: wire.LockToken, **refusals(400, 402, 409)},
    )
    def post(self, request: Request) -> Response:
        """Return a token with an amount of its parent's; too much is a 400 with `available: n`."""
        values = checked(request, wire.Delegate)
        try:
            made = issuance.delegate(
                key=key_of(request, values["idempotencyKey"]),
                caller_id=caller(request).pk,
                parent_secret=values["parentToken"],
                amount=money(values),
                delegate_to=values["delegateTo"],
                expires_in=values["expiresIn"],
                audience=values["audience"],
            )
        except InsufficientFunds as error:
            payment = {
                "code": "insufficient_balance",
                "balance_current": str(error.available),
                "balance_required": str(error.requested),
                "currency": error.requested.asset,
            }
            raise PaymentProblem(
                "insufficient_balance", str(error), status=400, payment=payment
            ) from error
        return _replayable(
            {
                "token": made.token,
                "tokenId": made.id,
                "expiresAt": made.expires_at,
                **_twins("lockedAmount", str(made.amount)),
                "currency": made.amount.asset,
            },
            replayed=made.replayed,
        )


# --- Shared steps ---


def _payee(request: Request) -> Payee:
    user = caller(request)
    return Payee(
        user_id=user.pk,
        agents=tuple(
            (spec.id, spec.name) for spec in agents.list_agents(user) if spec.owner_id == user.pk
        ),
    )


def _recipient(payee: Payee, values: Mapping[str, Any]) -> str:
    """Return the agent that a body names, which must be the caller's own."""
    named = values.get("recipientId") or values.get("agent") or ""
    if not named:
        return ""
    agent_id = payee.agent(named)
    if agent_id is None:
        raise ValidationError({"recipientId": "This is not one of your agents."})
    return agent_id


def _amount(values: Mapping[str, Any]) -> tuple[Money, bool]:
    """Return the amount to capture, and whether it was computed from usage records."""
    currency = values["currency"] or DEFAULT_ASSET
    if "amount" in values:
        return money(values), False
    total = Money.zero(currency)
    for place, record in enumerate(values["usage"]):
        named = next((name for name in USAGE_AMOUNTS if name in record), None)
        if named is None:
            raise ValidationError({"usage": f"Record {place} has no amount, cost or credits."})
        digits = AmountField().to_internal_value(record[named])
        total += money({"amount": digits, "currency": currency})
    return total, bool(values["usage"])


def _twins(name: str, amount: str) -> dict[str, str]:
    return {name: amount, f"{name}Dollars": amount}


def _replayable(body: dict[str, Any], *, replayed: bool) -> Response:
    headers = {"Idempotent-Replayed": "true"} if replayed else {}
    return Response({**body, "replayed": replayed}, headers=headers)
