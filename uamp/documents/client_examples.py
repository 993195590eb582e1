"""One example of each event that a client sends (UAMP §5, §7)."""

from uamp import events as e
from uamp.documents.example_values import CALL, CHAT, PICTURE, PICTURE_ID, RESPONSE, SEARCH, SESSION
from uamp.events.base import Event
from uamp.types.capabilities import (
    Capabilities,
)
from uamp.types.content import ImageContent, MediaUrl, Message
from uamp.types.session import (
    JsonSchemaFormat,
    ResponseFormat,
    Resume,
    SessionConfig,
    SessionPatch,
)

CLIENT_EXAMPLES: tuple[Event, ...] = (
    e.SessionCreate(
        event_id="evt_001",
        session=SessionConfig(instructions="You are a helpful assistant.", tools=(SEARCH,)),
        agent="weather-bot",
        chat=CHAT,
        token="eyJ...",  # noqa: S106 - a placeholder
        payment_token="ptok_...",  # noqa: S106 - a placeholder
        client_capabilities=Capabilities(
            id="web-app", provider="example", modalities=("text", "image"), supports_streaming=True
        ),
        resume=Resume(session_id=SESSION, epoch="e1", after=41),
    ),
    e.SessionUpdate(
        event_id="evt_010",
        session_id=SESSION,
        token="eyJ_new...",  # noqa: S106 - a placeholder
        session=SessionPatch(instructions="Answer in French."),
    ),
    e.StateUpdate(
        event_id="evt_303",
        session_id=SESSION,
        patch=({"op": "replace", "path": "/steps/0/done", "value": True},),
        version=3,
    ),
    e.SessionEnd(event_id="evt_099", session_id=SESSION, reason="user_left"),
    e.CapabilitiesQuery(event_id="evt_005", model="gpt-4o"),
    e.ClientCapabilities(
        event_id="evt_006",
        session_id=SESSION,
        capabilities=Capabilities(
            id="web-app",
            provider="example",
            modalities=("text", "image", "audio"),
            supports_streaming=True,
            widgets=("chart", "table"),
        ),
    ),
    e.InputText(
        event_id="evt_100",
        session_id=SESSION,
        text="What's the weather in Paris?",
        messages=(
            Message(role="system", content="You are a weather assistant."),
            Message(role="user", content="What's the weather in Paris?"),
        ),
        context={"chat_id": CHAT},
    ),
    e.InputAudio(
        event_id="evt_101", session_id=SESSION, audio="AAAA", format="pcm16", is_final=True
    ),
    e.InputImage(
        event_id="evt_102",
        session_id=SESSION,
        image=PICTURE,
        format="jpeg",
        detail="auto",
        content_id=PICTURE_ID,
    ),
    e.InputVideo(
        event_id="evt_103",
        session_id=SESSION,
        video=MediaUrl(url="https://example.com/video.mp4"),
        format="mp4",
    ),
    e.InputFile(
        event_id="evt_104",
        session_id=SESSION,
        file="JVBERi0=",
        filename="report.pdf",
        mime_type="application/pdf",
    ),
    e.InputTyping(event_id="evt_105", session_id=SESSION, is_typing=True, chat_id=CHAT),
    e.ResponseCreate(
        event_id="evt_200",
        session_id=SESSION,
        response=e.ResponseConfig(modalities=("text",), instructions="Be concise.", tools=()),
        response_format=ResponseFormat(
            type="json_schema",
            json_schema=JsonSchemaFormat(name="weather", schema={"type": "object"}, strict=True),
        ),
    ),
    e.ResponseCreate(event_id="evt_202", session_id=SESSION, replaces="msg_1"),
    e.ResponseCancel(event_id="evt_201", session_id=SESSION, response_id=RESPONSE),
    e.ToolResult(
        event_id="evt_300",
        session_id=SESSION,
        call_id=CALL,
        result='{"temperature": 22, "unit": "celsius"}',
        content_items=(ImageContent(image=PICTURE, content_id=PICTURE_ID),),
    ),
    e.ToolApprove(
        event_id="evt_302", session_id=SESSION, call_id=CALL, response_id=RESPONSE, approved=True
    ),
    e.PaymentSubmit(
        event_id="evt_400",
        session_id=SESSION,
        payment=e.Payment(scheme="token", network="example", token="tok_xxx", amount="10.00"),  # noqa: S106 - a placeholder
    ),
    e.VoiceInvite(
        event_id="evt_600",
        session_id=SESSION,
        call_id="voice_1",
        chat_id=CHAT,
        from_="user_a",
        to="user_b",
        media=("audio",),
        sdp=e.SessionDescription(type="offer", sdp="v=0..."),
    ),
    e.VoiceAccept(
        event_id="evt_601",
        session_id=SESSION,
        call_id="voice_1",
        chat_id=CHAT,
        from_="user_b",
        media=("audio",),
        sdp=e.SessionDescription(type="answer", sdp="v=0..."),
    ),
    e.VoiceDecline(
        event_id="evt_602", session_id=SESSION, call_id="voice_1", chat_id=CHAT, reason="busy"
    ),
    e.VoiceEnd(
        event_id="evt_603",
        session_id=SESSION,
        call_id="voice_1",
        chat_id=CHAT,
        duration_ms=61000,
    ),
    e.CallSignal(
        event_id="evt_604",
        session_id=SESSION,
        call_id="voice_1",
        chat_id=CHAT,
        from_="user_a",
        to="user_b",
        candidate=e.IceCandidate(
            candidate="candidate:1 1 udp 2122260223 192.0.2.1 54400 typ host",
            sdp_mid="0",
            sdp_m_line_index=0,
        ),
    ),
    e.CallAgentAdd(
        event_id="evt_607", session_id=SESSION, call_id="voice_1", chat_id=CHAT, agent="speaker"
    ),
    e.CallAgentRemove(
        event_id="evt_608", session_id=SESSION, call_id="voice_1", chat_id=CHAT, agent="speaker"
    ),
    e.CallAgentState(
        event_id="evt_609",
        session_id=SESSION,
        call_id="voice_1",
        chat_id=CHAT,
        from_="user_a",
        agent="speaker",
        state="speaks",
    ),
    e.QueueRemove(event_id="evt_640", session_id=SESSION, item_id="12"),
    e.QueueStart(event_id="evt_641", session_id=SESSION, item_id="12"),
    e.MessageRead(event_id="evt_610", session_id=SESSION, chat_id=CHAT, message_id="msg_1"),
    e.MessageEdit(
        event_id="evt_611",
        session_id=SESSION,
        message_id="msg_0",
        content="What's the weather in Lyon?",
        revision=0,
        ask_again=True,
    ),
    e.MessageDelete(event_id="evt_612", session_id=SESSION, message_id="msg_0"),
    e.MessagePin(event_id="evt_613", session_id=SESSION, message_id="msg_1"),
    e.MessageUnpin(event_id="evt_614", session_id=SESSION, message_id="msg_1"),
    e.ReactionAdd(
        event_id="evt_615", session_id=SESSION, message_id="msg_1", emoji="\N{PARTY POPPER}"
    ),
    e.ReactionRemove(
        event_id="evt_616", session_id=SESSION, message_id="msg_1", emoji="\N{PARTY POPPER}"
    ),
    e.ChatUpdate(event_id="evt_620", session_id=SESSION, title="Trip to Lyon", avatar="\N{ROCKET}"),
    e.ChatFork(event_id="evt_627", session_id=SESSION, message_id="msg_1", key="fork_1"),
    e.ParticipantAdd(event_id="evt_621", session_id=SESSION, user="bob"),
    e.ParticipantRemove(event_id="evt_622", session_id=SESSION, participant_id=7),
    e.ParticipantUpdate(
        event_id="evt_623",
        session_id=SESSION,
        participant_id=8,
        trigger="keyword",
        keywords=("weather",),
        context="last",
        context_messages=20,
        budget="2.50",
        budget_period="day",
    ),
    e.ChatsWatch(event_id="evt_630"),
    e.Ping(event_id="ping_001"),
)
