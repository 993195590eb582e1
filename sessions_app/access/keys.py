"""API keys that people make for their own programs.

A key may do what its rights say of what its owner may. Its secret is returned once and kept as a
hash only. A person has at most UAMP_KEYS_PER_USER keys in force that they made here; an operator
makes more in the admin. Who makes a key with a key gives it no right that the first one lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents_app import selectors as agents
from agents_app.rest.rights import ALL, PROTOCOLS, MissingRight, Rights, unknown_scopes
from audit_app.record import AuditAction, record
from chat_app.members import membership
from payments_app.spending import credential_budgets
from payments_app.spending.periods import PERIODS
from sessions_app.models import KEY_CREDENTIAL, ApiKey, Ticket

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.db.models import QuerySet

    from payments_app.money import Money
    from payments_app.spending.limits import LimitState

RESTRICTED_TO: Final = 100
"""Chats, or agents, that a key may be restricted to."""
KEEPS_SECRET: Final = timedelta(days=7)
"""So long at most a secret is good beside the one that replaced it."""


class TooManyKeys(Exception):
    """The person has UAMP_KEYS_PER_USER keys in force."""


class ImpossibleKey(ValueError):
    """A key cannot be made so; `field` is what of the `KeyRequest` is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyBudget:
    """The budget of a key in a `period`: day, week or month."""

    amount: Money
    period: str


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyRequest:
    """A key that a person asks for: its name, rights, end and budget."""

    name: str
    rights: Rights = ALL
    expires_at: datetime | None = None
    budget: KeyBudget | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewSecret:
    """A key with its secret, which is not kept."""

    key: ApiKey
    secret: str


def keys_of(user_id: int) -> list[ApiKey]:
    """Return a person's keys in force, the newest first."""
    return list(_in_force(user_id).order_by("-created_at", "-pk"))


def find_key(user_id: int, key_id: int) -> ApiKey | None:
    """Return a person's own key in force."""
    return _in_force(user_id).filter(pk=key_id).first()


def budgets_of(keys: Collection[ApiKey]) -> dict[int, LimitState]:
    """Return the budgets of those of these keys that have one, by the key's id."""
    states = credential_budgets.budgets_of([key.credential for key in keys if key.has_budget])
    return {key.pk: states[key.credential] for key in keys if key.credential in states}


def make_key(user_id: int, wanted: KeyRequest, *, by: Rights = ALL, address: str = "") -> NewSecret:
    """Make a key; `by` are the rights with which the person asks for it, from an `address`.

    Raises TooManyKeys, ImpossibleKey, and MissingRight where the key could do more than `by`.
    """
    if wanted.budget is not None:
        wanted = replace(wanted, rights=replace(wanted.rights, has_budget=True))
    check_within(wanted.rights, by=by)
    _check(user_id, wanted)
    with transaction.atomic():
        # Of two requests at once the second counts the key of the first.
        user = User.objects.select_for_update(no_key=True).get(pk=user_id)
        if _in_force(user_id).count() >= settings.UAMP_KEYS_PER_USER:
            raise TooManyKeys
        secret = ApiKey.make_secret()
        prefix, sha256 = ApiKey.split_secret(secret)
        rights = wanted.rights
        key = ApiKey.objects.create(
            user=user,
            name=wanted.name,
            prefix=prefix,
            sha256=sha256,
            scopes=sorted(rights.scopes),
            chats=_listed(rights.chats),
            agents=_listed(rights.agents),
            protocols=_listed(rights.protocols),
            has_budget=wanted.budget is not None,
            expires_at=wanted.expires_at,
        )
        if wanted.budget is not None:
            credential_budgets.set_budget(
                user_id,
                key.credential,
                period=wanted.budget.period,
                amount=wanted.budget.amount,
            )
        record(user, AuditAction.KEY_MADE, key, detail=_facts(key), address=address)
    return NewSecret(key=key, secret=secret)


def check_within(rights: Rights, *, by: Rights) -> None:
    """Raise MissingRight where a key of these rights could do more than the credential `by`.

    One with a budget makes no keys: each could spend as much again.
    """
    by.check_pays()
    if not by.includes(rights):
        raise MissingRight("The key has more rights than the credential that you use.")


