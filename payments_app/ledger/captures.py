"""Capturing: a hold pays for what was used, and the rest is released.

The holds of one response, and a hold with its extensions, act as one: the oldest pays first. All
requests are claimed, then locked, then planned (`plans`), then written together. The state decides,
not the clock: a hold past its time that has not expired yet can still be captured, because the work
was done.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias, Unpack

from django.db import transaction

from payments_app.ledger import balances, entries, idempotency, sql
from payments_app.ledger.accounts import fee_code, lock_with_fees
from payments_app.ledger.outcomes import (
    About,
    AboutFields,
    AnswerRuns,
    CaptureOutcome,
    IdempotencyConflict,
    LedgerError,
    OwnMoney,
    Split,
)
from payments_app.ledger.own_money import refuse_own
from payments_app.ledger.plans import Capture, LockedHold, Plan, planned
from payments_app.models import Hold
from payments_app.money import AssetMismatch, InvalidAmount, Money

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from payments_app.ledger.balances import LockedAccount

Refusal: TypeAlias = LedgerError | InvalidAmount | AssetMismatch

_running: Final[list[Callable[[str], bool]]] = []


def running_known_by(runs: Callable[[str], bool]) -> None:
    """Register the function that says whether a response has not ended."""
    _running.append(runs)


def capture(
    *,
    key: str,
    hold_id: str,
    amount: Money,
    splits: Sequence[Split],
    kind: str = "charge",
    release: bool = False,
    scope: str = "",
    **about: Unpack[AboutFields],
) -> CaptureOutcome:
    """Pay an amount of a hold to the splits; a hold may be captured several times.

    With `release` the rest is released and the hold ends, and the amount may be zero. The transfer
    takes its purpose and response from the hold unless `about` overrides them. Raises UnknownHold,
    HoldNotActive, OverCapture (with what is left), SplitMismatch, SameAccount, AssetMismatch,
    UnknownAccount, InvalidAmount, IdempotencyConflict.
    """
    return _outcome_of(
        Capture(
            key=key,
            hold_id=hold_id,
            amount=amount,
            splits=splits,
            kind=kind,
            release=release,
            scope=scope,
            about=About(**about),
        )
    )


def void(*, key: str, hold_id: str, scope: str = "", by: int | None = None) -> CaptureOutcome:
    """Release what is left of a hold and its extensions; `by` is the operator who decided it.

    An operator cancels an answer that runs, which pays for what was delivered and releases the
    rest. Raises OwnMoney, AnswerRuns, UnknownHold, HoldNotActive, IdempotencyConflict.
    """
    if by is not None:
        _check_decides(hold_id, by)
    return _outcome_of(Capture(key=key, hold_id=hold_id, kind="void", scope=scope, release=True))


def is_running(response_id: str) -> bool:
    """Return whether the answer of a hold is running; "" has none."""
    return bool(response_id) and any(runs(response_id) for runs in _running)


def _check_decides(hold_id: str, by: int) -> None:
    """Raise OwnMoney or AnswerRuns if an operator may not void a hold."""
    hold = Hold.objects.filter(pk=hold_id).first()
    if hold is None:
        return
    refuse_own([hold.account_id], by)
    if hold.asker_id == by:
        raise OwnMoney("This hold pays for your own answer: another operator has to decide.")
    if is_running(hold.response_id):
        raise AnswerRuns("The answer is still running. Cancel it to release the unused amount.")


def _outcome_of(request: Capture) -> CaptureOutcome:
    with transaction.atomic():
        answer = capture_many([request])[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def lock(where: str, params: Sequence[str]) -> list[LockedHold]:
    """Lock the holds that match a condition and return them, the oldest first."""
    return [
        LockedHold(*row)
        for row in sql.rows(
            "SELECT id, account_id, amount, captured, state, purpose, response_id, extends_id,"  # noqa: S608 constants
            " agent_id"
            f" FROM payments_app_hold WHERE {where} ORDER BY created_at, id{sql.row_lock()}",
            params,
        )
    ]


# --- Many ---


def capture_many(requests: Sequence[Capture]) -> list[CaptureOutcome | Refusal]:
    """Capture each in one transaction, batching the statements; answers keep the order of requests.

    A refusal is returned in its place and takes nothing, without affecting the others. Each must
    concern different holds: two for one hold or response are a ValueError.
    """
    if len({request.group for request in requests}) < len(requests):
        raise ValueError("A hold or response is captured once in a list.")
    answers: dict[int, CaptureOutcome | Refusal] = {}
    mine: dict[int, idempotency.ClaimedKey] = {}
    with transaction.atomic():
        for place, claimed in enumerate(
            idempotency.claim_many([_question(request) for request in requests])
        ):
            if isinstance(claimed, IdempotencyConflict):
                answers[place] = claimed
            elif claimed.stored_result is not None:
                answers[place] = idempotency.replay(claimed.stored_result, CaptureOutcome)
            else:
                mine[place] = claimed
        done = _capture({place: requests[place] for place in mine})
        by_id = {mine[place].id: answer for place, answer in done.items()}
        idempotency.record_many({pk: a for pk, a in by_id.items() if isinstance(a, CaptureOutcome)})
        # A refusal has written nothing but its key.
        idempotency.release_many(
            [pk for pk, a in by_id.items() if not isinstance(a, CaptureOutcome)]
        )
    answers |= done
    return [answers[place] for place in range(len(requests))]


def _question(request: Capture) -> idempotency.KeyedRequest:
    parts = [(split.account_id, split.amount) for split in request.splits]
    terms = ("capture", request.group, request.amount, parts, request.kind, request.release)
    return idempotency.KeyedRequest(scope=request.scope, key=request.key, request=terms)


def _capture(requests: Mapping[int, Capture]) -> dict[int, CaptureOutcome | Refusal]:
    """Plan each capture, then write them all together; the answers are keyed like `requests`."""
    if not requests:
        return {}
    holds = _lock_groups([request.group for request in requests.values()])
    accounts, by_code = _lock_accounts(requests.values(), holds)
    answers: dict[int, CaptureOutcome | Refusal] = {}
    plans: dict[int, Plan] = {}
    for place, request in requests.items():
        try:
            plans[place] = planned(request, holds[request.group], accounts, by_code)
        except (LedgerError, InvalidAmount, AssetMismatch) as error:
            answers[place] = error
    legs = _legs(plans.values())
    ids = iter(_write(list(plans.values()), legs, accounts))
    for place, plan in plans.items():
        payer = accounts[plan.payer_id]
        posted, held = legs.get(payer.id, (0, 0))
        answers[place] = replace(
            plan.outcome,
            transfer_ids=tuple(islice(ids, len(plan.transfers))),
            available=Money(payer.posted + posted - payer.held - held, payer.asset),
        )
    return answers


def _lock_groups(groups: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[LockedHold]]:
    """Lock the holds of each group, which act as one, the oldest first."""
    by_group: dict[tuple[str, str], list[LockedHold]] = {group: [] for group in groups}
    firsts = [name for kind, name in by_group if kind == "hold"]
    responses = [name for kind, name in by_group if kind == "response"]
    where = []
    if firsts:
        marks = ", ".join(["%s"] * len(firsts))
        where.append(f"id IN ({marks}) OR extends_id IN ({marks})")
    if responses:
        marks = ", ".join(["%s"] * len(responses))
        where.append(f"(response_id IN ({marks}) AND response_id <> '')")
    for hold in lock(" OR ".join(where), [*firsts, *firsts, *responses]):
        for group in {("hold", hold.id), ("hold", hold.extends_id), ("response", hold.response_id)}:
            if group in by_group:
                by_group[group].append(hold)
    held = [hold.id for group in by_group.values() for hold in group]
    if len(set(held)) < len(held):
        raise ValueError("A hold is captured once in a list.")
    return by_group


def _lock_accounts(
    requests: Iterable[Capture], holds: Mapping[tuple[str, str], Sequence[LockedHold]]
) -> tuple[Mapping[int, balances.LockedAccount], Mapping[str, int]]:
    """Lock the paying and receiving accounts; return those found, and fee shards by code."""
    ids = {hold.account_id for group in holds.values() for hold in group}
    codes: dict[str, str] = {}
    for request in requests:
        ids |= {split.account_id for split in request.splits if split.account_id is not None}
        if request.amount is not None and any(split.account_id is None for split in request.splits):
            codes[fee_code(request.key, request.amount.asset)] = request.amount.asset
    return lock_with_fees(ids, codes)


def _legs(plans: Iterable[Plan]) -> dict[int, tuple[int, int]]:
    """Return the total movements of accounts in all plans, as (posted, held)."""
    legs: dict[int, tuple[int, int]] = {}
    for plan in plans:
        for account_id, (posted, held) in plan.legs.items():
            before = legs.get(account_id, (0, 0))
            legs[account_id] = (before[0] + posted, before[1] + held)
    return legs


def _write(
    plans: Sequence[Plan],
    legs: Mapping[int, tuple[int, int]],
    accounts: Mapping[int, LockedAccount],
) -> list[str]:
    """Write planned captures, and return the ids of their transfers in order."""
    ended = {pk: values for plan in plans for pk, values in plan.holds.items()}
    if ended:
        sql.run(
            "UPDATE payments_app_hold SET captured = ended.column2, state = ended.column3,"  # noqa: S608 placeholders only
            f" ended_at = CASE WHEN ended.column3 <> 'active' THEN {sql.now_sql()} END"
            f" FROM (VALUES {', '.join(['(%s, %s, %s)'] * len(ended))}) AS ended"
            " WHERE payments_app_hold.id = ended.column1",
            [value for pk, values in ended.items() for value in (pk, *values)],
        )
    if legs:
        balances.change(legs, accounts)
    transfers = [transfer for plan in plans for transfer in plan.transfers]
    return entries.insert(transfers) if transfers else []
