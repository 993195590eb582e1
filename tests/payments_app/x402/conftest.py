"""A facilitator that the server pays through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.payments_app.x402 import facilitator
from tests.payments_app.x402.payment_headers import PAY_TO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from tests.payments_app.x402.facilitator import Facilitator


@pytest.fixture
def chain(settings: Settings) -> Iterator[Facilitator]:
    """Let answers be paid on a chain, through a facilitator of the test."""
    with facilitator.running() as server:
        settings.UAMP_X402_FACILITATOR = server.url
        settings.UAMP_X402_PAY_TO = PAY_TO
        settings.UAMP_X402_SECONDS = 30
        yield server
