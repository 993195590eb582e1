"""Invariants of the money after every kill: each answer is paid once, and nothing stays held.

Every agent of the matrix has a price, which its asker allowed it to take.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.faults.kill_checks import Row, State
    from tests.faults.kill_servers import ServerGroup

PRICES: Final[dict[str, Any]] = {
    "per_answer": "0.01",
    "tools": {"tally": "0.002", "send_once": "0.003"},
}
MONEY: Final = "1000"
"""What the asker has at first, in dollars."""

_UNIT: Final = Decimal(10) ** -9


class Ledger:
    """The rows of the ledger, read at one moment after everything has settled."""

    def __init__(self, group: ServerGroup) -> None:
        columns = "id, code, kind, posted, held"
        self.accounts = {row["id"]: row for row in group.rows("payments_app_account", columns)}
        self.holds = group.rows(
            "payments_app_hold", "id, account_id, response_id, amount, captured, state"
        )
        self.transfers = group.rows("payments_app_transfer", "id, hold_id, response_id, amount")
        self.entries = group.rows("payments_app_entry", "transfer_id, account_id, amount")


def check_money(group: ServerGroup, state: State) -> list[str]:
    """Return the faults of the ledger, and its differences from the costs of the answers."""
    ledger = Ledger(group)
    return _check_books(ledger) + [
        line for row in state.responses.values() for line in _check_answer(ledger, state, row)
    ]


def _check_books(ledger: Ledger) -> list[str]:
    wrong = []
    sums: Counter[str] = Counter()
    posted: Counter[int] = Counter()
    held_amounts: Counter[int] = Counter()
    for entry in ledger.entries:
        sums[entry["transfer_id"]] += entry["amount"]
        posted[entry["account_id"]] += entry["amount"]
    for hold in ledger.holds:
        if hold["state"] == "active":
            held_amounts[hold["account_id"]] += hold["amount"] - hold["captured"]
    wrong += [f"transfer {key} is off by {total}" for key, total in sums.items() if total]
    for pk, account in ledger.accounts.items():
        if (account["posted"], account["held"]) != (posted[pk], held_amounts[pk]):
            wrong.append(
                f"{account['code']} says {account}, its rows {posted[pk]}, {held_amounts[pk]}"
            )
        if account["kind"] == "user" and account["posted"] < 0:
            wrong.append(f"{account['code']} is overdrawn")
    return wrong


def _check_answer(ledger: Ledger, state: State, row: Row) -> list[str]:
    """Return the faults in the payment of one answer that has ended."""
    response_id = row["id"]
    paid = [transfer for transfer in ledger.transfers if transfer["response_id"] == response_id]
    open_holds = [
        hold["id"]
        for hold in ledger.holds
        if hold["response_id"] == response_id and hold["state"] == "active"
    ]
    wrong = [f"hold {pk} of {response_id} ({row['status']}) is still there" for pk in open_holds]
    # What was reserved in several pieces is taken from each of them, once.
    times_taken = Counter(transfer["hold_id"] for transfer in paid)
    wrong += [
        f"hold {pk} of {response_id} gave {n} times" for pk, n in times_taken.items() if n > 1
    ]
    charged = sum((transfer["amount"] for transfer in paid), 0) * _UNIT
    cost = ((row["usage"] or {}).get("cost") or {}).get("total_cost", 0)
    if charged != Decimal(str(cost)):
        wrong.append(f"{response_id} ({row['status']}) says it cost {cost}, paid was {charged}")
    if row["status"] == "completed" and charged != _price(state, response_id):
        wrong.append(f"{response_id} cost {charged}, due is {_price(state, response_id)}")
    return wrong


def _price(state: State, response_id: str) -> Decimal:
    """Return the cost of a completed answer: its price, and its tools that did not fail."""
    tools = [call for call in state.calls_of(response_id) if not call["is_error"]]
    prices = (Decimal(PRICES["tools"].get(call["name"], "0")) for call in tools)
    return Decimal(PRICES["per_answer"]) + sum(prices, Decimal(0))
