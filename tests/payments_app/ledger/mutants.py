"""Ledgers with one guard taken out: the state machine has to tell each from the real one."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from payments_app.ledger import captures, expiry, holds, idempotency, plans, transfers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@dataclass(frozen=True)
class Mutant:
    """A ledger in whose `module` the text `old` is `new`."""

    module: ModuleType
    old: str
    new: str


MUTANTS = {
    "reserves more than there is": Mutant(
        holds, "if amount.amount > remaining[account.id] and", "if amount.amount < 0 and"
    ),
    "reserves the same money for many": Mutant(
        holds, "remaining[account.id] -= amount.amount", "remaining[account.id] -= 0"
    ),
    "forgets that another one of the list paid too": Mutant(
        captures,
        "legs[account_id] = (before[0] + posted, before[1] + held)",
        "legs[account_id] = (posted, held)",
    ),
    "captures again what was captured with a key": Mutant(
        captures, "elif claimed.stored_result is not None:", "elif claimed.stored_result == '':"
    ),
    "captures the same money twice": Mutant(
        plans, "captured = hold.captured + part", "captured = hold.captured"
    ),
    "forgets keys": Mutant(
        idempotency,
        "[scope, key, sha256],\n    )\n    if new:",
        "[scope, __import__('secrets').token_hex(8), sha256],\n    )\n    if new:",
    ),
    "gives back too much": Mutant(
        plans, "hold.uncaptured if release else part", "hold.amount if release else part"
    ),
    "expires without regard to captures": Mutant(
        expiry, "SELECT id, account_id, amount - captured", "SELECT id, account_id, amount"
    ),
    "refunds without end": Mutant(
        transfers, "amount + int(given_back.get(account_id, 0))", "amount"
    ),
    "takes splits that do not add up": Mutant(plans, "if total != amount:", "if not total:"),
    "credits a payment twice": Mutant(transfers, "if credited is not None:", "if credited == '':"),
}


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Put a mutant in the place of the real module, for a while."""
    source = Path(str(mutant.module.__file__)).read_text()
    assert source.count(mutant.old) == 1, "the mutant does not fit its module any more"
    real = dict(vars(mutant.module))
    code = compile(source.replace(mutant.old, mutant.new), str(mutant.module.__file__), "exec")
    try:
        exec(code, vars(mutant.module))  # noqa: S102 our own source
        yield
    finally:
        vars(mutant.module).update(real)