def rotate_key(
    key: ApiKey,
    *,
    by: AbstractBaseUser | AnonymousUser | None,
    keep: timedelta = timedelta(0),
    reason: str = "",
    address: str = "",
) -> NewSecret:
    """Give a key a new secret; the one before stays good for `keep`, KEEPS_SECRET at most.

    With no time its connections end within five seconds (`auth.unwelcome`), and so do the tickets
    and client secrets that were made with it. The audit has who did it (`by`) and why. Raises
    LookupError for a key that is revoked.
    """
    keep = min(max(keep, timedelta(0)), KEEPS_SECRET)
    with transaction.atomic():
        row = _all_in_force().select_for_update(no_key=True).filter(pk=key.pk).first()
        if row is None:
            raise LookupError("The key is revoked.")
        secret = ApiKey.make_secret(row.prefix)
        row.previous_sha256 = row.sha256 if keep else ""
        row.previous_until = timezone.now() + keep if keep else None
        row.sha256 = ApiKey.split_secret(secret)[1]
        row.version += 1
        row.save(update_fields=["sha256", "previous_sha256", "previous_until", "version"])
        if not keep:
            Ticket.objects.filter(api_key=row).delete()
        kept = f"The one before is good until {row.previous_until}." if keep else ""
        record(by, AuditAction.KEY_ROTATED, row, reason=reason, address=address, detail=kept)
    return NewSecret(key=row, secret=secret)


def is_in_force(credential: str) -> bool:
    """Return whether a credential (`Principal.credential`) still lets its person act.

    One that is no key ends with its person.
    """
    return not ended([credential])


def ended(credentials: Iterable[str]) -> set[str]:
    """Return those of these credentials (`Principal.credential`) that are not in force any more."""
    keys = {one for one in credentials if one.startswith(KEY_CREDENTIAL)}
    if not keys:
        return set()
    rows = _all_in_force().exclude(expires_at__lte=timezone.now())
    good = rows.filter(pk__in=[one.removeprefix(KEY_CREDENTIAL) for one in keys])
    return keys - {f"{KEY_CREDENTIAL}{pk}" for pk in good.values_list("pk", flat=True)}


def revoke_key(
    key: ApiKey,
    *,
    by: AbstractBaseUser | AnonymousUser | None,
    reason: str = "",
    address: str = "",
) -> bool:
    """Revoke a key; return whether it was in force. The audit has who did it (`by`) and why.

    Its connections end within five seconds (`auth.unwelcome`).
    """
    with transaction.atomic():
        ended = _all_in_force().filter(pk=key.pk).update(revoked_at=timezone.now())
        if ended:
            record(by, AuditAction.KEY_REVOKED, key, reason=reason, address=address)
    return bool(ended)


def _check(user_id: int, wanted: KeyRequest) -> None:
    """Raise ImpossibleKey for what no key of the person can be."""
    for field, is_wrong, message in _problems(wanted):
        if is_wrong:
            raise ImpossibleKey(field, message)
    rights = wanted.rights
    for chat_id in rights.chats or ():
        if not membership.is_member(chat_id, user_id):
            raise ImpossibleKey("chats", _("You are in no such chat."))
    if rights.agents is not None:
        usable = {spec.id for spec in agents.list_agents(user_id)}
        if not rights.agents <= usable:
            raise ImpossibleKey("agents", _("There is no such agent that you may use."))


def _problems(wanted: KeyRequest) -> Iterator[tuple[str, bool, str]]:
    """Yield, without reading rows, what may be wrong with a key: where, whether it is, and why."""
    rights, budget = wanted.rights, wanted.budget
    yield "scopes", not rights.scopes, _("Choose what the key may do.")
    unknown = unknown_scopes(rights.scopes)
    name = unknown[0][:40] if unknown else ""
    yield "scopes", bool(unknown), _("There is no scope %(name)s.") % {"name": name}
    known = rights.protocols is None or set() < rights.protocols <= set(PROTOCOLS)
    yield "protocols", not known, _("Choose protocols that there are.")
    for field, ids in (("chats", rights.chats), ("agents", rights.agents)):
        few = ids is None or 0 < len(ids) <= RESTRICTED_TO
        yield field, not few, _("Name between 1 and 100.")
    past = wanted.expires_at is not None and wanted.expires_at <= timezone.now()
    yield "expires_at", past, _("The key would have expired already.")
    bad_period = budget is not None and budget.period not in PERIODS
    yield "budget", bad_period, _("A budget is for a day, a week or a month.")
    less = budget is not None and budget.amount.amount < 0
    yield "budget", less, _("A budget is not less than nothing.")


def _facts(key: ApiKey) -> str:
    """Return what a key may do, for the audit."""
    facts = [f"{key.prefix}: {' '.join(key.scopes)}"]
    facts += [
        f"{name} {' '.join(only)}"
        for name in ("chats", "agents", "protocols")
        if (only := getattr(key, name)) is not None
    ]
    if key.has_budget:
        facts.append("with a budget")
    return "; ".join(facts)


def _listed(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _all_in_force() -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(revoked_at__isnull=True)


def _in_force(user_id: int) -> QuerySet[ApiKey]:
    return _all_in_force().filter(user_id=user_id)
