"""Migrations: none missing, one leaf per application, no imports of code that will change."""

import ast
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tests.databases import let_triggers_be_passed

ROOT = Path(__file__).parent.parent
APPS = ("agents_app", "chat_app", "payments_app", "sessions_app", "signing_app", "federation_app")


@pytest.mark.django_db
def test_no_model_has_changed_without_a_migration() -> None:
    out = StringIO()
    call_command("makemigrations", dry_run=True, verbosity=1, stdout=out)

    assert out.getvalue().strip() == "No changes detected"


def test_every_application_has_one_leaf() -> None:
    loader = MigrationLoader(None)

    assert [len(loader.graph.leaf_nodes(app)) for app in APPS] == [1] * len(APPS)


@pytest.mark.parametrize("app", APPS)
def test_migrations_import_only_their_own_models(app: str) -> None:
    for path in (ROOT / app / "migrations").glob("0*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            ours = {name for name in names if name.split(".")[0].endswith(("_app", "_project"))}
            assert ours <= {f"{app}.models"}, path


@pytest.mark.django_db
def test_a_database_from_before_the_first_release_needs_no_migration() -> None:
    loader = MigrationLoader(connection)
    rows = MigrationRecorder(connection).migration_qs
    replacing = {key: node for key, node in loader.disk_migrations.items() if node.replaces}
    assert {app for app, _ in replacing} == {
        "agents_app",
        "chat_app",
        "payments_app",
        "sessions_app",
    }
    for (app, name), node in replacing.items():
        rows.filter(app=app, name=name).delete()
        rows.bulk_create(rows.model(app=app, name=former) for app, former in node.replaces)

    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


@pytest.mark.django_db(transaction=True)
# If interrupted, it leaves the worker's database without tables for all later tests.
@pytest.mark.timeout(600)
@pytest.mark.long
def test_the_migrations_can_be_taken_back_and_applied_again() -> None:
    executor = MigrationExecutor(connection)
    leaves = executor.loader.graph.leaf_nodes()
    for app in ("sessions_app", "chat_app", "payments_app", "agents_app"):
        executor = MigrationExecutor(connection)
        executor.migrate([(app, None)])
    executor = MigrationExecutor(connection)
    executor.migrate(leaves)

    executor = MigrationExecutor(connection)
    assert executor.migration_plan(leaves) == []
    # Later tests need what is created after migrations: the search index.
    call_command("migrate", verbosity=0)
    let_triggers_be_passed()
