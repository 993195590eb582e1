"""API keys that people create for their own programs.

A key can do what its rights grant, within its owner's own rights. Its secret is returned once and
stored only as a hash. A person can create up to UAMP_KEYS_PER_USER valid keys; an operator who may
act as that person can create more. A key cannot create keys with more rights than it has.
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
from audit_app.authority import may_act_as
from audit_app.record import AuditAction, record
from chat_app.members import membership
from payments_app.money import DEFAULT_ASSET
from payments_app.spending import credential_budgets
from payments_app.spending.periods import PERIODS
from sessions_app.models import KEY_CREDENTIAL, ApiKey, Ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
    from django.db.models import QuerySet

    from payments_app.money import Money
    from payments_app.spending.limits import LimitState

RESTRICTED_TO: Final = 100
"""The most chats, or agents, that a key may be restricted to."""
KEEPS_SECRET: Final = timedelta(days=7)
"""The longest time that a secret may stay valid after its replacement."""


class TooManyKeys(Exception):
    """The person has UAMP_KEYS_PER_USER valid keys."""


class MayNotActAs(PermissionError):
    """A secret of this person would give the operator more than they may do or see."""


class ImpossibleKey(ValueError):
    """A key request is invalid; `field` is the field of `KeyRequest` at fault."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyBudget:
    """A key's budget per `period`: day, week or month."""

    amount: Money
    period: str


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyRequest:
    """A request for a key: its name, rights, expiry and budget."""

    name: str
    rights: Rights = ALL
    expires_at: datetime | None = None
    budget: KeyBudget | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewSecret:
    """A key with its secret, which is not stored."""

    key: ApiKey
    secret: str


def keys_of(user_id: int) -> list[ApiKey]:
    """Return a person's valid keys, newest first."""
    return list(_in_force(user_id).order_by("-created_at", "-pk"))


def find_key(user_id: int, key_id: int) -> ApiKey | None:
    """Return a person's own valid key."""
    return _in_force(user_id).filter(pk=key_id).first()


def budgets_of(keys: Collection[ApiKey]) -> dict[int, LimitState]:
    """Return the budgets of the keys that have one, by key id."""
    states = credential_budgets.budgets_of([key.credential for key in keys if key.has_budget])
    return {key.pk: states[key.credential] for key in keys if key.credential in states}


def make_key(
    user_id: int,
    request: KeyRequest,
    *,
    by: Rights = ALL,
    until: datetime | None = None,
    address: str = "",
) -> NewSecret:
    """Create a key, requested from `address` with a credential of the rights `by`.

    If that credential expires (`until`), a key without an expiry gets the same one. Raises
    TooManyKeys, ImpossibleKey, and MissingRight if the key would exceed or outlast the credential.
    """
    if request.expires_at is None:
        request = replace(request, expires_at=until)
    if request.budget is not None:
        request = replace(request, rights=replace(request.rights, has_budget=True))
    check_within(request.rights, by=by)
    check_lasts(request.expires_at, until=until)
    _check(user_id, request)
    with transaction.atomic():
        # Of two concurrent requests, the second must count the first one's key.
        user = User.objects.select_for_update(no_key=True).get(pk=user_id)
        if _in_force(user_id).count() >= settings.UAMP_KEYS_PER_USER:
            raise TooManyKeys
        return _write(user, request, by=user, address=address)


def make_key_for(person: User, request: KeyRequest, *, by: User, address: str = "") -> NewSecret:
    """Create a key of a person as the operator `by`, beyond UAMP_KEYS_PER_USER if need be.

    Raises MayNotActAs, ImpossibleKey.
    """
    _check_may_act_as(by, person)
    _check(person.pk, request)
    with transaction.atomic():
        return _write(person, request, by=by, address=address)


def _check_may_act_as(by: AbstractBaseUser | AnonymousUser | None, person: User) -> None:
    """Raise MayNotActAs if a secret of a person would give `by` more; None is the server."""
    if by is not None and not (isinstance(by, User) and may_act_as(by, person)):
        raise MayNotActAs(
            f"{person} has rights that you do not have, or chats that you may not see, so you"
            " cannot create a key for them."
        )


def _write(user: User, request: KeyRequest, *, by: User, address: str) -> NewSecret:
    """Write a key with its budget, and record it."""
    secret = ApiKey.make_secret()
    prefix, sha256 = ApiKey.split_secret(secret)
    rights = request.rights
    key = ApiKey.objects.create(
        user=user,
        name=request.name,
        prefix=prefix,
        sha256=sha256,
        scopes=sorted(rights.scopes),
        chats=_listed(rights.chats),
        agents=_listed(rights.agents),
        protocols=_listed(rights.protocols),
        has_budget=request.budget is not None,
        expires_at=request.expires_at,
    )
    if request.budget is not None:
        credential_budgets.set_budget(
            user.pk,
            key.credential,
            period=request.budget.period,
            amount=request.budget.amount,
        )
    record(by, AuditAction.KEY_MADE, key, detail=_facts(key), address=address)
    return NewSecret(key=key, secret=secret)


def check_within(rights: Rights, *, by: Rights) -> None:
    """Raise MissingRight if a key with these rights could do more than the credential `by`.

    A credential with a budget cannot create keys, each of which could spend as much again.
    """
    by.check_pays()
    if not by.includes(rights):
        raise MissingRight("The key has more rights than the credential that you use.")


def check_lasts(expires_at: datetime | None, *, until: datetime | None) -> None:
    """Raise MissingRight if a key would outlast a credential that expires at `until`."""
    if until is not None and (expires_at is None or expires_at > until):
        raise MissingRight("The key outlasts the credential that you use.")


