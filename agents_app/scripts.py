"""Scripts of the agents that need no model: what they answer to a conversation.

The law: a script is a function of the agent and the request alone. Asked again after an
interruption, it goes on after what it has said already.
"""

import re
from collections.abc import AsyncGenerator, Callable

from agents_app.history import attachments_of
from agents_app.selectors import AgentSpec
from upp import (
    AssistantMessage,
    ErrorCode,
    LLMRequest,
    TextBlock,
    ToolResult,
    ToolResultMessage,
    UPPError,
    UserMessage,
)
from upp.providers.scripted import Call, Fail, Pause, Reasoning, Step, Text

AgentScript = Callable[[AgentSpec, LLMRequest], AsyncGenerator[Step, None]]

SLOW_WORDS = 200
SLOW_PAUSE = 0.05
"""Seconds between two words of the slow agent: 200 words take about ten seconds."""

_PIECE = re.compile(r"\s*\S+\s*|\s+")


def asked_text(agent: AgentSpec, request: LLMRequest) -> str:
    """Return what the user wrote last, without a mention of the agent at its start."""
    for message in reversed(request.messages):
        if isinstance(message, UserMessage):
            texts = (block.text for block in message.content if isinstance(block, TextBlock))
            return _without_mention(agent.name, "\n".join(texts))
    return ""


def said_so_far(request: LLMRequest) -> str:
    """Return what this answer said before it was interrupted."""
    last = request.messages[-1] if request.messages else None
    return last.text if isinstance(last, AssistantMessage) else ""


async def echo(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Say the user's words back, one delta per word, so that they add up to the text."""
    text = asked_text(agent, request) or "There are no words to say back."
    for piece in _pieces(text.removeprefix(said_so_far(request))):
        yield Text(piece)


async def slow(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Count to 200 in words, over about ten seconds."""
    begun = len(said_so_far(request).split())
    for number in range(begun + 1, SLOW_WORDS + 1):
        yield Text(f"word{number}" if number == 1 else f" word{number}")
        yield Pause(SLOW_PAUSE)


async def tool_user(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Call the first tool that the session declares with the user's text as query."""
    result = _result(request)
    if result is not None:
        outcome = "failed" if result.is_error else "answered"
        said = f"The tool {outcome}: {result.result}"
    elif request.tools:
        yield Call(name=request.tools[0].name, arguments={"query": asked_text(agent, request)})
        return
    else:
        said = "This session declares no tools. Declare one in session.tools and ask me again."
    for piece in _pieces(said.removeprefix(said_so_far(request))):
        yield Text(piece)


async def thinker(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Think in pieces, then answer."""
    text = asked_text(agent, request)
    said = said_so_far(request)
    if not said:
        words = len(text.split())
        thought = (
            f"The question has {words} words. First I read it. Then I see what it asks for."
            " Then I say what I found."
        )
        for piece in _pieces(thought):
            yield Reasoning(piece)
    for piece in _pieces(f"I thought about it. You asked: {text}".removeprefix(said)):
        yield Text(piece)


async def fail(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Give half an answer, then fail like a provider."""
    pieces = list(_pieces(f"This answer to {asked_text(agent, request)!r} will never be complete"))
    for piece in pieces[: len(pieces) // 2]:
        yield Text(piece)
    yield Fail(
        UPPError(
            "The scripted provider was told to fail.",
            code=ErrorCode.PROVIDER_ERROR,
            provider="scripted",
        )
    )


async def report(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Have csv_report look at the last CSV file of the conversation, and say what it found."""
    result = _result(request)
    if result is not None:
        said = str(result.result)
        if result.is_error:
            said = f"I could not make the report. {said}"
    elif (content_id := _last_csv(request)) is not None:
        yield Call(name="csv_report", arguments={"content_id": content_id})
        return
    else:
        said = (
            "I make a report of a CSV file. Attach one to your message (the paper clip beside the"
            " text field, or an input.file event) and ask me again."
        )
    for piece in _pieces(said.removeprefix(said_so_far(request))):
        yield Text(piece)


async def guide(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Explain this server to somebody who talks to an assistant without a model."""
    text = asked_text(agent, request).casefold()
    topics = [said for words, said in _TOPICS.items() if any(word in text for word in words)]
    said = "\n\n".join((_GUIDE_OPENING, *(topics or [_GUIDE_OVERVIEW])))
    for piece in _pieces(said.removeprefix(said_so_far(request))):
        yield Text(piece)


_GUIDE_OPENING = (
    "No model is configured on this server, so a script answers you. To talk to a model, its"
    " operator sets OPENAI_API_KEY or OPENAI_BASE_URL and restarts the server."
)
_GUIDE_OVERVIEW = (
    "Until then you can try what works without one. Write **@echo** and some words to see them"
    " streamed back, **@slow** for a long answer that you can stop, **@thinker** for visible"
    " thinking, **@tool-user** for tools of your own program, **@fail** for an answer that breaks"
    " off, and **@report** with a CSV file attached for a report with a chart. Ask me about"
    " *agents*, *files*, *chats* or the *API* to read more."
)
_TOPICS = {
    ("agent", "@", "mention"): (
        "**Agents** answer when you mention them: write @ and a name. An operator adds them in the"
        " admin under Agents: with a script, or with a model of an OpenAI-compatible server."
    ),
    ("file", "csv", "upload", "attach", "image", "picture"): (
        "**Files** are attached with the paper clip, or pasted, or dropped on the chat. @report"
        " reads a CSV file and answers with a table and a chart."
    ),
    ("chat", "invite", "group", "member"): (
        "**Chats** can have several people and agents in them. Everybody sees an answer while it"
        " is written, and a lost connection goes on where it was."
    ),
    ("api", "protocol", "uamp", "websocket", "program", "curl"): (
        "**Programs** speak UAMP 1.0 to this server: open a WebSocket at /uamp, send"
        " session.create, input.text and response.create, and read response.delta events until"
        " response.done. An API key is made under your account."
    ),
}


SCRIPTS: dict[str, AgentScript] = {
    "echo": echo,
    "slow": slow,
    "tool-user": tool_user,
    "thinker": thinker,
    "fail": fail,
    "report": report,
    "guide": guide,
}


def _pieces(text: str) -> list[str]:
    return _PIECE.findall(text)


def _without_mention(name: str, text: str) -> str:
    mention = re.compile(rf"\s*@{re.escape(name)}(?![\w.-]*\w)[:,]?\s*", re.IGNORECASE)
    found = mention.match(text)
    return text[found.end() :] if found else text


def _last_csv(request: LLMRequest) -> str | None:
    for message in reversed(request.messages):
        for attached in reversed(attachments_of(message)):
            named = attached["filename"].casefold().endswith(".csv")
            if attached["content_id"] and (named or attached["mime_type"] == "text/csv"):
                return str(attached["content_id"])
    return None


def _result(request: LLMRequest) -> ToolResult | None:
    """Return the last tool result since the user spoke."""
    for message in reversed(request.messages):
        if isinstance(message, ToolResultMessage):
            return message.results[-1]
        if isinstance(message, UserMessage):
            break
    return None
