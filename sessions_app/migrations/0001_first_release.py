"""The tables of sessions, responses, keys and queues."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import sessions_app.models


class Migration(migrations.Migration):
    replaces = [
        ("sessions_app", "0001_initial"),
        ("sessions_app", "0002_one_time_tickets"),
        ("sessions_app", "0003_rows_obey_the_state_tables"),
        ("sessions_app", "0004_one_index_for_each_order"),
        ("sessions_app", "0005_session_ids_of_their_principal"),
        ("sessions_app", "0006_no_indexes_for_like"),
        ("sessions_app", "0007_bytes_of_pending_inputs"),
        ("sessions_app", "0008_transport_names"),
        ("sessions_app", "0009_ephemeral_sessions"),
        ("sessions_app", "0010_client_secrets"),
        ("sessions_app", "0011_webhooks"),
        ("sessions_app", "0012_http_connections"),
        ("sessions_app", "0013_responses_of_a_session"),
        ("sessions_app", "0014_who_cancelled"),
        ("sessions_app", "0015_webhook_attempts_under_way"),
        ("sessions_app", "0016_queued_turns"),
        ("sessions_app", "0017_error_cause"),
        ("sessions_app", "0018_rest_transport"),
        ("sessions_app", "0019_operator_rights"),
        ("sessions_app", "0021_credentials"),
        ("sessions_app", "0022_external_identities"),
        ("sessions_app", "0023_operators_home"),
        ("sessions_app", "0024_webhooks_of_chats"),
        ("sessions_app", "0025_envelope_transport"),
        ("sessions_app", "0026_unsent_of_a_webhook"),
        ("sessions_app", "0027_servers_of_queued_turns"),
        ("sessions_app", "0028_usage_under_way"),
        ("sessions_app", "0029_follow_ups"),
    ]

    initial = True

    dependencies = [
        ("agents_app", "0001_first_release"),
        ("auth", "__first__"),
        ("chat_app", "0001_first_release"),
    ]

    operations = [
        migrations.CreateModel(
            name="HttpConnection",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=sessions_app.models.new_connection_id,
                        max_length=32,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("principal", models.CharField(max_length=80)),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("websocket", "Websocket"),
                            ("sse", "HTTP + SSE"),
                            ("batch", "Batch"),
                            ("rest", "REST"),
                            ("delegate", "another agent"),
                            ("completions", "Chat Completions"),
                            ("responses", "Responses"),
                            ("realtime", "Realtime"),
                            ("ag-ui", "AG-UI"),
                            ("a2a", "A2A"),
                            ("acp", "ACP"),
                            ("envelope", "Signed envelope"),
                        ],
                        max_length=24,
                    ),
                ),
                ("agent", models.CharField(blank=True, max_length=256)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("seen_at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="AnswerHour",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("hour", models.DateTimeField()),
                ("agent_id", models.CharField(max_length=40)),
                ("transport", models.CharField(blank=True, max_length=24)),
                ("status", models.CharField(max_length=12)),
                ("cause", models.CharField(blank=True, max_length=60)),
                ("answers", models.PositiveIntegerField()),
                ("input_tokens", models.BigIntegerField()),
                ("output_tokens", models.BigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hour", "agent_id", "transport", "status", "cause"),
                        name="answers_of_an_hour_are_counted_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(blank=True, max_length=100)),
                ("prefix", models.CharField(max_length=16, unique=True)),
                ("sha256", models.CharField(max_length=64)),
                ("scopes", models.JSONField(blank=True, default=sessions_app.models.all_scopes)),
                ("chats", models.JSONField(blank=True, null=True)),
                ("agents", models.JSONField(blank=True, null=True)),
                ("protocols", models.JSONField(blank=True, null=True)),
                ("has_budget", models.BooleanField(db_default=False, default=False)),
                ("version", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "previous_sha256",
                    models.CharField(blank=True, db_default="", default="", max_length=64),
                ),
                ("previous_until", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_keys",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "API key",
                "permissions": [
                    ("revoke_key", "Can revoke keys of others"),
                    ("rotate_key", "Can rotate keys of others"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ChargeHour",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("hour", models.DateTimeField()),
                ("agent_id", models.CharField(blank=True, max_length=40)),
                ("protocol", models.CharField(blank=True, max_length=20)),
                ("asset", models.CharField(max_length=10)),
                ("amount", models.BigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hour", "agent_id", "protocol", "asset"),
                        name="charges_of_an_hour_are_counted_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CountedHour",
            fields=[
                ("hour", models.DateTimeField(primary_key=True, serialize=False)),
                ("is_complete", models.BooleanField(default=False)),
                ("counted_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_complete", False)),
                        fields=["hour"],
                        name="hours_to_count",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=sessions_app.models.new_session_id,
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("client_id", models.CharField(blank=True, max_length=64)),
                ("principal", models.CharField(max_length=80)),
                ("chat_scoped", models.BooleanField(default=False)),
                ("opened_seq", models.BigIntegerField(default=0)),
                ("ephemeral", models.BooleanField(db_default=False, default=False)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("idle", "idle: no connection holds it"),
                            ("active", "active: a connection holds it"),
                            ("closed", "Closed"),
                        ],
                        default="idle",
                        max_length=10,
                    ),
                ),
                ("held_by", models.CharField(blank=True, max_length=120)),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("websocket", "Websocket"),
                            ("sse", "HTTP + SSE"),
                            ("batch", "Batch"),
                            ("rest", "REST"),
                            ("delegate", "another agent"),
                            ("completions", "Chat Completions"),
                            ("responses", "Responses"),
                            ("realtime", "Realtime"),
                            ("ag-ui", "AG-UI"),
                            ("a2a", "A2A"),
                            ("acp", "ACP"),
                            ("envelope", "Signed envelope"),
                        ],
                        max_length=24,
                    ),
                ),
                ("uamp_version", models.CharField(max_length=10)),
                ("config", models.JSONField(default=dict)),
                ("client_capabilities", models.JSONField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                ("close_reason", models.CharField(blank=True, max_length=100)),
                ("payment_token_id", models.CharField(blank=True, max_length=40)),
                (
                    "agent",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="agents_app.agent",
                    ),
                ),
                (
                    "api_key",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="sessions",
                        to="sessions_app.apikey",
                    ),
                ),
                (
                    "chat",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to="chat_app.chat",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [("end_session", "Can end sessions")],
                "indexes": [
                    models.Index(
                        fields=["principal", "transport", "id"], name="sessions_of_a_principal"
                    ),
                    models.Index(fields=["-created_at", "-id"], name="session_listing"),
                    models.Index(fields=["status", "-created_at", "-id"], name="session_states"),
                    models.Index(
                        fields=["transport", "-created_at", "-id"], name="session_transports"
                    ),
                    models.Index(
                        fields=["agent", "-created_at", "-id"], name="sessions_of_an_agent"
                    ),
                    models.Index(fields=["status", "seen_at"], name="sessions_seen"),
                    models.Index(
                        condition=models.Q(("ephemeral", True)),
                        fields=["seen_at"],
                        name="ephemeral_sessions",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["idle", "active", "closed"])),
                        name="session_state_is_known",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("client_id", ""), _negated=True),
                        fields=("principal", "client_id"),
                        name="client_id_is_unique_to_its_principal",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Response",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=sessions_app.models.new_response_id,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued: no process runs it"),
                            ("in_progress", "in progress"),
                            ("waiting", "waiting for a tool, a person or a payment"),
                            ("completed", "Completed"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Failed"),
                        ],
                        default="in_progress",
                        max_length=12,
                    ),
                ),
                ("request", models.JSONField(default=dict)),
                ("text", models.TextField(blank=True)),
                ("output", models.JSONField(default=list)),
                ("usage", models.JSONField(blank=True, null=True)),
                ("usage_under_way", models.JSONField(blank=True, null=True)),
                ("error", models.JSONField(blank=True, null=True)),
                ("error_cause", models.TextField(blank=True, null=True)),
                ("process", models.CharField(blank=True, max_length=40)),
                ("fence", models.PositiveIntegerField(default=1)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("cancel_requested_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="responses",
                        to="agents_app.agent",
                    ),
                ),
                (
                    "cancel_requested_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "chat",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="responses",
                        to="chat_app.chat",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chat_app.message",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="responses",
                        to="sessions_app.session",
                    ),
                ),
            ],
            options={
                "permissions": [("cancel_response", "Can cancel responses of others")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("finished_at__isnull", True)),
                        fields=["lease_until"],
                        name="live_response_lease",
                    ),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", True)),
                        fields=["chat"],
                        name="live_response_of_chat",
                    ),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", True)),
                        fields=["session"],
                        name="live_response_of_session",
                    ),
                    models.Index(
                        fields=["session", "agent", "status", "finished_at", "created_at", "id"],
                        name="responses_of_a_session",
                    ),
                    models.Index(fields=["chat", "-created_at", "-id"], name="responses_of_a_chat"),
                    models.Index(fields=["-created_at", "-id"], name="response_listing"),
                    models.Index(fields=["status", "-created_at", "-id"], name="response_states"),
                    models.Index(
                        fields=["agent", "-created_at", "-id"], name="responses_of_an_agent"
                    ),
                    models.Index(
                        condition=models.Q(("cancel_requested_by__isnull", False)),
                        fields=["cancel_requested_by"],
                        name="responses_cancelled_by",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("finished_at__isnull", True),
                                ("status__in", ("queued", "in_progress", "waiting")),
                            ),
                            models.Q(
                                ("finished_at__isnull", False),
                                ("status__in", ("completed", "cancelled", "failed")),
                            ),
                            _connector="OR",
                        ),
                        name="an_ended_response_says_when",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="QueuedTurn",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("event_id", models.CharField(max_length=128)),
                ("sha256", models.CharField(max_length=64)),
                ("inputs", models.JSONField(default=list)),
                ("create", models.JSONField(default=dict)),
                (
                    "credential",
                    models.CharField(blank=True, db_default="", default="", max_length=40),
                ),
                ("agents", models.JSONField(blank=True, null=True)),
                ("servers", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("text", models.TextField(blank=True)),
                ("files", models.PositiveSmallIntegerField(default=0)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued: answers run in its chat"),
                            ("starting", "starting: a process sends it"),
                            ("failed", "failed: it was refused"),
                        ],
                        default="queued",
                        max_length=8,
                    ),
                ),
                ("waits", models.BooleanField(default=True)),
                ("code", models.CharField(blank=True, max_length=40)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("due_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "chat",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="queued_turns",
                        to="chat_app.chat",
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
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="queued_turns",
                        to="sessions_app.session",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "failed"), _negated=True),
                        fields=["due_at"],
                        name="queued_turns_due",
                    ),
                    models.Index(
                        condition=models.Q(("status", "failed")),
                        fields=["-id"],
                        name="queued_turns_refused",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("session", "event_id"), name="event_is_queued_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["queued", "starting", "failed"])),
                        name="queued_turn_state_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PendingInput",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("event_id", models.CharField(max_length=128)),
                ("payload", models.JSONField()),
                ("size_bytes", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pending_inputs",
                        to="sessions_app.session",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("session", "event_id"), name="input_counts_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="InboundEvent",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("event_id", models.CharField(max_length=128)),
                ("sha256", models.CharField(max_length=64)),
                ("outcome", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="inbound_events",
                        to="sessions_app.session",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("session", "event_id"), name="event_has_one_effect"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Ticket",
            fields=[
                ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("web_session", models.CharField(blank=True, max_length=40)),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("connection", "one socket or stream"),
                            ("sessions", "sessions of one agent (client secret)"),
                        ],
                        default="connection",
                        max_length=10,
                    ),
                ),
                ("agent", models.CharField(blank=True, max_length=256)),
                ("config", models.JSONField(default=dict)),
                (
                    "api_key",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sessions_app.apikey",
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
        ),
        migrations.CreateModel(
            name="ToolCall",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("call_id", models.CharField(max_length=128)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("client", "the client of the session"),
                            ("long", "a worker"),
                            ("agent", "another agent"),
                        ],
                        max_length=10,
                    ),
                ),
                ("name", models.CharField(max_length=128)),
                ("arguments", models.TextField(default="{}")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("asking", "waiting for approval"),
                            ("waiting", "Waiting"),
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                            ("unknown", "outcome unknown"),
                        ],
                        max_length=10,
                    ),
                ),
                ("result", models.TextField(blank=True)),
                ("is_error", models.BooleanField(default=False)),
                ("content_items", models.JSONField(default=list)),
                ("progress", models.JSONField(blank=True, null=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("deadline", models.DateTimeField()),
                ("asked_in", models.CharField(blank=True, max_length=40)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
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
                    "response",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_calls",
                        to="sessions_app.response",
                    ),
                ),
            ],
            options={
                "permissions": [("requeue_tool", "Can run tool calls again")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("finished_at__isnull", True)),
                        fields=["kind", "status", "lease_until"],
                        name="open_tool_calls",
                    ),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", True)),
                        fields=["asked_in"],
                        name="open_tool_calls_asked_for",
                    ),
                    models.Index(fields=["call_id"], name="tool_call_ids"),
                    models.Index(fields=["status", "-id"], name="tool_call_states"),
                    models.Index(fields=["kind", "-id"], name="tool_call_kinds"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("response", "call_id"), name="call_id_is_used_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                [
                                    "asking",
                                    "waiting",
                                    "queued",
                                    "running",
                                    "done",
                                    "failed",
                                    "cancelled",
                                    "unknown",
                                ],
                            )
                        ),
                        name="tool_call_state_is_known",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="session",
            name="parent_call",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="child",
                to="sessions_app.toolcall",
            ),
        ),
        migrations.CreateModel(
            name="UnansweredRequest",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("request_id", models.CharField(max_length=640)),
                ("response_id", models.CharField(blank=True, max_length=40)),
                ("answer", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "connection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="requests",
                        to="sessions_app.httpconnection",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="sessions_app.session",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["session"], name="requests_of_a_session")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("connection", "request_id"), name="request_is_taken_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=256)),
                ("principal", models.CharField(max_length=80)),
                ("counted_as", models.CharField(max_length=200)),
                ("format", models.CharField(max_length=40)),
                ("origin", models.CharField(max_length=300)),
                ("url", models.CharField(max_length=2048)),
                ("secrets", models.TextField(blank=True)),
                ("seen", models.CharField(blank=True, max_length=64)),
                ("types", models.JSONField(blank=True, db_default=[], default=list)),
                ("queued_seq", models.BigIntegerField(db_default=0, default=0)),
                ("sent", models.PositiveIntegerField(default=0)),
                ("look_at", models.DateTimeField(blank=True, null=True)),
                ("disabled_at", models.DateTimeField(blank=True, null=True)),
                ("disabled_reason", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "chat",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to="chat_app.chat",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to="sessions_app.response",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("chat__isnull", False)),
                        fields=["chat"],
                        name="webhooks_of_a_chat",
                    ),
                    models.Index(
                        condition=models.Q(("look_at__isnull", False)),
                        fields=["look_at"],
                        name="live_webhooks",
                    ),
                    models.Index(
                        condition=models.Q(("disabled_at__isnull", False)),
                        fields=["-disabled_at"],
                        name="disabled_webhooks",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("response", "name"), name="webhook_name_is_unique_to_its_response"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("chat__isnull", False), ("response__isnull", True)),
                            models.Q(("chat__isnull", True), ("response__isnull", False)),
                            _connector="OR",
                        ),
                        name="webhook_of_a_response_or_a_chat",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("state", models.CharField(max_length=64)),
                ("seq", models.BigIntegerField(blank=True, null=True)),
                ("body", models.TextField(blank=True)),
                (
                    "status",
                    models.CharField(
                        choices=[("queued", "Queued"), ("sent", "Sent"), ("failed", "Failed")],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("due_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("notify_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("http_status", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("error", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "webhook",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="sessions_app.webhook",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "webhook deliveries",
                "indexes": [
                    models.Index(
                        condition=models.Q(("finished_at__isnull", True)),
                        fields=["due_at"],
                        name="queued_webhook_deliveries",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("finished_at__isnull", True), ("leased_until__isnull", False)
                        ),
                        fields=["leased_until"],
                        name="webhook_deliveries_under_way",
                    ),
                    models.Index(fields=["status", "-id"], name="webhook_delivery_states"),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", True)),
                        fields=["webhook", "number"],
                        name="unsent_of_a_webhook",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("webhook", "number"), name="webhook_delivery_is_numbered"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("finished_at__isnull", True), ("status", "queued")),
                            models.Q(
                                ("finished_at__isnull", False), ("status__in", ["sent", "failed"])
                            ),
                            _connector="OR",
                        ),
                        name="an_ended_delivery_says_when",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ExternalIdentity",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("issuer", models.CharField(max_length=255)),
                ("subject", models.CharField(max_length=255)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="external_identities",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "external identities",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("issuer", "subject"), name="subject_is_one_person"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PaymentRequest",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("asked_in", models.CharField(max_length=40)),
                ("amount", models.BigIntegerField()),
                ("asset", models.CharField(max_length=10)),
                ("reason", models.CharField(max_length=40)),
                ("action", models.CharField(blank=True, max_length=10)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("paid", "Paid"),
                            ("expired", "Expired"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("hold_id", models.CharField(blank=True, max_length=40)),
                ("account_id", models.BigIntegerField(blank=True, null=True)),
                ("token_id", models.CharField(blank=True, max_length=40)),
                ("deadline", models.DateTimeField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "payer",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="payment_requests",
                        to="sessions_app.response",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("decided_at__isnull", True)),
                        fields=["asked_in"],
                        name="waiting_payments",
                    ),
                    models.Index(
                        condition=models.Q(("decided_at__isnull", True)),
                        fields=["deadline"],
                        name="payment_deadlines",
                    ),
                    models.Index(fields=["status", "-id"], name="payment_states"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("response", "number"), name="payment_is_asked_for_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("amount__gt", 0)), name="payment_is_of_something"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["waiting", "paid", "expired", "withdrawn"])
                        ),
                        name="payment_state_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FollowUp",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("message_id", models.CharField(max_length=256)),
                ("parts", models.JSONField(default=list)),
                ("digest", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "response",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="follow_ups",
                        to="sessions_app.response",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("response", "digest"), name="follow_up_once")
                ],
            },
        ),
    ]