def rotate_key(
    key: ApiKey,
    *,
    by: AbstractBaseUser | AnonymousUser | None,
    keep: timedelta = timedelta(0),
    reason: str = "",
    address: str = "",
) -> NewSecret:
    """Give a key a new secret; the previous one stays valid for `keep`, at most KEEPS_SECRET.

    With no `keep`, the key's connections end within five seconds (`auth.unwelcome`), as do tickets
    and client secrets issued with it. The audit log records the actor (`by`) and the reason. Raises
    LookupError if the key is revoked, MayNotActAs if `by` may not act as its owner.
    """
    keep = min(max(keep, timedelta(0)), KEEPS_SECRET)
    with transaction.atomic():
        row = _all_in_force().select_for_update(no_key=True).filter(pk=key.pk).first()
        if row is None:
            raise LookupError("The key is revoked.")
        _check_may_act_as(by, row.user)
        secret = ApiKey.make_secret(row.prefix)
        row.previous_sha256 = row.sha256 if keep else ""
        row.previous_until = timezone.now() + keep if keep else None
        row.sha256 = ApiKey.split_secret(secret)[1]
        row.version += 1
        row.save(update_fields=["sha256", "previous_sha256", "previous_until", "version"])
        if not keep:
            Ticket.objects.filter(api_key=row).delete()
        detail = f"The previous one is valid until {row.previous_until}." if keep else ""
        record(by, AuditAction.KEY_ROTATED, row, reason=reason, address=address, detail=detail)
    return NewSecret(key=row, secret=secret)


def is_in_force(credential: str) -> bool:
    """Return whether a credential (`Principal.credential`) still lets its person act.

    A credential that no one checks (`ended`) is always in force here.
    """
    return not ended([credential])


def also_ended(prefix: str, find: Callable[[set[str]], set[str]]) -> None:
    """Have `find` return those credentials with a prefix that are no longer valid."""
    _checks[prefix] = find


def ended(credentials: Iterable[str]) -> set[str]:
    """Return the given credentials (`Principal.credential`) that are no longer valid."""
    names = set(credentials)
    invalid: set[str] = set()
    for prefix, find in _checks.items():
        if mine := {name for name in names if name.startswith(prefix)}:
            invalid |= find(mine)
    return invalid


def _ended_keys(keys: set[str]) -> set[str]:
    rows = _all_in_force().exclude(expires_at__lte=timezone.now())
    good = rows.filter(pk__in=[name.removeprefix(KEY_CREDENTIAL) for name in keys])
    return keys - {f"{KEY_CREDENTIAL}{pk}" for pk in good.values_list("pk", flat=True)}


_checks: Final[dict[str, Callable[[set[str]], set[str]]]] = {KEY_CREDENTIAL: _ended_keys}


def revoke_key(
    key: ApiKey,
    *,
    by: AbstractBaseUser | AnonymousUser | None,
    reason: str = "",
    address: str = "",
) -> bool:
    """Revoke a key; return whether it was valid. The audit log has the actor (`by`) and reason.

    Its connections end within five seconds (`auth.unwelcome`).
    """
    with transaction.atomic():
        ended = _all_in_force().filter(pk=key.pk).update(revoked_at=timezone.now())
        if ended:
            detail = f"{key.prefix}… of {key.user} ({key.name or 'unnamed'})"
            record(by, AuditAction.KEY_REVOKED, key, reason=reason, address=address, detail=detail)
    return bool(ended)


def _check(user_id: int, request: KeyRequest) -> None:
    """Raise ImpossibleKey if the person cannot have such a key."""
    for field, is_wrong, message in _problems(request):
        if is_wrong:
            raise ImpossibleKey(field, message)
    rights = request.rights
    for chat_id in rights.chats or ():
        if not membership.is_member(chat_id, user_id):
            raise ImpossibleKey("chats", _("You aren't in that chat."))
    if rights.agents is not None:
        usable = {spec.id for spec in agents.list_agents(user_id)}
        if not rights.agents <= usable:
            raise ImpossibleKey("agents", _("That agent doesn't exist, or you may not use it."))


def _problems(request: KeyRequest) -> Iterator[tuple[str, bool, str]]:
    """Yield possible problems that need no queries, as (field, whether it applies, message)."""
    rights, budget = request.rights, request.budget
    yield "scopes", not rights.scopes, _("Choose what the key may do.")
    is_other = budget is not None and budget.amount.asset != DEFAULT_ASSET
    yield (
        "budget",
        is_other,
        _("A budget is in %(currency)s, like all prices.") % {"currency": DEFAULT_ASSET},
    )
    unknown = unknown_scopes(rights.scopes)
    name = unknown[0][:40] if unknown else ""
    yield "scopes", bool(unknown), _("There is no right named %(name)s.") % {"name": name}
    is_supported = rights.protocols is None or set() < rights.protocols <= set(PROTOCOLS)
    yield "protocols", not is_supported, _("Choose only supported protocols.")
    for field, ids in (("chats", rights.chats), ("agents", rights.agents)):
        few = ids is None or 0 < len(ids) <= RESTRICTED_TO
        yield field, not few, _("Choose between 1 and 100.")
    past = request.expires_at is not None and request.expires_at <= timezone.now()
    yield "expires_at", past, _("The expiry date is in the past.")
    bad_period = budget is not None and budget.period not in PERIODS
    yield "budget", bad_period, _("A budget must be for a day, a week or a month.")
    less = budget is not None and budget.amount.amount < 0
    yield "budget", less, _("A budget must not be negative.")


def _facts(key: ApiKey) -> str:
    """Describe a key's rights, for the audit log."""
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
