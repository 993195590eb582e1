"""The rows are written once for all tests of this folder, in a transaction that is rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from tests.databases import vacuum
from tests.growth.rows import fill_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import DjangoDbBlocker

    from tests.growth.bulk_rows import FilledTables


@pytest.fixture(scope="package")
def mass(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[FilledTables]:
    """Write 100,000 rows of everything, and let the database be used until they are gone."""
    with django_db_blocker.unblock():
        with transaction.atomic():
            yield fill_tables()
            transaction.set_rollback(True)
        vacuum()
        connection.close()


@pytest.fixture
def _django_db_helper(mass: FilledTables) -> Iterator[None]:
    """Take back what one test wrote.

    In the place of pytest-django's own, which would check every foreign key of all the rows after
    each test.
    """
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def filled(mass: FilledTables, _django_db_helper: None) -> FilledTables:
    """Return the rows that are asked for by name."""
    return mass
