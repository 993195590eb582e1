"""Looking up payment tokens and checking them before they are spent (UAMP §7.2).

A token that was revoked, is foreign, unknown, meant for another payee or of a deactivated person is
`token_invalid`, without distinction. An expired one refuses new holds; existing holds are still
captured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from django.db.models import BooleanField, Case, Q, Value, When
from django.db.models.functions import Now

from payments_app.models import PaymentToken
from payments_app.money import Money
from payments_app.spending import audiences
from payments_app.tokens import secret_forms

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from django.db.models import QuerySet

NETWORK: Final = "uamp"
"""The network of this server's own tokens and balances."""
X402_NETWORK: Final = "uamp:main"
"""The same network in the form that x402 requires (CAIP-2)."""
NETWORKS: Final = frozenset({NETWORK, X402_NETWORK})


class TokenRefused(Exception):
    """The token was refused; `code` is one of UAMP §7.2, the message is for a person."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class UnknownToken(LookupError):
    """There is no such token, or it is not this person's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedToken:
    """A token that can be spent now; `per_use` is the most for one answer."""

    id: str
    account_id: int
    asset: str
    available: Money
    expires_at: datetime | None
    owner_id: int | None
    depth: int
    per_use: Money | None
    audience: tuple[str, ...] = ()
    audience_ids: Mapping[str, str] = field(default_factory=dict)

    def is_for(self, agent_id: str, name: str) -> bool:
        """Return whether it may pay an agent."""
        return audiences.is_for(self.audience, self.audience_ids, agent_id=agent_id, name=name)


def resolve(secret: str, *, agent: str = "", agent_id: str = "") -> ResolvedToken:
    """Return the token of a secret: opaque, a JWT, or a JWT in base64.

    `agent` is the name of the payee and `agent_id` its id; without it, the agent of that name now.
    Raises TokenRefused: token_expired, or token_invalid for everything else.
    """
    try:
        field, value = secret_forms.token_id_of(secret)
    except secret_forms.ExpiredSecret as error:
        raise TokenRefused("token_expired", str(error)) from error
    except secret_forms.BadSecret as error:
        raise TokenRefused("token_invalid", str(error)) from error
    return _usable(
        Q(sha256=value) if field == "sha256" else Q(pk=value, form="jwt"), agent, agent_id
    )


def by_id(token_id: str, *, agent: str = "", agent_id: str = "") -> ResolvedToken:
    """Return a token that was resolved earlier, after the same checks; raises TokenRefused."""
    return _usable(Q(pk=token_id), agent, agent_id)


def _usable(which: Q, agent: str, agent_id: str) -> ResolvedToken:
    row = with_accounts(which).select_related("owner").first()
    if row is None or row.revoked_at is not None or not _may_pay(row, agent, agent_id):
        raise foreign()
    if row.owner is not None and not row.owner.is_active:
        raise foreign()
    if has_expired(row):
        raise TokenRefused("token_expired", "The payment token has expired. Use a new one.")
    account = row.account
    return ResolvedToken(
        id=row.pk,
        account_id=account.pk,
        asset=account.asset,
        available=Money(account.posted - account.held, account.asset),
        expires_at=row.expires_at,
        owner_id=row.owner_id,
        depth=row.depth,
        per_use=None if row.per_use_limit is None else Money(row.per_use_limit, account.asset),
        audience=tuple(row.audience),
        audience_ids=row.audience_ids,
    )


def _may_pay(row: PaymentToken, agent: str, agent_id: str) -> bool:
    """Return whether an agent is in a token's audience."""
    if not row.audience or not (agent or agent_id):
        return True
    payee = agent_id or audiences.ids_of([agent]).get(agent, "")
    return audiences.is_for(row.audience, row.audience_ids, agent_id=payee, name=agent)


def foreign() -> TokenRefused:
    """Return the refusal of a token that is not valid for this payee."""
    return TokenRefused(
        "token_invalid", "The payment token is not valid here. Use a different one."
    )


def has_expired(row: PaymentToken) -> bool:
    """Return whether a row of `with_accounts` has expired, by the database's clock."""
    return bool(row.is_over)  # type: ignore[attr-defined] # annotated


def with_accounts(which: Q) -> QuerySet[PaymentToken]:
    """Return tokens with their accounts, and whether they have expired."""
    return (
        PaymentToken.objects.filter(which)
        .select_related("account")
        .annotate(
            is_over=Case(
                When(expires_at__lte=Now(), then=Value(value=True)),
                default=Value(value=False),
                output_field=BooleanField(),
            )
        )
    )


def assets_of(user_id: int, token_ids: Collection[str]) -> dict[str, str]:
    """Return the assets of the tokens that a person owns, by id."""
    rows = PaymentToken.objects.filter(owner_id=user_id, pk__in=token_ids)
    return dict(rows.values_list("pk", "account__asset"))


def names_of(token_ids: Collection[str]) -> dict[str, str]:
    """Return the names of tokens by id."""
    return dict(PaymentToken.objects.filter(pk__in=token_ids).values_list("pk", "name"))


# --- Own ---


def owned(token_id: str, user_id: int) -> PaymentToken:
    """Return the row of a person's token; raises UnknownToken."""
    row = with_accounts(Q(pk=token_id, owner_id=user_id)).first()
    if row is None:
        raise UnknownToken("There is no such token.")
    return row
