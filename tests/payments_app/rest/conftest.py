"""A payer, and the owner of an agent who is paid."""

from __future__ import annotations

import pytest

from tests import factories
from tests.payments_app.rest.rest_caller import Caller
from tests.payments_app.tokens.issued_tokens import rich


@pytest.fixture
def ada() -> Caller:
    """Return a person with ten dollars."""
    return Caller(rich("ada"))


@pytest.fixture
def smith() -> Caller:
    """Return the owner of an agent."""
    person = factories.user("smith")
    factories.agent("worker", owner=person)
    return Caller(person)
