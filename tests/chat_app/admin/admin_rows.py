"""People in the admin of the chat domain, and one row of each of its models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat_app.contents import reading_rights
from chat_app.conversation import deletion, pins, reactions, revisions
from chat_app.forks.forking import fork_chat
from chat_app.links.invite_links import create_invite_link
from chat_app.links.share_links import create_share_link
from chat_app.log.checkpoints import checkpoint_of
from chat_app.log_tree.growth import grow
from chat_app.members import receipts
from chat_app.models import (
    AgentMention,
    CallMemberState,
    Chat,
    ContentPreview,
    LinkCard,
    LinkCardState,
    LogErasure,
    MessageMention,
    MessageThread,
    PushDelivery,
    PushSubscription,
    RepeatedRequest,
    SharedState,
    Site,
    ThreadFollower,
    Transcript,
    TranscriptState,
    TreeCheckpoint,
    TreeCosignature,
    UnreadMail,
    Upload,
    UploadPart,
    VoiceCall,
    VoiceCallAgent,
    VoiceCallMember,
)
from chat_app.people import profiles
from chat_app.people import settings as person_settings
from chat_app.people.settings import SettingsChange
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def staff(*permissions: str) -> User:
    user = factories.user("operator", is_staff=True)
    for name in permissions:
        user.user_permissions.add(Permission.objects.get(codename=name))
    return user


def address(label: str, view: str = "changelist", **options: Any) -> str:
    # The admin writes ids in its paths in a way of its own: `_25` is a character to it.
    options["args"] = [quote(pk) for pk in options.get("args", ())]
    return reverse(f"admin:{label.replace('.', '_')}_{view}", **options)


def transcript(chat: Chat) -> str:
    return reverse("admin:chat_app_chat_transcript", args=[chat.pk])


def one_of_each(number: int) -> Chat:
    """Add one row of every model."""
    person = factories.user(f"person{number}")
    agent = factories.agent(f"agent{number}")
    chat = factories.chat(person, agent, title=f"Chat {number}")
    message = factories.message(chat, person, "Hello")
    receipts.mark_read(chat_id=chat.pk, user_id=person.pk, message_id=message.pk)
    act: dict[str, Any] = {"chat_id": chat.pk, "message_id": message.pk, "user_id": person.pk}
    revisions.edit_message(**act, content="Hello again")
    deletion.delete_message(**act)
    act["message_id"] = factories.message(chat, person, "Hi").pk
    reactions.add_reaction(**act, emoji="\N{PARTY POPPER}")
    pins.pin_message(**act)
    content = factories.content(person)
    reading_rights.use(chat.pk, [str(content.pk)])
    factories.presence(person)
    SharedState.objects.create(chat=chat, version=1)
    AgentMention.objects.create(chat=chat, pair=f"{agent.pk} other")
    call = VoiceCall.objects.create(chat=chat, call_id=f"call{number}", started_by=person)
    VoiceCallMember.objects.create(call=call, user=person, state=CallMemberState.JOINED)
    VoiceCallAgent.objects.create(call=call, agent=agent, host=person, joined_at=timezone.now())
    thread = MessageThread.objects.create(
        root_id=act["message_id"], chat=chat, last_seq=1, last_at=timezone.now()
    )
    ThreadFollower.objects.create(thread=thread, user=person)
    MessageMention.objects.create(message_id=act["message_id"], chat=chat, user=person, seq=1)
    create_share_link(chat_id=chat.pk, made_by=person)
    Transcript.objects.create(content=content, state=TranscriptState.DONE)
    ContentPreview.objects.create(content=content, data=b"RIFF")
    upload = Upload.objects.create(
        owner=person, length=2, mime_type="text/plain", expires_at=timezone.now()
    )
    UploadPart.objects.create(upload=upload, start=0, blob="part")
    client = signed_in(person)
    subscription = PushSubscription.objects.create(
        user=person,
        session_id=str(client.session.session_key),
        endpoint=f"https://push.example/{number}",
        endpoint_sha256=f"{number:064}",
    )
    PushDelivery.objects.create(
        subscription=subscription,
        message_id=act["message_id"],
        is_mention=False,
        is_followed=False,
        due_at=timezone.now(),
    )
    UnreadMail.objects.create(user=person, looked_until=timezone.now())
    RepeatedRequest.objects.create(user=person, key="key", request_sha256="")
    LinkCard.objects.create(url_sha256=f"{number:064}", state=LinkCardState.READ)
    fork_chat(
        chat_id=chat.pk, message_id=act["message_id"], forked_by=person, admit=lambda _size: None
    )
    create_invite_link(chat_id=chat.pk, made_by=person)
    profiles.set_picture(user_id=person.pk, data=factories.png())
    checkpoint_of(chat.pk)
    grow(timezone.now())
    TreeCosignature.objects.create(checkpoint=TreeCheckpoint.objects.latest("size"), witness="w")
    LogErasure.objects.get_or_create()
    Site.objects.get_or_create()
    person_settings.update_settings(user_id=person.pk, change=SettingsChange(theme="dark"))
    return chat
