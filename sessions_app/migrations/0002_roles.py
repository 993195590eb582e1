"""The groups of operators."""

from django.apps import apps as installed
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

# Who may what (docs/admin.md). `view_x` of a model is its facts; the words of messages, answers and
# tools are shown to those who may also view contents (`chat_app.view_content`).

CHATS = (
    "chat_app.view_chat",
    "chat_app.view_chatorigin",
    "chat_app.view_chatevent",
    "chat_app.view_contentuse",
    "chat_app.view_message",
    "chat_app.view_messagerevision",
    "chat_app.view_messagedeletion",
    "chat_app.view_messagethread",
    "chat_app.view_messagemention",
    "chat_app.view_reaction",
    "chat_app.view_pin",
    "chat_app.view_threadfollower",
    "chat_app.view_participant",
    "chat_app.view_agentmention",
    "chat_app.view_readreceipt",
    "chat_app.view_profile",
    "chat_app.view_presence",
    "chat_app.view_voicecall",
    "chat_app.view_voicecallmember",
    "chat_app.view_sharelink",
    "chat_app.view_invitelink",
    "chat_app.view_linkcard",
)
TURNS = (
    "sessions_app.view_session",
    "sessions_app.view_response",
    "sessions_app.view_toolcall",
    "sessions_app.view_followup",
    "sessions_app.view_queuedturn",
    "sessions_app.view_webhook",
    "sessions_app.view_webhookdelivery",
)
INTERNALS = (
    "sessions_app.view_pendinginput",
    "sessions_app.view_inboundevent",
    "sessions_app.view_ticket",
    "sessions_app.view_httpconnection",
    "sessions_app.view_unansweredrequest",
)
LEDGER = (
    "payments_app.view_account",
    "payments_app.view_transfer",
    "payments_app.view_entry",
    "payments_app.view_hold",
    "payments_app.view_receipt",
    "payments_app.view_ledgerstate",
    "payments_app.view_topuprequest",
    "payments_app.view_paymenttoken",
    "payments_app.view_spendinglimit",
    "payments_app.view_approval",
    "payments_app.view_idempotency",
)
PEOPLE = ("auth.view_user", "agents_app.view_agent")
RUNNING = (
    "sessions_app.end_session",
    "sessions_app.cancel_response",
    "sessions_app.requeue_tool",
)
LINKS = ("chat_app.change_sharelink", "chat_app.change_invitelink")
SIGN_IN = ("axes.view_accessattempt", "axes.view_accesslog", "axes.view_accessfailurelog")

ROLES = {
    "Support": (*CHATS, *TURNS, *PEOPLE, *RUNNING, *LINKS),
    "Finance": (
        "chat_app.view_chat",
        "chat_app.view_participant",
        "sessions_app.view_response",
        "sessions_app.view_paymentrequest",
        *PEOPLE,
        *LEDGER,
        "payments_app.refund_transfer",
        "payments_app.void_hold",
        "payments_app.adjust_account",
        "payments_app.grant_topup",
        "payments_app.unfreeze_ledger",
    ),
    "Operator": (
        *CHATS,
        *TURNS,
        "sessions_app.view_paymentrequest",
        *INTERNALS,
        *PEOPLE,
        *RUNNING,
        *LINKS,
        *SIGN_IN,
        "axes.delete_accessattempt",
        "payments_app.view_ledgerstate",
        "sessions_app.view_apikey",
        "sessions_app.add_apikey",
        "sessions_app.revoke_key",
        "sessions_app.rotate_key",
        "agents_app.add_agent",
        "agents_app.change_agent",
        "agents_app.delete_agent",
        "agents_app.try_agent",
        "agents_app.view_toolsource",
        "agents_app.add_toolsource",
        "agents_app.change_toolsource",
        "agents_app.delete_toolsource",
        "audit_app.view_auditrecord",
    ),
    "Auditor": (
        *CHATS,
        "chat_app.view_content",
        "chat_app.view_transcript",
        "chat_app.view_sharedstate",
        "chat_app.export_content",
        *TURNS,
        "sessions_app.view_paymentrequest",
        *INTERNALS,
        "sessions_app.view_apikey",
        *PEOPLE,
        "auth.view_group",
        *LEDGER,
        "agents_app.view_toolsource",
        *SIGN_IN,
        "audit_app.view_auditrecord",
    ),
    "Developer": (
        "chat_app.view_chat",
        "chat_app.view_participant",
        "chat_app.view_message",
        "chat_app.view_chatevent",
        *TURNS,
        *INTERNALS,
        "agents_app.view_agent",
        "agents_app.add_agent",
        "agents_app.change_agent",
        "agents_app.try_agent",
        "agents_app.view_toolsource",
    ),
}


def make_roles(_apps: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Make the groups, once: an operator may change them afterwards.

    Django makes the rights after all migrations; the groups need them now.
    """
    using = schema_editor.connection.alias
    for config in installed.get_app_configs():
        create_permissions(config, verbosity=0, using=using)
    rights = {
        f"{right.content_type.app_label}.{right.codename}": right
        for right in Permission.objects.using(using).select_related("content_type")
    }
    for name, names in ROLES.items():
        group, is_new = Group.objects.using(using).get_or_create(name=name)
        if is_new:
            group.permissions.set([rights[each] for each in names if each in rights])


def remove_roles(_apps: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
    Group.objects.using(schema_editor.connection.alias).filter(name__in=ROLES).delete()


class Migration(migrations.Migration):
    replaces = [("sessions_app", "0020_roles")]

    dependencies = [
        ("agents_app", "0001_first_release"),
        ("audit_app", "0001_initial"),
        ("chat_app", "0001_first_release"),
        ("payments_app", "0001_first_release"),
        ("sessions_app", "0001_first_release"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(make_roles, remove_roles, elidable=False)]
