"""An agent as foreign protocols announce it, as a model or on a card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uamp


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedAgent:
    """An agent that a caller may use; `created` is in Unix seconds."""

    name: str
    description: str
    created: int
    owned_by: str
    capabilities: uamp.Capabilities
