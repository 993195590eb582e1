"""A model of the ledger in plain numbers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class ModelHold:
    """A hold in the model."""

    id: str
    payer: int
    amount: int
    captured: int = 0
    active: bool = True


@dataclass
class ModelTransfer:
    """A transfer in the model: who gave, who got what, and the sum returned."""

    id: str
    payer: int | str
    gets: dict[int | str, int]
    returned: int = 0


@dataclass
class Model:
    """The ledger in plain numbers."""

    posted: dict[int | str, int] = field(default_factory=lambda: defaultdict(int))
    held: dict[int | str, int] = field(default_factory=lambda: defaultdict(int))
    holds: list[ModelHold] = field(default_factory=list)
    transfers: list[ModelTransfer] = field(default_factory=list)
    reported: set[int] = field(default_factory=set)

    def move(self, transfer_id: str, payer: int | str, gets: dict[int | str, int]) -> None:
        """Take from one, give to others."""
        for name, amount in gets.items():
            self.posted[payer] -= amount
            self.posted[name] += amount
        self.transfers.append(ModelTransfer(transfer_id, payer, gets))
