"""The tables of the ledger, of payments, and the rules that no row may break."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

# What the rows may not be made to say, by anybody. The same rules on both databases: a refusal is an
# IntegrityError.

POSTGRESQL = [
    """
    CREATE FUNCTION payments_app_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '% of % is refused: the ledger is written once', TG_OP, TG_TABLE_NAME
            USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE FUNCTION payments_app_hold_rules() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF OLD.state <> 'active' THEN
            RAISE EXCEPTION 'the hold has ended: it is %', OLD.state
                USING ERRCODE = 'restrict_violation';
        ELSIF (NEW.id, NEW.account_id, NEW.amount, NEW.purpose, NEW.response_id, NEW.agent_id,
                NEW.extends_id, NEW.created_at) IS DISTINCT FROM (OLD.id, OLD.account_id,
                OLD.amount, OLD.purpose, OLD.response_id, OLD.agent_id, OLD.extends_id,
                OLD.created_at)
                OR NEW.captured < OLD.captured THEN
            RAISE EXCEPTION 'a hold is what it was made for'
                USING ERRCODE = 'restrict_violation';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE FUNCTION payments_app_entry_sum() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF (SELECT SUM(amount) FROM payments_app_entry WHERE transfer_id = NEW.transfer_id) <> 0
        THEN
            RAISE EXCEPTION 'the entries of a transfer add up to zero'
                USING ERRCODE = 'check_violation';
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE FUNCTION payments_app_transfer_rules() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NOT (
            SELECT COUNT(*) >= 2 AND SUM(entry.amount) = 0
                AND SUM(entry.amount) FILTER (WHERE entry.amount > 0) = NEW.amount
                AND bool_and(account.asset = NEW.asset)
            FROM payments_app_entry entry
            JOIN payments_app_account account ON account.id = entry.account_id
            WHERE entry.transfer_id = NEW.id
        ) THEN
            RAISE EXCEPTION 'the entries of a transfer add up to zero'
                USING ERRCODE = 'check_violation';
        END IF;
        RETURN NULL;
    END $$
    """,
    *(
        f"CREATE TRIGGER ledger_{table}_written_once BEFORE UPDATE OR DELETE"
        f" ON payments_app_{table} FOR EACH ROW EXECUTE FUNCTION payments_app_refuse()"
        for table in ("transfer", "entry")
    ),
    (
        "CREATE TRIGGER ledger_hold_kept BEFORE DELETE ON payments_app_hold"
        " FOR EACH ROW EXECUTE FUNCTION payments_app_refuse()"
    ),
    (
        "CREATE TRIGGER ledger_hold_rules BEFORE UPDATE ON payments_app_hold"
        " FOR EACH ROW EXECUTE FUNCTION payments_app_hold_rules()"
    ),
    *(
        f"CREATE TRIGGER ledger_{table}_not_emptied BEFORE TRUNCATE"
        f" ON payments_app_{table} FOR EACH STATEMENT EXECUTE FUNCTION payments_app_refuse()"
        for table in ("transfer", "entry", "hold")
    ),
    (
        "CREATE CONSTRAINT TRIGGER ledger_entry_sum AFTER INSERT ON payments_app_entry"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION payments_app_entry_sum()"
    ),
    (
        "CREATE CONSTRAINT TRIGGER ledger_transfer_rules AFTER INSERT ON payments_app_transfer"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION payments_app_transfer_rules()"
    ),
]

# SQLite checks at the statement, not at the commit. Entries come first (their reference to the
# transfer is deferred), the transfer last: when it arrives, its entries must add up, and after that
# it gets no more of them. INSERT OR REPLACE deletes without a delete trigger: an id that is there
# is refused.
SQLITE = [
    *(
        f"CREATE TRIGGER ledger_{table}_{verb.lower()} BEFORE {verb} ON payments_app_{table}"
        f" BEGIN SELECT RAISE(ABORT, '{verb} of payments_app_{table} is refused:"
        " the ledger is written once'); END"
        for table, verb in (
            ("transfer", "UPDATE"),
            ("transfer", "DELETE"),
            ("entry", "UPDATE"),
            ("entry", "DELETE"),
            ("hold", "DELETE"),
        )
    ),
    *(
        f"CREATE TRIGGER ledger_{table}_replace BEFORE INSERT ON payments_app_{table}"  # noqa: S608 constants
        f" WHEN EXISTS (SELECT 1 FROM payments_app_{table} WHERE id = NEW.id)"
        f" BEGIN SELECT RAISE(ABORT, 'payments_app_{table} has this id'); END"
        for table in ("transfer", "entry", "hold")
    ),
    """
    CREATE TRIGGER ledger_hold_rules BEFORE UPDATE ON payments_app_hold
    WHEN OLD.state <> 'active' OR NEW.captured < OLD.captured
        OR (NEW.id, NEW.account_id, NEW.amount, NEW.purpose, NEW.response_id, NEW.agent_id,
            NEW.created_at) <> (OLD.id, OLD.account_id, OLD.amount, OLD.purpose, OLD.response_id,
            OLD.agent_id, OLD.created_at)
        OR NEW.extends_id IS NOT OLD.extends_id
    BEGIN SELECT RAISE(ABORT, 'a hold is what it was made for, and has one end'); END
    """,
    """
    CREATE TRIGGER ledger_entry_late BEFORE INSERT ON payments_app_entry
    WHEN EXISTS (SELECT 1 FROM payments_app_transfer WHERE id = NEW.transfer_id)
    BEGIN SELECT RAISE(ABORT, 'a transfer gets no more entries'); END
    """,
    """
    CREATE TRIGGER ledger_transfer_rules BEFORE INSERT ON payments_app_transfer
    WHEN (
        SELECT COUNT(*) < 2 OR SUM(entry.amount) <> 0
            OR SUM(MAX(entry.amount, 0)) <> NEW.amount OR MIN(account.asset = NEW.asset) = 0
        FROM payments_app_entry entry
        JOIN payments_app_account account ON account.id = entry.account_id
        WHERE entry.transfer_id = NEW.id
    )
    BEGIN SELECT RAISE(ABORT, 'the entries of a transfer add up to zero'); END
    """,
]


def make_rules(_apps: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
    statements = POSTGRESQL if schema_editor.connection.vendor == "postgresql" else SQLITE
    for statement in statements:
        schema_editor.execute(statement, params=None)


def drop_rules(_apps: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for name in ("refuse", "hold_rules", "entry_sum", "transfer_rules"):
            schema_editor.execute(f"DROP FUNCTION payments_app_{name}() CASCADE", params=None)
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'ledger_%'"
        )
        triggers = [name for (name,) in cursor.fetchall()]
    for name in triggers:
        schema_editor.execute(f"DROP TRIGGER {name}", params=None)


class Migration(migrations.Migration):
    replaces = [
        ("payments_app", "0001_initial"),
        ("payments_app", "0002_audit_points"),
        ("payments_app", "0003_token_limits"),
        ("payments_app", "0004_admin_lists"),
        ("payments_app", "0005_budgets_of_chats"),
        ("payments_app", "0006_credentials"),
        ("payments_app", "0007_operators_home"),
    ]

    initial = True

    dependencies = [
        ("auth", "__first__"),
    ]

    operations = [
        migrations.CreateModel(
            name="Account",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("code", models.CharField(max_length=120, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("external", "outside world, by provider"),
                            ("user", "person"),
                            ("agent", "Agent"),
                            ("platform", "this server"),
                            ("suspense", "other side of adjustments"),
                            ("pool", "shared by a chat"),
                            ("token", "payment token"),
                        ],
                        max_length=10,
                    ),
                ),
                ("agent_id", models.CharField(blank=True, db_index=True, max_length=40)),
                ("asset", models.CharField(max_length=10)),
                ("posted", models.BigIntegerField(db_default=0, default=0)),
                ("held", models.BigIntegerField(db_default=0, default=0)),
                (
                    "overdraft",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="May fall below zero: mirrors of the outside.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [("adjust_account", "Can adjust the balance of an account")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("held__gte", 0)), name="account_held_is_not_negative"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("overdraft", True), ("posted__gte", models.F("held")), _connector="OR"
                        ),
                        name="account_is_not_overdrawn",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="VerifiedAccount",
            fields=[
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="payments_app.account",
                    ),
                ),
                ("entry_id", models.BigIntegerField()),
                ("posted", models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="Approval",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("agent_id", models.CharField(max_length=40)),
                ("asset", models.CharField(max_length=10)),
                ("up_to", models.BigIntegerField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "agent_id"), name="agent_is_approved_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("up_to__gt", 0)), name="approval_is_of_something"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Hold",
            fields=[
                ("id", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("amount", models.BigIntegerField()),
                ("captured", models.BigIntegerField(db_default=0, default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("active", "Active"),
                            ("settled", "Settled"),
                            ("released", "Released"),
                            ("expired", "Expired"),
                        ],
                        db_default="active",
                        default="active",
                        max_length=10,
                    ),
                ),
                ("purpose", models.CharField(blank=True, max_length=100)),
                ("response_id", models.CharField(blank=True, max_length=40)),
                ("agent_id", models.CharField(blank=True, max_length=40)),
                ("chat_id", models.CharField(blank=True, max_length=40, null=True)),
                ("credential", models.CharField(blank=True, max_length=40, null=True)),
                ("expires_at", models.DateTimeField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="holds",
                        to="payments_app.account",
                    ),
                ),
                (
                    "extends",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="payments_app.hold",
                    ),
                ),
            ],
            options={
                "permissions": [("void_hold", "Can void a hold")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "active")),
                        fields=["expires_at"],
                        name="hold_expiry",
                    ),
                    models.Index(fields=["-created_at", "-id"], name="hold_listing"),
                    models.Index(
                        condition=models.Q(("response_id", ""), _negated=True),
                        fields=["response_id"],
                        name="hold_response",
                    ),
                    models.Index(
                        condition=models.Q(("state", "active")),
                        fields=["chat_id"],
                        name="holds_of_a_chat",
                    ),
                    models.Index(
                        condition=models.Q(("credential__isnull", False)),
                        fields=["credential", "state"],
                        name="holds_of_a_credential",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("amount__gt", 0)), name="hold_is_of_something"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("captured__gte", 0), ("captured__lte", models.F("amount"))
                        ),
                        name="hold_captures_at_most_its_amount",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Idempotency",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("scope", models.CharField(blank=True, max_length=100)),
                ("key", models.CharField(max_length=255)),
                ("sha256", models.CharField(max_length=64)),
                ("outcome", models.JSONField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "verbose_name": "idempotency key",
                "constraints": [
                    models.UniqueConstraint(fields=("scope", "key"), name="key_is_used_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="LedgerState",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False),
                ),
                ("frozen_at", models.DateTimeField(blank=True, null=True)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("checked_at", models.DateTimeField(blank=True, null=True)),
                ("report", models.JSONField(blank=True, default=list)),
                ("whole_at", models.DateTimeField(blank=True, null=True)),
                ("whole_due_at", models.DateTimeField(blank=True, null=True)),
                (
                    "whole_report",
                    models.JSONField(
                        blank=True, db_default=models.Value([], models.JSONField()), default=list
                    ),
                ),
                ("verified_key", models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                "verbose_name": "ledger state",
                "verbose_name_plural": "ledger state",
                "permissions": [("unfreeze_ledger", "Can allow payouts again")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="ledger_has_one_state"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PaymentToken",
            fields=[
                ("id", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("depth", models.PositiveSmallIntegerField(default=0)),
                ("name", models.CharField(blank=True, max_length=100)),
                ("form", models.CharField(max_length=10)),
                ("salt", models.CharField(blank=True, max_length=64)),
                ("sha256", models.CharField(blank=True, max_length=64)),
                ("audience", models.JSONField(blank=True, default=list)),
                ("per_use_limit", models.BigIntegerField(blank=True, null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="token",
                        to="payments_app.account",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="payments_app.paymenttoken",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("closed_at__isnull", True)),
                        fields=["expires_at"],
                        name="token_to_close",
                    ),
                    models.Index(fields=["-created_at", "-id"], name="token_listing"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("sha256", ""), _negated=True),
                        fields=("sha256",),
                        name="secret_opens_one_token",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("depth__lte", 5)), name="token_is_passed_on_five_times"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SpendingLimit",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "period",
                    models.CharField(
                        choices=[("day", "Day"), ("week", "Week"), ("month", "Month")], max_length=5
                    ),
                ),
                ("agent_id", models.CharField(blank=True, max_length=40)),
                (
                    "credential",
                    models.CharField(blank=True, db_default="", default="", max_length=40),
                ),
                ("asset", models.CharField(max_length=10)),
                ("amount", models.BigIntegerField()),
                (
                    "token",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="limits",
                        to="payments_app.paymenttoken",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("credential", ""), ("token__isnull", True)),
                        fields=("user", "period", "agent_id", "asset"),
                        name="limit_is_set_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("credential", ""), _negated=True),
                        fields=("credential", "asset"),
                        name="credential_has_one_budget",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("token__isnull", False)),
                        fields=("token", "period"),
                        name="token_limit_is_set_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("token__isnull", True), ("agent_id", ""), _connector="OR"
                        ),
                        name="token_limit_is_on_all",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("amount__gte", 0)), name="limit_is_not_negative"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TopUpRequest",
            fields=[
                ("id", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("provider", models.CharField(max_length=40)),
                ("amount", models.BigIntegerField()),
                ("asset", models.CharField(max_length=10)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("credited", "Credited"),
                            ("refused", "Refused"),
                        ],
                        db_default="open",
                        default="open",
                        max_length=10,
                    ),
                ),
                (
                    "reference",
                    models.CharField(
                        blank=True, help_text="The provider's own id.", max_length=200
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        blank=True, help_text="Where the person pays.", max_length=2000
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="payments_app.account",
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [("grant_topup", "Can credit or refuse a request for a top-up")],
                "indexes": [
                    models.Index(fields=["user", "-created_at"], name="top_ups_of_a_person"),
                    models.Index(fields=["-created_at", "-id"], name="top_up_listing"),
                    models.Index(
                        condition=models.Q(("state", "open")),
                        fields=["created_at"],
                        name="open_top_ups",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("amount__gt", 0)), name="top_up_is_of_something"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Transfer",
            fields=[
                ("id", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=30)),
                ("asset", models.CharField(max_length=10)),
                ("amount", models.BigIntegerField()),
                ("memo", models.CharField(blank=True, max_length=500)),
                ("response_id", models.CharField(blank=True, max_length=40)),
                ("chat_id", models.CharField(blank=True, max_length=40)),
                ("agent_id", models.CharField(blank=True, max_length=40)),
                ("protocol", models.CharField(blank=True, max_length=20)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), db_index=True
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "hold",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="transfers",
                        to="payments_app.hold",
                    ),
                ),
                (
                    "reverses",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reversals",
                        to="payments_app.transfer",
                    ),
                ),
            ],
            options={
                "permissions": [("refund_transfer", "Can refund a transfer")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("response_id", ""), _negated=True),
                        fields=["response_id"],
                        name="transfer_response",
                    ),
                    models.Index(
                        condition=models.Q(("chat_id", ""), _negated=True),
                        fields=["chat_id", "agent_id", "created_at"],
                        name="transfers_of_a_chat",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("amount__gt", 0)), name="transfer_is_of_something"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Receipt",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("provider", models.CharField(max_length=40)),
                ("external_id", models.CharField(max_length=200)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("received", "Received"),
                            ("verified", "Verified"),
                            ("submitted", "Submitted"),
                            ("confirmed", "Confirmed"),
                            ("failed", "Failed"),
                        ],
                        default="received",
                        max_length=10,
                    ),
                ),
                ("amount", models.BigIntegerField()),
                ("asset", models.CharField(max_length=10)),
                (
                    "payload",
                    models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="receipts",
                        to="payments_app.account",
                    ),
                ),
                (
                    "transfer",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="receipts",
                        to="payments_app.transfer",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("provider", "external_id"), name="receipt_is_told_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("amount__gt", 0)), name="receipt_is_of_something"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "confirmed"), ("transfer__isnull", False)),
                            models.Q(
                                models.Q(("state", "confirmed"), _negated=True),
                                ("transfer__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="receipt_is_credited_when_confirmed",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("amount", models.BigIntegerField()),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="payments_app.account",
                    ),
                ),
                (
                    "transfer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="payments_app.transfer",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "entries",
                "indexes": [models.Index(fields=["account", "id"], name="entry_statement")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("amount", 0), _negated=True),
                        name="entry_is_of_something",
                    ),
                    models.UniqueConstraint(
                        fields=("transfer", "account"), name="account_is_once_in_a_transfer"
                    ),
                ],
            },
        ),
        migrations.RunPython(make_rules, drop_rules),
    ]
