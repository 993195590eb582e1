"""One example of each server event about sessions and answers (UAMP §5, §6)."""

from uamp import events as e
from uamp.documents.example_values import (
    ANSWER,
    CALL,
    CHAT,
    RESPONSE,
    SESSION,
    USAGE,
)
from uamp.events.base import Event
from uamp.types.capabilities import (
    Capabilities,
    ConversationCapabilities,
    FileCapabilities,
    ImageCapabilities,
    ToolCapabilities,
)
from uamp.types.content import TextContent
from uamp.types.session import (
    Session,
    SessionConfig,
    UsageStats,
)

SERVER_EXAMPLES: tuple[Event, ...] = (
    e.SessionCreated(
        event_id="evt_002",
        session_id=SESSION,
        seq=41,
        session=Session(
            id=SESSION,
            created_at=1704067200,
            config=SessionConfig(instructions="You are a helpful assistant."),
            agent="weather-bot",
            agent_id="9f1c2a4e-0000-4000-8000-000000000001",
        ),
        chat=CHAT,
        agent="weather-bot",
        epoch="e1",
        resumed=False,
    ),
    e.SessionUpdated(event_id="evt_011", session_id=SESSION),
    e.SessionError(
        event_id="evt_012",
        session_id=SESSION,
        error=e.ErrorDetail(
            code="agent_offline",
            message="The requested agent is currently unavailable.",
            details={"retry_after": 30},
        ),
    ),
    e.CapabilitiesAnnounced(
        event_id="evt_003",
        session_id=SESSION,
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
            conversation=ConversationCapabilities(
                client_events=("message.edit", "reaction.add"),
                server_events=("message.created", "message.edited", "reaction.added"),
                features=("edits", "reactions", "search"),
            ),
        ),
    ),
    e.ResponseCreated(event_id="evt_210", session_id=SESSION, response_id=RESPONSE),
    e.ResponseDelta(
        event_id="evt_211",
        session_id=SESSION,
        response_id=RESPONSE,
        delta=e.Delta(type="text", text="The weather in Paris is"),
        offset=0,
    ),
    e.ResponseDone(
        event_id="evt_220",
        session_id=SESSION,
        seq=44,
        response_id=RESPONSE,
        response=e.ResponseOutput(
            id=RESPONSE,
            status="completed",
            output=(ANSWER,),
            usage=USAGE,
        ),
        signature="eyJ...",
    ),
    e.ResponseError(
        event_id="evt_230",
        session_id=SESSION,
        response_id=RESPONSE,
        error=e.ErrorDetail(
            code="rate_limit_exceeded",
            message="Too many requests. Retry after 60 seconds.",
            details={"retry_after": 60},
        ),
    ),
    e.ResponseCancelled(
        event_id="evt_231",
        session_id=SESSION,
        response_id=RESPONSE,
        partial_output=(TextContent(text="The weather in"),),
        user_id="7",
        username="alice",
    ),
    e.ToolCall(
        event_id="evt_310",
        session_id=SESSION,
        call_id=CALL,
        name="search",
        arguments='{"query": "weather Paris"}',
        response_id=RESPONSE,
    ),
    e.ToolCallDone(event_id="evt_311", session_id=SESSION, call_id=CALL, response_id=RESPONSE),
    e.ToolApprovalRequired(
        event_id="evt_312",
        session_id=SESSION,
        call_id=CALL,
        name="delete_file",
        arguments='{"path": "report.csv"}',
        response_id=RESPONSE,
        agent="files",
        user_id="7",
        expires_at=1704153600,
    ),
    e.ToolApprovalDone(
        event_id="evt_313",
        session_id=SESSION,
        call_id=CALL,
        response_id=RESPONSE,
        approved=True,
        user_id="7",
        username="alice",
    ),
    e.StateUpdated(
        event_id="evt_304",
        session_id=SESSION,
        seq=46,
        chat_id=CHAT,
        version=4,
        patch=({"op": "replace", "path": "/steps/0/done", "value": True},),
        agent="weather-bot",
        response_id=RESPONSE,
    ),
    e.Progress(
        event_id="evt_500",
        session_id=SESSION,
        target="tool",
        target_id=CALL,
        stage="searching",
        message="Searching the web...",
        percent=50,
        step=2,
        total_steps=4,
    ),
    e.Thinking(
        event_id="evt_510",
        session_id=SESSION,
        content="Let me analyze the weather data step by step...",
        stage="analysis",
        is_delta=True,
        response_id=RESPONSE,
    ),
    e.AudioDelta(event_id="evt_520", session_id=SESSION, response_id=RESPONSE, audio="AAAA"),
    e.AudioDone(event_id="evt_521", session_id=SESSION, response_id=RESPONSE, duration_ms=3200),
    e.TranscriptDelta(
        event_id="evt_530", session_id=SESSION, response_id=RESPONSE, transcript="The weather"
    ),
    e.TranscriptDone(
        event_id="evt_531",
        session_id=SESSION,
        response_id=RESPONSE,
        transcript="The weather in Paris is sunny.",
    ),
    e.UsageDelta(
        event_id="evt_540",
        session_id=SESSION,
        response_id=RESPONSE,
        delta=UsageStats(output_tokens=5),
    ),
    e.RateLimit(
        event_id="evt_550", session_id=SESSION, limit=100, remaining=3, reset_at=1704067260
    ),
)
