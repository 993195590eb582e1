"""The scripts of agents that need no model: their answers to a conversation.

A script depends only on the agent and the request. Called again after an interruption, it continues
where its answer broke off.
"""

import re
from collections.abc import AsyncGenerator, Callable
from typing import Any

from agents_app.conversation.state_changes import SET_STATE, state_in
from agents_app.providers.guide import guide_text
from agents_app.selectors import AgentSpec
from uap.uamp_adapter.history import attachments_of
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

MAX_PIECES = 1000
"""Longer answers have several words per piece, since every piece costs work along the way."""

_PIECE = re.compile(r"\s*\S+\s*|\s+")


def user_text(agent: AgentSpec, request: LLMRequest) -> str:
    """Return the user's last message, without a leading mention of the agent."""
    for message in reversed(request.messages):
        if isinstance(message, UserMessage):
            texts = (block.text for block in message.content if isinstance(block, TextBlock))
            return _without_mention(agent.name, "\n".join(texts))
    return ""


def written_text(request: LLMRequest) -> str:
    """Return the part of this answer that was written before it was interrupted."""
    last = request.messages[-1] if request.messages else None
    return last.text if isinstance(last, AssistantMessage) else ""


async def echo(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Repeat the user's text, one piece per word."""
    text = user_text(agent, request) or "There are no words to say back."
    for piece in _pieces(text.removeprefix(written_text(request))):
        yield Text(piece)


async def asker(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Mention the agents named in the option `asks`, followed by the text of the option `says`."""
    mentions = " ".join(f"@{name}" for name in agent.options.get("asks", ()))
    question = agent.options.get("says", "What do you think?")
    for piece in _pieces(f"{mentions} {question}".strip().removeprefix(written_text(request))):
        yield Text(piece)


async def slow(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Count to 200 in words, over about ten seconds."""
    begun = len(written_text(request).split())
    for number in range(begun + 1, SLOW_WORDS + 1):
        yield Text(f"word{number}" if number == 1 else f" word{number}")
        yield Pause(SLOW_PAUSE)


async def tool_user(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Call the first tool that the session declares, with the user's text as the query."""
    result = _result(request)
    if result is not None:
        outcome = "failed" if result.is_error else "answered"
        text = f"The tool {outcome}: {result.result}"
    elif request.tools:
        yield Call(name=request.tools[0].name, arguments={"query": user_text(agent, request)})
        return
    else:
        text = "This session declares no tools. Declare one in session.tools and ask me again."
    for piece in _pieces(text.removeprefix(written_text(request))):
        yield Text(piece)


async def thinker(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Think in pieces, then answer."""
    text = user_text(agent, request)
    text_so_far = written_text(request)
    if not text_so_far:
        words = len(text.split())
        thought = (
            f"The question has {words} words. First I read it. Then I see what it asks for."
            " Then I say what I found."
        )
        for piece in _pieces(thought):
            yield Reasoning(piece)
    for piece in _pieces(f"I thought about it. You asked: {text}".removeprefix(text_so_far)):
        yield Text(piece)


async def fail(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Write half an answer, then fail like a provider."""
    pieces = list(_pieces(f"This answer to {user_text(agent, request)!r} will never be complete"))
    for piece in pieces[: len(pieces) // 2]:
        yield Text(piece)
    yield Fail(
        UPPError(
            "The script fails on purpose.",
            code=ErrorCode.PROVIDER_ERROR,
            provider="scripted",
        )
    )


async def report(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Have csv_report read the last CSV file in the conversation, and repeat its findings."""
    result = _result(request)
    if result is not None:
        text = _without_labels(str(result.result))
        if result.is_error:
            text = f"I could not make the report. {text}"
    elif (content_id := _last_csv(request)) is not None:
        yield Call(name="csv_report", arguments={"content_id": content_id})
        return
    else:
        text = (
            "I make a report of a CSV file. Attach one to your message (the paper clip beside the"
            " text field, or an input.file event) and ask me again."
        )
    for piece in _pieces(text.removeprefix(written_text(request))):
        yield Text(piece)


async def studio(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Have another agent edit the last picture in the conversation, and show the result."""
    done = _done(request)
    called, result = done[-1] if done else ("", None)
    if result is None:
        picture = _last_picture(request)
        if picture is not None and agent.delegates:
            order = {
                "agent": agent.delegates[0][0],
                "task": user_text(agent, request),
                "attachments": [picture],
            }
            yield Call(name="delegate", arguments=order)
            return
        text = _NO_PICTURE if agent.delegates else "I know no agent that could edit a picture."
    elif called == "delegate" and not result.is_error and (made := _pictures(str(result.result))):
        yield Call(
            name="present",
            arguments={"content_ids": list(made), "caption": "; ".join(made.values())[:1000]},
        )
        return
    elif called == "delegate":
        text = _without_labels(str(result.result))
    elif result.is_error:
        text = f"I have the picture, but I cannot show it. {result.result}"
    else:
        text = f"Here it is. {_without_labels(str(done[0][1].result))}"
    for piece in _pieces(text.removeprefix(written_text(request))):
        yield Text(piece)


async def darkroom(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Edit the last picture in the conversation as the user asks."""
    result, picture = _result(request), _last_picture(request)
    changes = _wanted_changes(user_text(agent, request))
    if result is not None:
        text = _without_labels(str(result.result))
        if result.is_error:
            text = f"I could not edit the picture. {text}"
    elif picture is None:
        text = _NO_PICTURE
    elif not changes:
        text = (
            "Say what to do with the picture: black and white, turn it (left, right or upside"
            " down), smaller, more or less contrast, or a caption in quotes."
        )
    else:
        yield Call(name="edit_picture", arguments={"content_id": picture, **changes})
        return
    for piece in _pieces(text.removeprefix(written_text(request))):
        yield Text(piece)


_NO_PICTURE = (
    "I edit pictures. Attach one to your message (the paper clip beside the text field, or an"
    " input.image event) and say what to do with it."
)
_LABEL = re.compile(r"^\[\w+: content_id=.*\]$", re.MULTILINE)
_PICTURE = re.compile(r"^\[image: content_id=([0-9a-f-]{36})(?:, (.*))?\]$", re.MULTILINE)
_QUOTED = re.compile(r"[\"“]([^\"”]{1,120})[\"”]")


def _wanted_changes(text: str) -> dict[str, Any]:
    """Return the requested changes as arguments of edit_picture."""
    changes: dict[str, Any] = {}
    quoted = _QUOTED.search(text)
    if quoted is not None:
        changes["caption"] = quoted[1]
        text = text.replace(quoted[0], "")
    text = text.casefold()
    if re.search(r"black.and.white|gr[ae]y|monochrome", text):
        changes["grayscale"] = True
    if "contrast" in text:
        changes["contrast"] = 0.6 if re.search(r"less|weaker|soft", text) else 1.6
    if re.search(r"small|thumbnail|shrink", text):
        changes["thumbnail"] = 320
    if re.search(r"turn|rotate|upside", text):
        changes["rotate"] = 180 if "upside" in text else 270 if "left" in text else 90
    return changes


async def guide(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Explain this server to a person whose assistant has no model."""
    text = guide_text(user_text(agent, request))
    for piece in _pieces(text.removeprefix(written_text(request))):
        yield Text(piece)


async def checklist(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Add the user's text to the list `items` in the chat's shared state."""
    result = _result(request)
    if result is None:
        item, state = user_text(agent, request), state_in(request.system or "")
        has_items = isinstance(state.value.get("items"), list)
        change = (
            {"op": "add", "path": "/items/-", "value": item}
            if has_items
            else {"op": "add", "path": "/items", "value": [item]}
        )
        yield Call(name=SET_STATE, arguments={"patch": [change], "version": state.version})
        return
    text = str(result.result) if result.is_error else f"It is on the list. {result.result}"
    for piece in _pieces(text.removeprefix(written_text(request))):
        yield Text(piece)


SCRIPTS: dict[str, AgentScript] = {
    "echo": echo,
    "asker": asker,
    "slow": slow,
    "tool-user": tool_user,
    "thinker": thinker,
    "fail": fail,
    "report": report,
    "studio": studio,
    "darkroom": darkroom,
    "guide": guide,
    "checklist": checklist,
}


def _pieces(text: str) -> list[str]:
    """Split a text into words, or into at most MAX_PIECES groups of words."""
    words = _PIECE.findall(text)
    together = -(-len(words) // MAX_PIECES)
    if together <= 1:
        return words
    return ["".join(words[n : n + together]) for n in range(0, len(words), together)]


def _without_mention(name: str, text: str) -> str:
    mention = re.compile(rf"\s*@{re.escape(name)}(?![\w.-]*\w)[:,]?\s*", re.IGNORECASE)
    match = mention.match(text)
    return text[match.end() :] if match else text


_TABLES = {"text/csv", "text/tab-separated-values"}


def _last_csv(request: LLMRequest) -> str | None:
    for message in reversed(request.messages):
        for attached in reversed(attachments_of(message)):
            named = attached["filename"].casefold().endswith((".csv", ".tsv"))
            if attached["content_id"] and (named or attached["mime_type"] in _TABLES):
                return str(attached["content_id"])
    return None


def _last_picture(request: LLMRequest) -> str | None:
    """Return the newest picture, either attached by a person or made by a tool."""
    for message in reversed(request.messages):
        if isinstance(message, ToolResultMessage):
            made = [i for r in message.results for i in _pictures(str(r.result))]
            if made:
                return made[-1]
        for attached in reversed(attachments_of(message)):
            if attached["content_id"] and attached["kind"] == "image":
                return str(attached["content_id"])
    return None


def _pictures(text: str) -> dict[str, str]:
    """Return the pictures named in a tool's result (uamp.content_labels): ids and reasons."""
    return dict(_PICTURE.findall(text))


def _without_labels(text: str) -> str:
    return _LABEL.sub("", text).strip()


def _result(request: LLMRequest) -> ToolResult | None:
    """Return the last tool result since the user's last message."""
    done = _done(request)
    return done[-1][1] if done else None


def _done(request: LLMRequest) -> list[tuple[str, ToolResult]]:
    """Return the tools called since the user's last message, with their results, in order."""
    called: dict[str, str] = {}
    done: list[tuple[str, ToolResult]] = []
    for message in request.messages:
        if isinstance(message, UserMessage):
            done.clear()
        elif isinstance(message, AssistantMessage):
            called.update((c.tool_call_id, c.tool_name) for c in message.tool_calls or ())
        elif isinstance(message, ToolResultMessage):
            done += [(called.get(r.tool_call_id, ""), r) for r in message.results]
    return done
