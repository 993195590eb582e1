"""Top-up requests: made by a person, ended by a provider or an operator, credited once.

A provider's report is accepted if it concerns the payment that was started for one of its own
requests, and the same amount, however often it is sent. Money that arrives after a refusal is
credited all the same, since it has arrived. The receipt's id is the request's for grants by
operators, the provider's otherwise.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from agents_app.workers import connections
from payments_app import services
from payments_app.ledger.outcomes import IdempotencyConflict, LedgerError, OwnMoney
from payments_app.ledger.own_money import refuse_own
from payments_app.models import TopUpRequest, TopUpRequestState
from payments_app.money import InvalidAmount, Money
from payments_app.top_ups.provider import ForeignHook, TopUpProvider, TopUpReport

if TYPE_CHECKING:
    from collections.abc import Mapping

LISTED: Final = 100


class UnknownProvider(LookupError):
    """There is no such provider here."""


class UnknownRequest(LookupError):
    """There is no such request, or it is not this person's."""


class AlreadyDecided(LedgerError):
    """The request was already credited or refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderInfo:
    """A provider as offered to people."""

    name: str
    label: str
    currencies: tuple[str, ...]


# --- Providers ---


@lru_cache(maxsize=8)
def _loaded(paths: tuple[str, ...]) -> tuple[TopUpProvider, ...]:
    return tuple(import_string(path)() for path in paths)


def providers() -> list[ProviderInfo]:
    """Return the configured providers, in the order of the setting."""
    return [
        ProviderInfo(name=provider.name, label=provider.label, currencies=provider.currencies())
        for provider in _loaded(tuple(settings.UAMP_TOPUP_PROVIDERS))
    ]


def provider_named(name: str) -> TopUpProvider:
    """Return a provider; raises UnknownProvider."""
    for provider in _loaded(tuple(settings.UAMP_TOPUP_PROVIDERS)):
        if provider.name == name:
            return provider
    raise UnknownProvider(f"There is no provider {name[:40]!r}.")


# --- A person's requests ---


def ask(*, key: str, user_id: int, provider: str, amount: Money) -> tuple[TopUpRequest, bool]:
    """Create a request and start its payment; return it, and whether the key was used before.

    Raises UnknownProvider, InvalidAmount, IdempotencyConflict, ProviderFailed: after the last of
    these the same key may be retried.
    """
    chosen = provider_named(provider)
    largest = Money.parse(settings.UAMP_TOPUP_MAX, amount.asset)
    if not Money.zero(amount.asset) < amount <= largest:
        raise InvalidAmount(f"A top-up must be positive, and at most {largest}.")
    if amount.asset not in chosen.currencies():
        raise InvalidAmount(f"{chosen.label} takes {', '.join(chosen.currencies())}.")
    chosen.check(amount)
    digest = hashlib.sha256(f"{user_id}\0{key}".encode()).hexdigest()
    row, new = TopUpRequest.objects.get_or_create(
        pk=f"topup_{digest[:32]}",
        defaults={
            "provider": provider,
            "account_id": services.account_of_user(user_id, amount.asset).id,
            "user_id": user_id,
            "amount": amount.amount,
            "asset": amount.asset,
        },
    )
    if (row.provider, row.amount, row.asset) != (provider, amount.amount, amount.asset):
        raise IdempotencyConflict(f"The key {key!r} was used for another top-up.")
    if row.state == TopUpRequestState.OPEN and not row.reference:
        # Others may need the connection while the provider responds.
        connections.release()
        started = chosen.start(row.pk, amount)
        TopUpRequest.objects.filter(pk=row.pk).update(url=started.url, reference=started.reference)
        row.refresh_from_db()
    return row, not new


def requests_of(user_id: int) -> list[TopUpRequest]:
    """Return a person's requests, the newest first."""
    return list(
        TopUpRequest.objects.filter(user_id=user_id).order_by("-created_at", "-pk")[:LISTED]
    )


def request_of(user_id: int, request_id: str) -> TopUpRequest:
    """Return one of them; raises UnknownRequest."""
    row = TopUpRequest.objects.filter(user_id=user_id, pk=request_id).first()
    if row is None:
        raise UnknownRequest("There is no such request.")
    return row


# --- How they end ---


def receive_webhook(provider: str, body: bytes, headers: Mapping[str, str]) -> TopUpRequest | None:
    """Process a provider's call; return None if it reports nothing relevant here.

    Raises UnknownProvider, and ForeignHook for a call that is not from its provider or does not
    match the request.
    """
    report = provider_named(provider).hook(body, headers)
    if report is None:
        return None
    with transaction.atomic():
        row = _locked(report.request_id)
        if row is None or row.provider != provider:
            raise ForeignHook("There is no such request.")
        if row.reference and report.reference != row.reference:
            # Others can name the request, for example buyers at the same account.
            raise ForeignHook("The payment is not the one that was started for the request.")
        if not report.paid:
            if row.state == TopUpRequestState.OPEN:
                _end(row, TopUpRequestState.REFUSED, report.reason, None)
            return row
        if report.amount != Money(row.amount, row.asset):
            raise ForeignHook("The payment differs from the requested amount.")
        _credit(row, report)
        return row


def _credit(row: TopUpRequest, report: TopUpReport) -> None:
    services.top_up(
        key=f"{row.provider}:{report.reference}",
        scope="top_up",
        account=row.account_id,
        amount=Money(row.amount, row.asset),
        provider=row.provider,
        external_id=report.reference,
    )
    if row.state != TopUpRequestState.CREDITED:
        _end(row, TopUpRequestState.CREDITED, row.reason, None, reference=report.reference)


def grant(request_id: str, *, by: int, reason: str) -> TopUpRequest:
    """Credit a request as an operator decided.

    Raises OwnMoney, AlreadyDecided, ValueError without a reason.
    """
    with transaction.atomic():
        row = _open(request_id, by, reason)
        services.top_up(
            key=f"grant:{row.pk}",
            scope="top_up",
            account=row.account_id,
            amount=Money(row.amount, row.asset),
            provider=row.provider,
            external_id=row.reference or row.pk,
            memo=reason,
            by=by,
        )
        _end(row, TopUpRequestState.CREDITED, reason, by)
        return row


def refuse(request_id: str, *, by: int, reason: str) -> TopUpRequest:
    """Refuse a request as an operator decided; raises the errors of `grant`."""
    with transaction.atomic():
        row = _open(request_id, by, reason)
        _end(row, TopUpRequestState.REFUSED, reason, by)
        return row


def _open(request_id: str, by: int, reason: str) -> TopUpRequest:
    if not reason.strip():
        raise ValueError("A decision needs a reason.")
    row = _locked(request_id)
    if row is None:
        raise UnknownRequest("There is no such request.")
    if row.user_id == by:
        raise OwnMoney("This is your own request: another operator has to decide.")
    refuse_own([row.account_id], by)
    if row.state != TopUpRequestState.OPEN:
        raise AlreadyDecided(f"The request is {row.state}.")
    return row


def _locked(request_id: str) -> TopUpRequest | None:
    return TopUpRequest.objects.select_for_update(no_key=True).filter(pk=request_id).first()


def _end(row: TopUpRequest, state: str, reason: str, by: int | None, reference: str = "") -> None:
    row.state, row.reason, row.decided_by_id = state, reason[:500], by
    row.reference = reference or row.reference
    TopUpRequest.objects.filter(pk=row.pk).update(
        state=row.state,
        reason=row.reason,
        decided_by=by,
        decided_at=Now(),
        reference=row.reference,
    )
