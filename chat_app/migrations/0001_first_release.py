"""The tables of chats, their logs and their members."""

import uuid

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import chat_app.models


class Migration(migrations.Migration):
    replaces = [
        ("chat_app", "0001_initial"),
        ("chat_app", "0002_payer_user"),
        ("chat_app", "0003_keep_who_chose_to_pay"),
        ("chat_app", "0004_one_index_for_each_order"),
        ("chat_app", "0005_content_handles"),
        ("chat_app", "0006_chat_lists"),
        ("chat_app", "0007_admin_lists"),
        ("chat_app", "0008_payer_labels"),
        ("chat_app", "0009_message_transports"),
        ("chat_app", "0010_shared_state"),
        ("chat_app", "0011_message_revisions"),
        ("chat_app", "0012_reactions_and_pins"),
        ("chat_app", "0013_replies"),
        ("chat_app", "0014_member_rights"),
        ("chat_app", "0015_content_use_counts"),
        ("chat_app", "0016_message_versions"),
        ("chat_app", "0017_people"),
        ("chat_app", "0018_message_threads"),
        ("chat_app", "0019_calls"),
        ("chat_app", "0020_links"),
        ("chat_app", "0021_message_mentions"),
        ("chat_app", "0022_account_language"),
        ("chat_app", "0023_forks"),
        ("chat_app", "0024_link_cards"),
        ("chat_app", "0025_transcripts"),
        ("chat_app", "0026_operator_rights"),
        ("chat_app", "0027_agents_in_calls"),
        ("chat_app", "0028_uploads"),
        ("chat_app", "0029_follow_answers"),
        ("chat_app", "0030_log_chain"),
        ("chat_app", "0031_log_checkpoints"),
        ("chat_app", "0032_log_erasure"),
        ("chat_app", "0033_copies_of_deleted_messages"),
        ("chat_app", "0034_extents"),
    ]

    initial = True

    dependencies = [
        ("agents_app", "0001_first_release"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("auth", "__first__"),
    ]

    operations = [
        migrations.CreateModel(
            name="Chat",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat_app.models.new_chat_id,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("title", models.CharField(blank=True, max_length=200)),
                ("description", models.CharField(blank=True, max_length=2000, null=True)),
                ("avatar", models.CharField(blank=True, max_length=80, null=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("group", "chat"), ("session", "private chat of a session")],
                        default="group",
                        max_length=10,
                    ),
                ),
                (
                    "payer",
                    models.CharField(
                        choices=[
                            ("asker", "the person who asks"),
                            ("owner", "the chat's owner"),
                            ("pool", "the chat's pool"),
                            ("sponsor", "the agent's owner"),
                        ],
                        default="asker",
                        max_length=10,
                    ),
                ),
                ("only_owners_pin", models.BooleanField(blank=True, null=True)),
                ("agents_quiet", models.BooleanField(blank=True, null=True)),
                ("agent_hops", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("budget", models.CharField(blank=True, max_length=40, null=True)),
                (
                    "budget_period",
                    models.CharField(
                        blank=True,
                        choices=[("day", "each day, in UTC"), ("total", "in total")],
                        max_length=10,
                        null=True,
                    ),
                ),
                ("epoch", models.CharField(default=chat_app.models.new_epoch, max_length=8)),
                ("last_seq", models.BigIntegerField(default=0)),
                ("chain_hash", models.BinaryField(max_length=32, null=True)),
                ("chain_seq", models.BigIntegerField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("latest_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "payer_user",
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
                "permissions": [("export_content", "Can export what was said in chats")],
                "indexes": [
                    models.Index(fields=["-latest_at", "-id"], name="chat_listing"),
                    models.Index(fields=["kind", "-latest_at", "-id"], name="chat_kinds"),
                    models.Index(
                        condition=models.Q(("created_by__isnull", True)),
                        fields=["latest_at"],
                        name="chat_visits",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("last_seq__gte", 0)), name="chat_seq_is_not_negative"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Content",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ("handle", models.UUIDField(blank=True, db_index=True, null=True)),
                ("sha256", models.CharField(db_index=True, max_length=64)),
                ("mime_type", models.CharField(max_length=127)),
                ("filename", models.CharField(blank=True, max_length=255)),
                ("size_bytes", models.PositiveBigIntegerField()),
                ("extent", models.PositiveBigIntegerField(blank=True, editable=False, null=True)),
                ("blob", models.FileField(max_length=255, upload_to="%Y/%m")),
                ("owner_key", models.CharField(blank=True, db_index=True, max_length=80)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="contents",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["-created_at", "-id"], name="content_listing")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "handle"), name="a_person_uses_a_handle_once"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("owner__isnull", True)),
                        fields=("owner_key", "handle"),
                        name="a_visitor_uses_a_handle_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=chat_app.models.new_message_id,
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("seq", models.BigIntegerField()),
                ("role", models.CharField(max_length=10)),
                ("name", models.CharField(blank=True, max_length=150)),
                ("content", models.TextField(blank=True)),
                ("content_items", models.JSONField(default=list)),
                ("response_id", models.CharField(blank=True, db_index=True, max_length=40)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("completed", "Completed"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Failed"),
                        ],
                        default="completed",
                        max_length=10,
                    ),
                ),
                (
                    "transport",
                    models.CharField(blank=True, db_default="", default="", max_length=24),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("reply_to", models.CharField(blank=True, max_length=40, null=True)),
                ("version_of", models.CharField(blank=True, max_length=40, null=True)),
                ("replaced_by", models.CharField(blank=True, max_length=40, null=True)),
                ("thread", models.CharField(blank=True, max_length=40, null=True)),
                ("thread_only", models.BooleanField(blank=True, null=True)),
                ("copied_from", models.CharField(blank=True, max_length=40, null=True)),
                ("revision", models.IntegerField(blank=True, null=True)),
                ("edited_at", models.DateTimeField(blank=True, null=True)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "chat",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="chat_app.chat",
                    ),
                ),
                (
                    "sender_agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="agents_app.agent",
                    ),
                ),
                (
                    "sender_user",
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
                "indexes": [
                    models.Index(
                        condition=models.Q(("version_of__isnull", False)),
                        fields=["version_of"],
                        name="message_versions",
                    ),
                    models.Index(
                        condition=models.Q(("thread__isnull", False)),
                        fields=["thread", "seq"],
                        name="message_threads",
                    ),
                    models.Index(
                        condition=models.Q(("copied_from__isnull", False)),
                        fields=["copied_from"],
                        name="message_copies",
                    ),
                    models.Index(
                        condition=models.Q(("thread_only__isnull", True)),
                        fields=["chat", "seq"],
                        name="message_main_log",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("chat", "seq"), name="message_has_its_own_seq")
                ],
            },
        ),
        migrations.CreateModel(
            name="Profile",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="profile",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("display_name", models.CharField(blank=True, default="", max_length=160)),
                ("name_key", models.CharField(blank=True, max_length=320, null=True, unique=True)),
                ("status_text", models.CharField(blank=True, default="", max_length=400)),
                ("avatar_emoji", models.CharField(blank=True, default="", max_length=32)),
                ("avatar_colour", models.CharField(blank=True, default="", max_length=7)),
                ("picture_version", models.CharField(blank=True, default="", max_length=16)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="AgentMention",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("pair", models.CharField(max_length=81)),
                (
                    "created_at",
                    models.DateTimeField(db_index=True, default=django.utils.timezone.now),
                ),
                (
                    "chat",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agent_mentions",
                        to="chat_app.chat",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["chat", "pair", "created_at"], name="agent_mentions_of_a_pair"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ChatEvent",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField()),
                ("type", models.CharField(max_length=40)),
                ("response_id", models.CharField(blank=True, max_length=40)),
                ("payload", models.JSONField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("chain_hash", models.BinaryField(max_length=32, null=True)),
                ("erased_digest", models.BinaryField(max_length=32, null=True)),
                (
                    "chat",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="chat_app.chat",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("chat", "seq"), name="event_has_its_own_seq"),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("type__in", ("response.done", "response.error", "response.cancelled"))
                        ),
                        fields=("response_id",),
                        name="response_ends_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Transcript",
            fields=[
                (
                    "content",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="transcript",
                        serialize=False,
                        to="chat_app.content",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("asked", "Asked"), ("done", "Done"), ("none", "None")],
                        max_length=5,
                    ),
                ),
                ("text", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="ContentUse",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("shown_by", models.IntegerField(blank=True, null=True)),
                (
                    "chat",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="content_uses",
                        to="chat_app.chat",
                    ),
                ),
                (
                    "content",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="chat_app.content",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("content", "chat"), name="content_is_once_in_a_chat"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="InviteLink",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("token_sha256", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "role",
                    models.CharField(
                        choices=[("owner", "Owner"), ("admin", "Admin"), ("member", "Member")],
                        default="member",
                        max_length=10,
                    ),
                ),
                ("most_uses", models.PositiveIntegerField(blank=True, null=True)),
                ("used_count", models.PositiveIntegerField(default=0)),
                ("used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "chat",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(class)ss",
                        to="chat_app.chat",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "revoked_by",
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
                "indexes": [models.Index(fields=["chat", "-id"], name="invite_links_of_a_chat")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("most_uses__isnull", True),
                            ("used_count__lte", models.F("most_uses")),
                            _connector="OR",
                        ),
                        name="invite_link_is_used_up",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LinkCard",
            fields=[
                ("url_sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[("asked", "Asked"), ("read", "Read"), ("none", "None")],
                        max_length=5,
                    ),
                ),
                ("title", models.CharField(blank=True, max_length=200)),
                ("description", models.CharField(blank=True, max_length=300)),
                ("site", models.CharField(blank=True, max_length=80)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="link_cards_by_age")],
            },
        ),
        migrations.CreateModel(
            name="LogCheckpoint",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField()),
                ("note", models.CharField(max_length=2000)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "chat",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checkpoints",
                        to="chat_app.chat",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["-created_at", "-id"], name="checkpoint_listing")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("chat", "seq"), name="checkpoint_has_its_own_seq"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LogErasure",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False),
                ),
                ("entry", models.BigIntegerField(default=0)),
                ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "verbose_name": "erasure of logs by age",
                "verbose_name_plural": "erasure of logs by age",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="one_erasure_of_logs"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MessageDeletion",
            fields=[
                (
                    "message",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="deletion",
                        serialize=False,
                        to="chat_app.message",
                    ),
                ),
                ("response_id", models.CharField(blank=True, max_length=40)),
                ("deleted_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["response_id"], name="deleted_answers"),
                    models.Index(fields=["deleted_at"], name="deleted_lately"),
                ],
            },
        ),
        migrations.CreateModel(
            name="MessageThread",
            fields=[
                (
                    "root",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="thread_counts",
                        serialize=False,
                        to="chat_app.message",
                    ),
                ),
                ("replies", models.PositiveIntegerField(default=0)),
                ("last_seq", models.BigIntegerField()),
                ("last_at", models.DateTimeField()),
                ("faces", models.JSONField(default=list)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("replies__gte", 0)), name="replies_are_not_negative"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Pin",
            fields=[
                (
                    "message",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="pin",
                        serialize=False,
                        to="chat_app.message",
                    ),
                ),
                ("seq", models.BigIntegerField()),
                ("pinned_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="MessageMention",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField()),
                (
                    "chat",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chat_app.chat",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mention_rows",
                        to="chat_app.message",
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
                        fields=("chat", "user", "seq"), name="a_message_mentions_a_person_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MessageRevision",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("seq", models.BigIntegerField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "edited_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="chat_app.message",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "number"), name="revision_has_its_number"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Participant",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "role",
                    models.CharField(
                        choices=[("owner", "Owner"), ("admin", "Admin"), ("member", "Member")],
                        default="member",
                        max_length=10,
                    ),
                ),
                (
                    "trigger",
                    models.CharField(
                        choices=[
                            ("mention", "Mention"),
                            ("always", "Always"),
                            ("keyword", "a mention or a keyword"),
                            ("never", "Never"),
                        ],
                        default="mention",
                        max_length=10,
                    ),
                ),
                ("keywords", models.JSONField(blank=True, null=True)),
                (
                    "context",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("chat", "all messages"),
                            ("last", "the last messages"),
                            ("addressed", "only messages addressed to it and its answers"),
                        ],
                        max_length=10,
                        null=True,
                    ),
                ),
                ("context_messages", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("budget", models.CharField(blank=True, max_length=40, null=True)),
                (
                    "budget_period",
                    models.CharField(
                        blank=True,
                        choices=[("day", "each day, in UTC"), ("total", "in total")],
                        max_length=10,
                        null=True,
                    ),
                ),
                ("muted_at", models.DateTimeField(blank=True, null=True)),
                (
                    "notifications",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("all", "all messages"),
                            ("mentions", "mentions and direct messages"),
                            ("none", "None"),
                        ],
                        max_length=10,
                        null=True,
                    ),
                ),
                ("joined_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("left_at", models.DateTimeField(blank=True, null=True)),
                ("left_freely", models.BooleanField(blank=True, null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="participations",
                        to="agents_app.agent",
                    ),
                ),
                (
                    "chat",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="participants",
                        to="chat_app.chat",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="participations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("agent__isnull", True), ("user__isnull", False)),
                            models.Q(("agent__isnull", False), ("user__isnull", True)),
                            _connector="OR",
                        ),
                        name="participant_is_a_user_or_an_agent",
                    ),
                    models.UniqueConstraint(fields=("chat", "user"), name="user_is_once_in_a_chat"),
                    models.UniqueConstraint(
                        fields=("chat", "agent"), name="agent_is_once_in_a_chat"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PersonSettings",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="person_settings",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "theme",
                    models.CharField(
                        choices=[("system", "as the system"), ("light", "Light"), ("dark", "Dark")],
                        default="system",
                        max_length=10,
                    ),
                ),
                (
                    "density",
                    models.CharField(
                        choices=[("comfortable", "Comfortable"), ("compact", "Compact")],
                        default="comfortable",
                        max_length=12,
                    ),
                ),
                ("read_receipts", models.BooleanField(default=True)),
                ("typing_notices", models.BooleanField(default=True)),
                (
                    "notifications",
                    models.CharField(
                        choices=[
                            ("all", "all messages"),
                            ("mentions", "mentions and direct messages"),
                            ("none", "None"),
                        ],
                        default="mentions",
                        max_length=10,
                    ),
                ),
                ("notification_text", models.BooleanField(default=True)),
                ("notification_sound", models.BooleanField(default=True)),
                ("quiet_from", models.CharField(blank=True, default="", max_length=5)),
                ("quiet_until", models.CharField(blank=True, default="", max_length=5)),
                ("time_zone", models.CharField(blank=True, default="", max_length=64)),
                (
                    "send_key",
                    models.CharField(
                        choices=[("enter", "Enter"), ("ctrl_enter", "Ctrl+Enter")],
                        default="enter",
                        max_length=12,
                    ),
                ),
                ("follow_answers", models.BooleanField(db_default=True, default=True)),
                ("language", models.CharField(blank=True, db_default="", default="", max_length=8)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "verbose_name_plural": "settings of people",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("quiet_from", ""), ("quiet_until", "")),
                            models.Q(
                                models.Q(("quiet_from", ""), _negated=True),
                                models.Q(("quiet_until", ""), _negated=True),
                                models.Q(("time_zone", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="quiet_hours_have_both_ends",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Presence",
            fields=[
                ("id", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("process", models.CharField(db_index=True, max_length=40)),
                ("connected_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="presences",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "presence",
                "indexes": [
                    models.Index(fields=["user", "seen_at"], name="presence_freshness"),
                    models.Index(fields=["-seen_at", "-id"], name="presence_listing"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("seen_at__gte", models.F("connected_at"))),
                        name="seen_not_before_connected",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ProfilePicture",
            fields=[
                (
                    "profile",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="picture",
                        serialize=False,
                        to="chat_app.profile",
                    ),
                ),
                ("data", models.BinaryField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="Reaction",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("emoji", models.CharField(max_length=32)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "message",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reactions",
                        to="chat_app.message",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reactions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "emoji", "user"), name="an_emoji_is_given_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ReadReceipt",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("seq", models.BigIntegerField()),
                ("read_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "chat",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="receipts",
                        to="chat_app.chat",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="receipts",
                        to="chat_app.message",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="receipts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("chat", "user"), name="one_marker_per_member")
                ],
            },
        ),
        migrations.CreateModel(
            name="ShareLink",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("token_sha256", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("title", models.CharField(blank=True, max_length=200)),
                ("until_seq", models.BigIntegerField(blank=True, null=True)),
                ("opened_count", models.BigIntegerField(default=0)),
                ("opened_at", models.DateTimeField(blank=True, null=True)),
                (
                    "chat",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(class)ss",
                        to="chat_app.chat",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "revoked_by",
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
                "indexes": [models.Index(fields=["chat", "-id"], name="share_links_of_a_chat")],
            },
        ),
        migrations.CreateModel(
            name="ThreadFollower",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("read_seq", models.BigIntegerField(default=0)),
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
            name="Upload",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ("length", models.PositiveBigIntegerField()),
                ("offset", models.PositiveBigIntegerField(default=0)),
                ("filename", models.CharField(blank=True, max_length=255)),
                ("mime_type", models.CharField(max_length=127)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField()),
                (
                    "content",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chat_app.content",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["expires_at"], name="uploads_by_expiry")],
            },
        ),
        migrations.CreateModel(
            name="UploadPart",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("start", models.PositiveBigIntegerField()),
                ("blob", models.FileField(max_length=255, upload_to="uploads/%Y/%m")),
                (
                    "upload",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="chat_app.upload",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("upload", "start"), name="each_part_arrives_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="VoiceCall",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("call_id", models.CharField(max_length=128)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("ringing", "Ringing"),
                            ("running", "Running"),
                            ("ended", "Ended"),
                        ],
                        default="ringing",
                        max_length=8,
                    ),
                ),
                ("media", models.JSONField(default=list)),
                ("revision", models.PositiveIntegerField(default=1)),
                ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("ended", "Ended"),
                            ("declined", "Declined"),
                            ("unanswered", "Unanswered"),
                            ("cancelled", "Cancelled"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "chat",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calls",
                        to="chat_app.chat",
                    ),
                ),
                (
                    "started_by",
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
                "constraints": [
                    models.UniqueConstraint(
                        fields=("chat", "call_id"), name="call_has_its_id_once"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("chat",),
                        name="one_call_goes_on_in_a_chat",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", False), ("state", "ended")),
                            models.Q(
                                ("ended_at__isnull", True), ("state__in", ["ringing", "running"])
                            ),
                            _connector="OR",
                        ),
                        name="an_ended_call_has_its_end",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="VoiceCallAgent",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("joined_at", models.DateTimeField()),
                ("left_at", models.DateTimeField(blank=True, null=True)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("removed", "Removed"),
                            ("host_left", "Host Left"),
                            ("not_member", "Not Member"),
                            ("ended", "Ended"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agents_app.agent",
                    ),
                ),
                (
                    "call",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agents",
                        to="chat_app.voicecall",
                    ),
                ),
                (
                    "host",
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
                        fields=("call", "agent"), name="agent_is_in_a_call_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("left_at__isnull", True), ("reason", "")),
                            models.Q(
                                ("left_at__isnull", False), models.Q(("reason", ""), _negated=True)
                            ),
                            _connector="OR",
                        ),
                        name="agent_left_a_call_for_a_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="VoiceCallMember",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("ringing", "Ringing"),
                            ("joined", "Joined"),
                            ("declined", "Declined"),
                            ("missed", "Missed"),
                            ("left", "Left"),
                        ],
                        max_length=8,
                    ),
                ),
                ("session_id", models.CharField(blank=True, max_length=64)),
                ("joined_at", models.DateTimeField(blank=True, null=True)),
                ("seen_at", models.DateTimeField(blank=True, null=True)),
                ("rings_until", models.DateTimeField(blank=True, null=True)),
                (
                    "call",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="chat_app.voicecall",
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
                        fields=("call", "user"), name="person_is_in_a_call_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ChatOrigin",
            fields=[
                (
                    "chat",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="origin",
                        serialize=False,
                        to="chat_app.chat",
                    ),
                ),
                ("source_title", models.CharField(blank=True, max_length=200)),
                ("source_message", models.CharField(max_length=40)),
                ("messages", models.PositiveIntegerField()),
                ("seq", models.BigIntegerField()),
                ("agents_left_out", models.JSONField(blank=True, default=list)),
                ("forked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("key", models.CharField(blank=True, max_length=64, null=True)),
                (
                    "forked_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="forks",
                        to="chat_app.chat",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["-forked_at", "-chat"], name="fork_listing")],
                "constraints": [
                    models.UniqueConstraint(fields=("forked_by", "key"), name="a_fork_is_made_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SharedState",
            fields=[
                (
                    "chat",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="shared_state",
                        serialize=False,
                        to="chat_app.chat",
                    ),
                ),
                ("version", models.BigIntegerField()),
                ("value", models.JSONField(default=dict)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("version__gte", 1)), name="state_version_counts_changes"
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="messagedeletion",
            name="chat",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deletions",
                to="chat_app.chat",
            ),
        ),
        migrations.AddField(
            model_name="messagedeletion",
            name="deleted_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="threadfollower",
            name="thread",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="followers",
                to="chat_app.messagethread",
            ),
        ),
        migrations.AddField(
            model_name="messagethread",
            name="chat",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="threads",
                to="chat_app.chat",
            ),
        ),
        migrations.AddField(
            model_name="pin",
            name="chat",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="pins",
                to="chat_app.chat",
            ),
        ),
        migrations.AddField(
            model_name="pin",
            name="pinned_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="threadfollower",
            constraint=models.UniqueConstraint(
                fields=("thread", "user"), name="a_thread_is_followed_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="messagethread",
            constraint=models.UniqueConstraint(
                fields=("chat", "last_seq"), name="thread_has_its_last_seq"
            ),
        ),
        migrations.AddConstraint(
            model_name="pin",
            constraint=models.UniqueConstraint(fields=("chat", "seq"), name="pin_has_its_own_seq"),
        ),
    ]
