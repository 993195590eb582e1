"""Find the payer of an answer: rules and approvals, read in the transaction that reserves.

Payers are determined for a whole group of turns at once. A payer who has approved in advance is not
asked. Everything here is synchronous and joins the caller's transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from django.db import transaction

from agents_app import sponsorships as agents
from agents_app.pricing import Pricing
from agents_app.selectors import get_spec
from chat_app.members import membership
from chat_app.members import payers as chat_payers
from chat_app.members.agreed_prices import is_agreed
from payments_app import services as ledger
from payments_app.spending import approvals, budgets
from payments_app.tokens import lookup as token_lookup

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from agents_app.selectors import AgentSpec
    from payments_app.money import Money
    from payments_app.services import HoldOutcome
    from sessions_app.records import OpenSession

AccountOwner: TypeAlias = tuple[str, str, str]
"""The owner of an account: "user", "agent" or "pool", the owner's id, and the asset."""

_MAX_IDS: Final = 20_000
_ids: Final[dict[AccountOwner, int]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An account that pays without asking, and its limit for one answer.

    `user_id` is the person whose spending limits apply, unless there are known to be none.
    `expires_at` is a token's expiry. `purpose` is budgets.SPONSOR if a sponsor's budget must cover
    it.
    """

    account_id: int
    user_id: int | None = None
    token_id: str = ""
    up_to: Money | None = None
    has_limits: bool = True
    expires_at: datetime | None = None
    purpose: str = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """An answer with a price: the facts that determine who pays for it.

    `credential` is the one with which the answer was requested. Its budget counts all that is
    reserved for the answer, whichever source pays.
    """

    chat_id: str
    agent_id: str
    agent: str
    asset: str
    asker_id: int | None
    token_id: str = ""
    credential: str = ""
    # The response of the agent that passed the work on; "" for what a client asked for.
    asked_by: str = ""
    # Whether the agent answers without having been asked (`targets.is_unprompted`).
    unprompted: bool = False
    # The prices of the answer as JSON, which can be hashed; "" for those of the agent now.
    prices: str = ""

    @property
    def pricing(self) -> Pricing:
        """The prices of the answer."""
        if not self.prices:
            return get_spec(self.agent_id).pricing
        return msgspec.json.decode(self.prices, type=Pricing)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPayment:
    """The payment of a response when it starts.

    `first` is the reservation made together with the turn. `source` pays without asking. `payer_id`
    is the person to ask otherwise; None means the session's visitor. `purchase` holds the facts
    that this is based on.
    """

    source: Source | None
    payer_id: int | None
    purchase: Purchase
    is_sponsored: bool = False
    first: HoldOutcome | None = None


def purchase_of(session: OpenSession, spec: AgentSpec, *, unprompted: bool) -> Purchase:
    """Return the facts of an agent's answer to a session that determine its payment."""
    return Purchase(
        chat_id=session.asked_in,
        agent_id=spec.id,
        agent=spec.name,
        asset=spec.pricing.currency,
        asker_id=session.principal.user_id,
        token_id=session.payment_token_id,
        credential=session.principal.credential,
        asked_by="" if session.parent is None else session.parent.response_id,
        unprompted=unprompted,
        prices=msgspec.json.encode(spec.pricing).decode(),
    )


def who_pays(purchases: Iterable[Purchase]) -> dict[Purchase, AnswerPayment]:
    """Return the sources that pay for answers without asking, and whom to ask otherwise."""
    unique = set(purchases)
    # Reread each time, since an owner may change the rule while a session is open.
    chosen = chat_payers.payers_of({purchase.chat_id for purchase in unique})
    asked_of = {
        purchase.agent_id for purchase in unique if chosen[purchase.chat_id].rule == "sponsor"
    }
    sponsors = agents.sponsors_of(asked_of) if asked_of else {}
    payers = {purchase: _payer(purchase, chosen[purchase.chat_id], sponsors) for purchase in unique}
    standings = approvals.standing(
        {(user, purchase.agent_id) for purchase, (_, user) in payers.items() if user is not None}
    )
    owners: dict[Purchase, AccountOwner] = {}
    for purchase, (rule, user) in payers.items():
        if rule == "pool":
            owners[purchase] = ("pool", purchase.chat_id, purchase.asset)
        elif user is not None and (
            rule != "asker" or _allows(standings[user, purchase.agent_id], purchase, user)
        ):
            owners[purchase] = ("user", str(user), purchase.asset)
    ids = account_ids(owners.values())
    payments = {}
    for purchase, (rule, user) in payers.items():
        source = (
            by_token(purchase.token_id, purchase.agent, purchase.agent_id)
            if rule == "asker" and purchase.token_id and not purchase.unprompted
            else None
        )
        if source is None and purchase in owners:
            source = Source(account_id=ids[owners[purchase]], user_id=user)
            if user is not None:
                standing = standings[user, purchase.agent_id]
                up_to = standing.up_to if rule == "asker" else None
                source = replace(source, up_to=up_to, has_limits=standing.has_limits)
        is_sponsored = rule == "sponsor" and source is not None
        if is_sponsored and source is not None:
            source = replace(source, purpose=budgets.SPONSOR)
        payments[purchase] = AnswerPayment(
            source=source,
            payer_id=purchase.asker_id if is_sponsored else user,
            purchase=purchase,
            is_sponsored=is_sponsored,
        )
    return payments


def current_payment(payment: AnswerPayment) -> AnswerPayment:
    """Return the payment for the rest of an answer under the current rule.

    A payer whose consent has ended still pays for what is already held. A token or payment that the
    asker submitted for this answer is used under any rule of the chat.
    """
    purchase, source = payment.purchase, payment.source
    is_shown = source is None or bool(source.token_id)
    if is_shown and payment.payer_id == purchase.asker_id:
        return payment
    now = who_pays([purchase])[purchase]
    if source is not None and source.token_id and now.payer_id == payment.payer_id:
        # The same payer is asked, and has submitted the token.
        return payment
    return now


def may_cost(session: OpenSession) -> bool:
    """Return whether an agent that may answer in a session has a price."""
    ids = [session.agent_id]
    if session.agent_id is None:
        ids = [member.agent_id for member in membership.agent_members(session.chat_id)]
    return any(not get_spec(agent_id).pricing.is_free for agent_id in ids if agent_id)


def _payer(
    purchase: Purchase, chosen: chat_payers.ChatPayer, sponsors: Mapping[str, int]
) -> tuple[str, int | None]:
    """Return the rule that applies and the person whose money it is; a pool has none.

    The asker pays if the chat's rule is a sponsor who has not agreed, or a pool for which no owner
    has agreed to the prices. An owner who has not agreed to the prices is asked, or pays as far as
    they allowed the agent.
    """
    match chosen.rule:
        case "owner" if not is_agreed(chosen.agreed_prices, purchase.agent_id, purchase.pricing):
            return "asker", chosen.owner_id
        case "owner":
            return "owner", chosen.owner_id
        case "pool" if is_agreed(chosen.agreed_prices, purchase.agent_id, purchase.pricing):
            return "pool", None
        case "sponsor" if purchase.agent_id in sponsors:
            return "sponsor", sponsors[purchase.agent_id]
    return "asker", purchase.asker_id


def _allows(standing: approvals.Standing, purchase: Purchase, user_id: int) -> bool:
    """Return whether a person asked for an answer and has approved payments to its agent."""
    is_asked = purchase.asker_id == user_id and not purchase.unprompted
    return is_asked and standing.up_to is not None and standing.up_to.asset == purchase.asset


def by_token(token_id: str, agent: str, agent_id: str) -> Source | None:
    """Return a resolved token's source for an agent; None if the token is no longer valid."""
    try:
        token = token_lookup.by_id(token_id, agent=agent, agent_id=agent_id)
    except token_lookup.TokenRefused:
        # It has become invalid since it was submitted; the payer is asked for another.
        return None
    return of_token(token)


def of_token(token: token_lookup.ResolvedToken) -> Source:
    """Return the source for a token, within its own and its owner's limits."""
    return Source(
        account_id=token.account_id,
        user_id=token.owner_id,
        token_id=token.id,
        up_to=token.per_use,
        expires_at=token.expires_at,
    )


# --- Accounts ---


def account_ids(owners: Iterable[AccountOwner]) -> dict[AccountOwner, int]:
    """Return the account ids of owners, creating missing accounts in a fixed order."""
    # With a fixed order, transactions that create the same accounts cannot deadlock.
    sorted_owners = sorted(set(owners))
    ids = {owner: _ids.get(owner) or _account(owner) for owner in sorted_owners}
    new = {owner: pk for owner, pk in ids.items() if owner not in _ids}
    if new:
        # Only after the commit, since a rolled-back account has no id.
        transaction.on_commit(partial(_remember, new))
    return ids


def _account(owner: AccountOwner) -> int:
    kind, owner_id, asset = owner
    match kind:
        case "user":
            return ledger.account_of_user(int(owner_id), asset).id
        case "agent":
            return ledger.account_of_agent(owner_id, asset).id
    return ledger.ensure_account(code=f"pool:{owner_id}:{asset}", kind="pool", asset=asset).id


def _remember(new: dict[AccountOwner, int]) -> None:
    if len(_ids) + len(new) > _MAX_IDS:
        _ids.clear()
    _ids.update(new)


def forget_accounts() -> None:
    """Forget the account ids: tests empty the ledger."""
    _ids.clear()


def pool_of(chat_id: str, asset: str) -> int:
    """Return the account of a chat's pool, creating it on first use."""
    owner = ("pool", chat_id, asset)
    return account_ids([owner])[owner]
