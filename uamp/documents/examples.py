"""One worked event of each type, as the reference prints them (UAMP §5 to §7, §11).

Every wire type has exactly one example, and each example is sendable as it is.
"""

from uamp import events as e
from uamp.events.base import Event, type_of
from uamp.types.capabilities import (
    Capabilities,
    FileCapabilities,
    ImageCapabilities,
    ToolCapabilities,
)
from uamp.types.content import ImageContent, MediaUrl, Message, TextContent
from uamp.types.session import (
    Cost,
    FunctionDefinition,
    JsonSchemaFormat,
    ResponseFormat,
    Resume,
    Session,
    SessionConfig,
    SessionPatch,
    ToolDefinition,
    UsageStats,
)

_SESSION = "sess_abc123"
_CHAT = "chat_abc"
_RESPONSE = "resp_abc"
_CALL = "call_abc"
_TIME = 1704067200000
_PICTURE = MediaUrl(url="/api/content/550e8400-e29b-41d4-a716-446655440000")
_PICTURE_ID = "550e8400-e29b-41d4-a716-446655440000"
_USAGE = UsageStats(
    input_tokens=25,
    output_tokens=12,
    total_tokens=37,
    cost=Cost(input_cost=0.000025, output_cost=0.000036, total_cost=0.000061, currency="USD"),
)
_SEARCH = ToolDefinition(
    function=FunctionDefinition(
        name="search",
        description="Search the web",
        parameters={
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    )
)
_ANSWER = TextContent(text="The weather in Paris is 22°C and sunny.")

_CLIENT: tuple[Event, ...] = (
    e.SessionCreate(
        event_id="evt_001",
        session=SessionConfig(instructions="You are a helpful assistant.", tools=(_SEARCH,)),
        agent="weather-bot",
        chat=_CHAT,
        token="eyJ...",  # noqa: S106 - a placeholder
        payment_token="ptok_...",  # noqa: S106 - a placeholder
        client_capabilities=Capabilities(
            id="web-app", provider="example", modalities=("text", "image"), supports_streaming=True
        ),
        resume=Resume(session_id=_SESSION, epoch="e1", after=41),
    ),
    e.SessionUpdate(
        event_id="evt_010",
        session_id=_SESSION,
        token="eyJ_new...",  # noqa: S106 - a placeholder
        session=SessionPatch(instructions="Answer in French."),
    ),
    e.SessionEnd(event_id="evt_099", session_id=_SESSION, reason="user_left"),
    e.CapabilitiesQuery(event_id="evt_005", model="gpt-4o"),
    e.ClientCapabilities(
        event_id="evt_006",
        session_id=_SESSION,
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
        session_id=_SESSION,
        text="What's the weather in Paris?",
        messages=(
            Message(role="system", content="You are a weather assistant."),
            Message(role="user", content="What's the weather in Paris?"),
        ),
        context={"chat_id": _CHAT},
    ),
    e.InputAudio(
        event_id="evt_101", session_id=_SESSION, audio="AAAA", format="pcm16", is_final=True
    ),
    e.InputImage(
        event_id="evt_102",
        session_id=_SESSION,
        image=_PICTURE,
        format="jpeg",
        detail="auto",
        content_id=_PICTURE_ID,
    ),
    e.InputVideo(
        event_id="evt_103",
        session_id=_SESSION,
        video=MediaUrl(url="https://example.com/video.mp4"),
        format="mp4",
    ),
    e.InputFile(
        event_id="evt_104",
        session_id=_SESSION,
        file="JVBERi0=",
        filename="report.pdf",
        mime_type="application/pdf",
    ),
    e.InputTyping(event_id="evt_105", session_id=_SESSION, is_typing=True, chat_id=_CHAT),
    e.ResponseCreate(
        event_id="evt_200",
        session_id=_SESSION,
        response=e.ResponseConfig(modalities=("text",), instructions="Be concise.", tools=()),
        response_format=ResponseFormat(
            type="json_schema",
            json_schema=JsonSchemaFormat(name="weather", schema={"type": "object"}, strict=True),
        ),
    ),
    e.ResponseCancel(event_id="evt_201", session_id=_SESSION, response_id=_RESPONSE),
    e.ToolResult(
        event_id="evt_300",
        session_id=_SESSION,
        call_id=_CALL,
        result='{"temperature": 22, "unit": "celsius"}',
        content_items=(ImageContent(image=_PICTURE, content_id=_PICTURE_ID),),
    ),
    e.ToolApprove(
        event_id="evt_302", session_id=_SESSION, call_id=_CALL, response_id=_RESPONSE, approved=True
    ),
    e.PaymentSubmit(
        event_id="evt_400",
        session_id=_SESSION,
        payment=e.Payment(scheme="token", network="example", token="tok_xxx", amount="10.00"),  # noqa: S106 - a placeholder
    ),
    e.VoiceInvite(
        event_id="evt_600",
        session_id=_SESSION,
        call_id="voice_1",
        chat_id=_CHAT,
        from_="user_a",
        to="user_b",
        media=("audio",),
        sdp=e.SessionDescription(type="offer", sdp="v=0..."),
    ),
    e.VoiceAccept(
        event_id="evt_601",
        session_id=_SESSION,
        call_id="voice_1",
        chat_id=_CHAT,
        from_="user_b",
        media=("audio",),
        sdp=e.SessionDescription(type="answer", sdp="v=0..."),
    ),
    e.VoiceDecline(
        event_id="evt_602", session_id=_SESSION, call_id="voice_1", chat_id=_CHAT, reason="busy"
    ),
    e.VoiceEnd(
        event_id="evt_603",
        session_id=_SESSION,
        call_id="voice_1",
        chat_id=_CHAT,
        duration_ms=61000,
    ),
    e.MessageRead(event_id="evt_610", session_id=_SESSION, chat_id=_CHAT, message_id="msg_1"),
    e.Ping(event_id="ping_001"),
)

_SERVER: tuple[Event, ...] = (
    e.SessionCreated(
        event_id="evt_002",
        session_id=_SESSION,
        seq=41,
        session=Session(
            id=_SESSION,
            created_at=1704067200,
            config=SessionConfig(instructions="You are a helpful assistant."),
            agent="weather-bot",
            agent_id="9f1c2a4e-0000-4000-8000-000000000001",
        ),
        chat=_CHAT,
        agent="weather-bot",
        epoch="e1",
        resumed=False,
    ),
    e.SessionUpdated(event_id="evt_011", session_id=_SESSION),
    e.SessionError(
        event_id="evt_012",
        session_id=_SESSION,
        error=e.ErrorDetail(
            code="agent_offline",
            message="The requested agent is currently unavailable.",
            details={"retry_after": 30},
        ),
    ),
    e.CapabilitiesAnnounced(
        event_id="evt_003",
        session_id=_SESSION,
        capabilities=Capabilities(
            id="gpt-4o",
            provider="openai",
            modalities=("text", "image"),
            supports_streaming=True,
            context_window=128000,
            max_output_tokens=4096,
            image=ImageCapabilities(formats=("jpeg", "png"), detail_levels=("auto", "low", "high")),
            file=FileCapabilities(supports_pdf=True),
            tools=ToolCapabilities(supports_tools=True, built_in_tools=("web_search",)),
        ),
    ),
    e.ResponseCreated(event_id="evt_210", session_id=_SESSION, response_id=_RESPONSE),
    e.ResponseDelta(
        event_id="evt_211",
        session_id=_SESSION,
        response_id=_RESPONSE,
        delta=e.Delta(type="text", text="The weather in Paris is"),
        offset=0,
    ),
    e.ResponseDone(
        event_id="evt_220",
        session_id=_SESSION,
        seq=44,
        response_id=_RESPONSE,
        response=e.ResponseOutput(
            id=_RESPONSE,
            status="completed",
            output=(_ANSWER,),
            usage=_USAGE,
        ),
        signature="eyJ...",
    ),
    e.ResponseError(
        event_id="evt_230",
        session_id=_SESSION,
        response_id=_RESPONSE,
        error=e.ErrorDetail(
            code="rate_limit_exceeded",
            message="Too many requests. Retry after 60 seconds.",
            details={"retry_after": 60},
        ),
    ),
    e.ResponseCancelled(
        event_id="evt_231",
        session_id=_SESSION,
        response_id=_RESPONSE,
        partial_output=(TextContent(text="The weather in"),),
    ),
    e.ToolCall(
        event_id="evt_310",
        session_id=_SESSION,
        call_id=_CALL,
        name="search",
        arguments='{"query": "weather Paris"}',
        response_id=_RESPONSE,
    ),
    e.ToolCallDone(event_id="evt_311", session_id=_SESSION, call_id=_CALL, response_id=_RESPONSE),
    e.ToolApprovalRequired(
        event_id="evt_312",
        session_id=_SESSION,
        call_id=_CALL,
        name="delete_file",
        arguments='{"path": "report.csv"}',
        response_id=_RESPONSE,
        agent="files",
        user_id="7",
        expires_at=1704153600,
    ),
    e.ToolApprovalDone(
        event_id="evt_313",
        session_id=_SESSION,
        call_id=_CALL,
        response_id=_RESPONSE,
        approved=True,
        user_id="7",
        username="alice",
    ),
    e.Progress(
        event_id="evt_500",
        session_id=_SESSION,
        target="tool",
        target_id=_CALL,
        stage="searching",
        message="Searching the web...",
        percent=50,
        step=2,
        total_steps=4,
    ),
    e.Thinking(
        event_id="evt_510",
        session_id=_SESSION,
        content="Let me analyze the weather data step by step...",
        stage="analysis",
        is_delta=True,
        response_id=_RESPONSE,
    ),
    e.AudioDelta(event_id="evt_520", session_id=_SESSION, response_id=_RESPONSE, audio="AAAA"),
    e.AudioDone(event_id="evt_521", session_id=_SESSION, response_id=_RESPONSE, duration_ms=3200),
    e.TranscriptDelta(
        event_id="evt_530", session_id=_SESSION, response_id=_RESPONSE, transcript="The weather"
    ),
    e.TranscriptDone(
        event_id="evt_531",
        session_id=_SESSION,
        response_id=_RESPONSE,
        transcript="The weather in Paris is sunny.",
    ),
    e.UsageDelta(
        event_id="evt_540",
        session_id=_SESSION,
        response_id=_RESPONSE,
        delta=UsageStats(output_tokens=5),
    ),
    e.RateLimit(
        event_id="evt_550", session_id=_SESSION, limit=100, remaining=3, reset_at=1704067260
    ),
    e.PresenceTyping(
        event_id="evt_560",
        session_id=_SESSION,
        user_id="user_a",
        username="alice",
        is_typing=True,
        chat_id=_CHAT,
    ),
    e.PresenceOnline(
        event_id="evt_561",
        session_id=_SESSION,
        user_id="user_a",
        username="alice",
        kind="user",
        chat_id=_CHAT,
    ),
    e.PresenceOffline(
        event_id="evt_562",
        session_id=_SESSION,
        user_id="user_a",
        username="alice",
        kind="user",
        chat_id=_CHAT,
        last_seen_at=_TIME,
    ),
    e.MessageCreated(
        event_id="evt_570",
        session_id=_SESSION,
        seq=45,
        chat_id=_CHAT,
        message=e.ChatMessage(
            id="msg_1",
            role="assistant",
            content=_ANSWER.text,
            content_items=(_ANSWER,),
            name="weather-bot",
            sender_id="9f1c2a4e-0000-4000-8000-000000000001",
            sender_kind="agent",
            created_at=_TIME,
            response_id=_RESPONSE,
        ),
    ),
    e.PaymentRequired(
        event_id="evt_410",
        session_id=_SESSION,
        response_id=_RESPONSE,
        requirements=e.PaymentRequirements(
            amount="10.00",
            currency="USD",
            schemes=(
                e.PaymentScheme(scheme="token", network="example"),
                e.PaymentScheme(scheme="crypto", network="base", address="0x..."),
            ),
            expires_at=1704067500,
            reason="llm_usage",
        ),
    ),
    e.PaymentAccepted(
        event_id="evt_411",
        session_id=_SESSION,
        payment_id="pay_1",
        response_id=_RESPONSE,
        balance_remaining="9.50",
    ),
    e.PaymentBalance(
        event_id="evt_420",
        session_id=_SESSION,
        balance="9.50",
        currency="USD",
        low_balance_warning=False,
        estimated_remaining=190,
        expires_at=1704153600,
    ),
    e.PaymentError(
        event_id="evt_430",
        session_id=_SESSION,
        code="insufficient_balance",
        message="Insufficient balance to process request.",
        balance_required="0.05",
        balance_current="0.00",
        can_retry=True,
    ),
    e.Pong(event_id="pong_001", reply_to="ping_001"),
)

_SYSTEM: tuple[Event, ...] = (
    e.SystemError(
        event_id="evt_900",
        error=e.ErrorDetail(code="internal_error", message="The handler failed."),
    ),
    e.SystemStop(event_id="evt_901", reason="shutdown"),
    e.SystemCancel(event_id="evt_902", reason="shutdown"),
    e.SystemPing(event_id="evt_903"),
    e.SystemPong(event_id="evt_904"),
    e.SystemUnroutable(event_id="evt_905", message_type="analyze_emotion"),
)

EXAMPLES: dict[str, Event] = {type_of(event): event for event in (*_CLIENT, *_SERVER, *_SYSTEM)}
