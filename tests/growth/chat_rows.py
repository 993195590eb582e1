"""Rows of chats: people, messages, files, calls and links."""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session as BrowserSession
from django.db import connection

from chat_app.models import (
    AgentMention,
    Chat,
    ChatEvent,
    ChatOrigin,
    Content,
    ContentUse,
    InviteLink,
    LinkCard,
    Message,
    MessageDeletion,
    MessageMention,
    MessageRevision,
    MessageThread,
    Participant,
    PersonSettings,
    Pin,
    Presence,
    Profile,
    ProfilePicture,
    Reaction,
    ReadReceipt,
    ShareLink,
    ThreadFollower,
    Transcript,
    Upload,
    UploadPart,
    VoiceCall,
    VoiceCallAgent,
    VoiceCallMember,
)
from tests.growth.bulk_rows import ROWS, FilledTables, ago, fill, hexadecimal


def fill_chats(filled: FilledTables) -> None:
    chat, agent, author = filled.chat, filled.agent, filled.author
    fill(User, id="1000 + i", username="'person' || i", is_active="true")
    fill(Chat, id="'chat_' || i", kind="'session'", payer="'asker'", created_by_id="1000 + i")
    fill(
        Participant, chat_id="'chat_' || i", user_id="1000 + i", role="'owner'", trigger="'mention'"
    )
    # The author asks, the agent answers.
    fill(
        Message,
        id="'msg_' || i",
        chat_id=f"'{chat.pk}'",
        seq="i",
        role="CASE i % 2 WHEN 1 THEN 'user' ELSE 'assistant' END",
        sender_user_id=f"CASE i % 2 WHEN 1 THEN {author.pk} END",
        sender_agent_id=f"CASE i % 2 WHEN 0 THEN '{agent.pk}' END",
        content="'Message number ' || i || ' speaks of the weather in the mountains'",
        content_items="'[]'",
        response_id="CASE i % 2 WHEN 0 THEN 'resp_' || i ELSE '' END",
        status="'completed'",
        created_at=ago(f"{ROWS} - i"),
    )
    fill(
        ChatEvent,
        chat_id=f"'{chat.pk}'",
        seq="i",
        type="CASE i % 2 WHEN 0 THEN 'response.done' ELSE 'message.created' END",
        response_id="CASE i % 2 WHEN 0 THEN 'resp_' || i ELSE '' END",
        payload="""'{"event_id": "e", "timestamp": 1, "response": {}, "message": {}}'""",
    )
    Chat.objects.filter(pk=chat.pk).update(last_seq=ROWS)
    fill(MessageRevision, message_id="'msg_' || i", number="1", seq="i")
    fill(Reaction, message_id="'msg_' || i", user_id="1000 + i", emoji="'x'")
    fill(AgentMention, chat_id="'chat_' || i", pair="'a b'")
    fill(Pin, message_id="'msg_' || i", chat_id="'chat_' || i", seq="i")
    # Every message has a thread; the author follows all of them, and has read none.
    fill(
        MessageThread,
        root_id="'msg_' || i",
        chat_id=f"'{chat.pk}'",
        replies="1",
        last_seq="i",
        faces="'[]'",
    )
    fill(ThreadFollower, thread_id="'msg_' || i", user_id=str(author.pk))
    # Every message mentions the author, and the last one the reader of the chat.
    fill(
        MessageMention,
        message_id="'msg_' || i",
        chat_id=f"'{chat.pk}'",
        user_id=str(author.pk),
        seq="i",
    )
    fill(MessageDeletion, message_id="'msg_' || i", chat_id="'chat_' || i")
    fill(
        ChatOrigin,
        chat_id="'chat_' || i",
        source_id=f"'{chat.pk}'",
        source_message="'msg_' || i",
        messages="1",
        seq="2",
        agents_left_out="'[]'",
        forked_by_id="1000 + i",
    )
    fill(ReadReceipt, chat_id="'chat_' || i", user_id="1000 + i", message_id="'msg_' || i", seq="i")
    ReadReceipt.objects.create(chat=chat, user=filled.reader, message_id=f"msg_{ROWS}", seq=ROWS)
    fill(Content, id=hexadecimal("i"), sha256="'sha' || i", mime_type="'image/png'")
    fill(ContentUse, content_id=hexadecimal("i"), chat_id="'chat_' || i")
    fill(
        VoiceCall,
        id="i",
        chat_id="'chat_' || i",
        call_id="'call_' || i",
        state="'ended'",
        media="'[]'",
        ended_at=ago("i"),
        reason="'ended'",
    )
    fill(
        VoiceCallMember,
        call_id="i",
        user_id="1000 + i",
        state="'left'",
    )
    fill(
        VoiceCallAgent,
        call_id="i",
        agent_id=f"'{filled.agent.pk}'",
        host_id="1000 + i",
        joined_at=ago("i"),
        left_at=ago("i"),
        reason="'ended'",
    )
    fill(
        Upload,
        id=hexadecimal("i"),
        owner_id="1000 + i",
        length="9",
        mime_type="'text/plain'",
        expires_at=ago("i"),
    )
    fill(UploadPart, upload_id=hexadecimal("i"), start="0", blob="'x'")
    fill(Transcript, content_id=hexadecimal("i"), state="'done'", text="'x'")
    fill(LinkCard, url_sha256="'card' || i", state="'read'")
    end = ago("-1000000")
    fill(ShareLink, chat_id=f"'{chat.pk}'", token_sha256="'s' || i", until_seq="i", expires_at=end)
    fill(
        InviteLink,
        chat_id=f"'{chat.pk}'",
        token_sha256="'i' || i",
        role="'member'",
        most_uses="1",
        used_count="1",
        expires_at=end,
        revoked_at=ago("i"),
    )
    fill(Presence, id="'presence_' || i", user_id="1000 + i", seen_at=ago("0"))
    fill(PersonSettings, user_id="1000 + i", theme="'dark'")
    fill(
        Profile,
        user_id="1000 + i",
        display_name="'Person ' || i",
        name_key="'person' || i",
        picture_version="'abc'",
    )
    empty = "''" if connection.vendor == "postgresql" else "x''"
    fill(ProfilePicture, profile_id="1000 + i", data=empty)
    fill(BrowserSession, session_key="'key' || i", expire_date=ago("-i"))
    fill(
        LogEntry,
        user_id="1000 + i",
        content_type_id=str(ContentType.objects.get_for_model(Chat).pk),
        action_flag="2",
    )
