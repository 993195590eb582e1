"""The tables of agents and of what connects them."""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import agents_app.models


class Migration(migrations.Migration):
    replaces = [
        ("agents_app", "0001_initial"),
        ("agents_app", "0002_sponsorships"),
        ("agents_app", "0003_who_may_use_a_public_agent"),
        ("agents_app", "0004_models_that_speak"),
        ("agents_app", "0005_remote_agents"),
        ("agents_app", "0006_connected_agents"),
        ("agents_app", "0007_remote_protocols"),
        ("agents_app", "0008_probes"),
        ("agents_app", "0009_envelope_agents"),
    ]

    initial = True

    dependencies = [
        ("auth", "__first__"),
    ]

    operations = [
        migrations.CreateModel(
            name="Checkpoint",
            fields=[
                ("response_id", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("state", models.JSONField()),
                ("output", models.JSONField(default=list)),
                ("step", models.PositiveIntegerField()),
                ("version", models.CharField(max_length=20)),
                ("fence", models.PositiveIntegerField()),
                ("updated_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="ProcessLease",
            fields=[
                ("id", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("lease_until", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Agent",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=agents_app.models.new_agent_id,
                        editable=False,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="What people write after the @. Upper and lower case are the same.",
                        max_length=64,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?)\\Z",
                                "Use letters, digits and . _ - only, and no dot at the start or the end.",
                            )
                        ],
                    ),
                ),
                (
                    "description",
                    models.TextField(blank=True, help_text="Shown to people who choose an agent."),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("hosted", "Hosted"),
                            ("remote", "remote (called by URL)"),
                            ("connected", "connected (dials in)"),
                        ],
                        default="hosted",
                        max_length=10,
                    ),
                ),
                (
                    "provider",
                    models.CharField(
                        choices=[
                            ("scripted", "scripted (no model)"),
                            ("openai_compat", "OpenAI-compatible server"),
                            ("openai_realtime", "OpenAI Realtime (listens and speaks)"),
                            ("anthropic", "Anthropic"),
                            ("google", "Google Gemini"),
                        ],
                        default="scripted",
                        max_length=20,
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True,
                        help_text="The provider's name of the model; of a remote agent, its name over there.",
                        max_length=200,
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        blank=True,
                        help_text="Of a remote agent: where it is called, beginning with https://.",
                        max_length=2000,
                        verbose_name="address",
                    ),
                ),
                (
                    "protocol",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("uamp", "UAMP (WebSocket)"),
                            ("uamp_http", "UAMP (HTTP)"),
                            ("completions", "OpenAI Chat Completions"),
                            ("responses", "OpenAI Responses"),
                            ("a2a", "A2A 1.0"),
                            ("a2a_03", "A2A 0.3"),
                            ("ag_ui", "AG-UI"),
                            ("acp", "Agent Client Protocol (WebSocket)"),
                            ("envelope", "Signed envelope (WebSocket)"),
                            ("envelope_http", "Signed envelope (HTTP)"),
                            ("envelope_grpc", "Signed envelope (gRPC)"),
                        ],
                        help_text="Of a remote agent: how it is called.",
                        max_length=20,
                    ),
                ),
                ("secret", models.TextField(blank=True, editable=False)),
                (
                    "instructions",
                    models.TextField(
                        blank=True, help_text="The system prompt. It is never sent to clients."
                    ),
                ),
                (
                    "options",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text='Options of the provider, such as {"script": "echo"} or {"base_url": "https://…"}.',
                    ),
                ),
                (
                    "tools",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text='Names of server tools, such as ["csv_report"].',
                    ),
                ),
                (
                    "approvals",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text='Names of its long tools that a person has to allow each time, such as ["edit_picture"].',
                    ),
                ),
                (
                    "delegates",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text='Names of agents that it may give work to, such as ["report"].',
                    ),
                ),
                (
                    "pricing",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text='What it costs, in USD: {"per_answer": "0.01", "input_per_1k": "0.001", "output_per_1k": "0.002", "tools": {"csv_report": "0.05"}}. Empty: it is free. An answer that is stopped costs the whole price of an answer once it has begun, or with {"unfinished": "share", "expected_tokens": 400} its share of so many tokens.',
                    ),
                ),
                (
                    "strategy",
                    models.CharField(
                        choices=[
                            ("loop", "loop (call tools until the answer is there)"),
                            ("react", "react (think before each action)"),
                            ("plan", "plan (make a plan, then carry it out)"),
                        ],
                        default="loop",
                        max_length=10,
                    ),
                ),
                (
                    "strategy_options",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text='Of react: {"reasoning_prompt": "…"}. Of plan: {"max_plan_steps": 5, "allow_replan": false}.',
                    ),
                ),
                (
                    "is_public",
                    models.BooleanField(
                        default=False,
                        help_text="Everybody who is signed in may use it, otherwise only its owner and staff. Visitors may use it too, unless a model answers without a price (UAMP_ANONYMOUS_MODELS).",
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True)),
                (
                    "is_connected",
                    models.BooleanField(db_default=False, default=False, editable=False),
                ),
                (
                    "trigger",
                    models.CharField(
                        choices=[
                            ("mention", "when mentioned"),
                            ("always", "always"),
                            ("never", "never"),
                        ],
                        default="mention",
                        max_length=10,
                    ),
                ),
                (
                    "max_steps",
                    models.PositiveIntegerField(
                        default=10,
                        help_text="Tool rounds in one answer, at most 32; a plan has at most as many steps.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(32),
                        ],
                    ),
                ),
                (
                    "max_output_tokens",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Tokens that the model may write in one answer, over all of its steps. Empty: what the provider allows.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "max_seconds",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Time of one answer, in seconds. Empty, or more: UAMP_RESPONSE_SECONDS.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "history_messages",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Messages of the chat that it is shown. Empty, or more: UAMP_HISTORY_MESSAGES.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                ("found", models.JSONField(blank=True, default=dict, editable=False)),
                ("failures", models.PositiveIntegerField(default=0, editable=False)),
                ("last_error", models.TextField(blank=True, editable=False)),
                ("failed_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("probed_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("retry_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="agents",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "permissions": [("try_agent", "Can try agent")],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        name="agent_name_is_unique",
                        violation_error_message="There is an agent with this name already.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True), name="agent_has_a_name"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["hosted", "remote", "connected"])),
                        name="agent_kind_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "protocol__in",
                                [
                                    "",
                                    "uamp",
                                    "uamp_http",
                                    "completions",
                                    "responses",
                                    "a2a",
                                    "a2a_03",
                                    "ag_ui",
                                    "acp",
                                    "envelope",
                                    "envelope_http",
                                    "envelope_grpc",
                                ],
                            )
                        ),
                        name="agent_protocol_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "provider__in",
                                [
                                    "scripted",
                                    "openai_compat",
                                    "openai_realtime",
                                    "anthropic",
                                    "google",
                                ],
                            )
                        ),
                        name="agent_provider_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("strategy__in", ["loop", "react", "plan"])),
                        name="agent_strategy_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("trigger__in", ["mention", "always", "never"])),
                        name="agent_trigger_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_steps__gte", 1), ("max_steps__lte", 32)),
                        name="agent_steps_are_1_to_32",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_output_tokens__isnull", True),
                            ("max_output_tokens__gte", 1),
                            _connector="OR",
                        ),
                        name="agent_may_write_a_token",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_seconds__isnull", True), ("max_seconds__gte", 1), _connector="OR"
                        ),
                        name="agent_has_a_second",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("history_messages__isnull", True),
                            ("history_messages__gte", 1),
                            _connector="OR",
                        ),
                        name="agent_is_shown_a_message",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AgentConnection",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("connection", models.CharField(max_length=40)),
                ("answers", models.PositiveIntegerField(default=0)),
                ("is_closing", models.BooleanField(default=False)),
                ("capabilities", models.JSONField(blank=True, null=True)),
                ("connected_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="connections",
                        to="agents_app.agent",
                    ),
                ),
                (
                    "process",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="connections",
                        to="agents_app.processlease",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("connection", "agent"), name="agent_is_registered_once_on_a_socket"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Sponsorship",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "period",
                    models.CharField(
                        choices=[
                            ("day", "Day"),
                            ("week", "Week"),
                            ("month", "Month"),
                            ("total", "in all"),
                        ],
                        max_length=10,
                    ),
                ),
                ("amount", models.CharField(max_length=40)),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sponsorships",
                        to="agents_app.agent",
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
                        fields=("agent", "period"), name="agent_has_one_budget_for_a_period"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("period__in", ["day", "week", "month", "total"])),
                        name="sponsorship_period_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ToolSource",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="Begins the names of its tools: name__tool.",
                        max_length=24,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^(?:[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*)\\Z",
                                "Use letters, digits and single _ between them.",
                            )
                        ],
                    ),
                ),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("stdio", "stdio (a program on this server)"),
                            ("http", "HTTP (streamable)"),
                        ],
                        default="http",
                        max_length=10,
                    ),
                ),
                (
                    "command",
                    models.CharField(
                        blank=True,
                        help_text="Of stdio: the program. The setting UAMP_MCP_COMMANDS has to list it.",
                        max_length=500,
                    ),
                ),
                (
                    "args",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text='Of stdio: its arguments, as ["-m", "my_server"].',
                    ),
                ),
                (
                    "env",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text='Of stdio: its environment, as {"TOKEN": "${MCP_TOKEN}"}. ${MCP_…} is read from the environment of this server. What is written out is kept, and not shown again.',
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        blank=True,
                        help_text="Of HTTP: the address, beginning with https://.",
                        max_length=2000,
                    ),
                ),
                (
                    "headers",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text='Of HTTP: headers of each request, as {"Authorization": "Bearer ${MCP_TOKEN}"}; values as in the environment.',
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True)),
                (
                    "approval",
                    models.CharField(
                        choices=[
                            ("never", "no call"),
                            ("writes", "calls of tools that may change something"),
                            ("always", "every call"),
                        ],
                        default="writes",
                        help_text="The server itself says which of its tools only read.",
                        max_length=10,
                        verbose_name="a person has to allow",
                    ),
                ),
                (
                    "seconds",
                    models.PositiveIntegerField(
                        default=120,
                        help_text="In seconds. UAMP_TOOL_SECONDS holds besides.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(3600),
                        ],
                        verbose_name="time limit of a call",
                    ),
                ),
                ("tools", models.JSONField(blank=True, default=list, editable=False)),
                ("server", models.CharField(blank=True, editable=False, max_length=300)),
                ("refreshed_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("error", models.TextField(blank=True, editable=False)),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        name="tool_source_name_is_unique",
                        violation_error_message="There is a source with this name already.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True),
                        name="tool_source_has_a_name",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("transport__in", ["stdio", "http"])),
                        name="tool_source_transport_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("approval__in", ["never", "writes", "always"])),
                        name="tool_source_approval_is_known",
                    ),
                ],
            },
        ),
    ]
