"""A connection for these tests."""

import pytest

from tests.uamp.connection.pairs import Pair


@pytest.fixture
def pair() -> Pair:
    return Pair()
