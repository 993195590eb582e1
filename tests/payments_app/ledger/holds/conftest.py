"""The audit after every test of holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from payments_app import services

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def sound_ledger() -> Iterator[None]:
    """After every test the whole ledger is true."""
    yield
    assert services.audit().mismatches == []
