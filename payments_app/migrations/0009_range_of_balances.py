from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

LARGEST = 10**18 - 1

# Triggers and not a CHECK: a balance that is already out of range must not stop the migration. The
# audit finds it. Only a change of the balance itself is refused, so that holds on it still end.
POSTGRESQL = [
    """
    CREATE FUNCTION payments_app_balance_range() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the balance of % would have more than 18 digits', NEW.code
            USING ERRCODE = 'check_violation';
    END $$
    """,
    *(
        f"CREATE TRIGGER ledger_{column}_range_{verb.lower()} BEFORE {verb}"
        f" ON payments_app_account FOR EACH ROW WHEN ({changed}"
        f" NEW.{column} NOT BETWEEN -{LARGEST} AND {LARGEST})"
        " EXECUTE FUNCTION payments_app_balance_range()"
        for column in ("posted", "held")
        for verb, changed in (
            ("INSERT", ""),
            ("UPDATE", f"NEW.{column} <> OLD.{column} AND"),
        )
    ),
]
# SQLite makes a float of a sum that leaves 64 bits.
SQLITE = [
    f"CREATE TRIGGER ledger_{column}_range_{verb.lower()} AFTER {verb} ON payments_app_account"
    f" WHEN {changed} (typeof(NEW.{column}) <> 'integer'"
    f" OR NEW.{column} NOT BETWEEN -{LARGEST} AND {LARGEST})"
    " BEGIN SELECT RAISE(ABORT, 'the balance of an account would have more than 18 digits'); END"
    for column in ("posted", "held")
    for verb, changed in (("INSERT", ""), ("UPDATE", f"NEW.{column} <> OLD.{column} AND"))
]


def make_rules(_apps: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
    statements = POSTGRESQL if schema_editor.connection.vendor == "postgresql" else SQLITE
    for statement in statements:
        schema_editor.execute(statement, params=None)


def drop_rules(_apps: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION payments_app_balance_range() CASCADE", params=None)
        return
    for column in ("posted", "held"):
        for verb in ("insert", "update"):
            schema_editor.execute(f"DROP TRIGGER ledger_{column}_range_{verb}", params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("payments_app", "0008_ends_and_kinds"),
    ]

    operations = [migrations.RunPython(make_rules, drop_rules)]
