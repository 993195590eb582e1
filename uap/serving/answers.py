"""One answer of a served agent, from `input.text` to the events of a response (UAMP §6)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from uamp.errors import ErrorCode
from uamp.events import (
    Delta,
    ErrorDetail,
    InputText,
    ResponseCancelled,
    ResponseCreated,
    ResponseDelta,
    ResponseDone,
    ResponseError,
    ResponseOutput,
    ToolResult,
)
from uamp.events.base import Event
from uamp.output import OutputBuilder
from uamp.types.content import Message
from uamp.types.session import UsageStats
from uap import Agent, AgentState, AgentStreamEvent
from uap.serving.chat_tools import ChatTools
from uap.serving.link import RequestedAnswer
from uap.serving.options import params_for
from uap.uamp_adapter.history import Conversation, open_ended, to_conversation
from uap.uamp_adapter.media import MediaLoader
from uap.uamp_adapter.stream import Translator, usage_stats
from upp import ErrorCode as ProviderErrorCode
from upp import TokenUsage, TooManyRoundsError, Turn, UPPError

logger = logging.getLogger(__name__)

Send = Callable[[Event], Awaitable[None]]

_FINISH_REASONS = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
_FAILURES = {
    ProviderErrorCode.RATE_LIMITED: (
        ErrorCode.RATE_LIMIT_EXCEEDED,
        "The agent's model is receiving too many requests. Try again later.",
    ),
    ProviderErrorCode.CONTEXT_LENGTH_EXCEEDED: (
        ErrorCode.CONTEXT_LENGTH_EXCEEDED,
        "The conversation is too long for the agent's model.",
    ),
    ProviderErrorCode.CONTENT_FILTERED: (
        ErrorCode.CONTENT_FILTERED,
        "The model's provider filtered the answer.",
    ),
    ProviderErrorCode.TIMEOUT: (
        ErrorCode.TIMEOUT,
        "The agent's model did not answer in time.",
    ),
}
"""Error messages for people, by provider error; the provider's own message stays in the log."""


class ServedAnswer:
    """Runs an agent for one answer and sends its events.

    Its task calls `run` and the daemon's reader calls `take_result`, on one event loop.

    The agent keeps nothing between answers: the server sends the conversation. The agent's own
    checkpoints are not used, since they could belong to another chat.
    """

    def __init__(
        self, bot: Agent, answer: RequestedAnswer, *, media: MediaLoader, send: Send
    ) -> None:
        self.ends_interrupted = False
        """Whether a cancelled run reports an interruption instead of a cancellation by a person."""
        self.has_ended = False
        """Whether the terminal event has been sent or is being sent."""
        self._bot = replace(bot, checkpoints=None, session_id=None)
        self._answer = answer
        self._media = media
        self._send = send
        self._used = TokenUsage()
        self._output = OutputBuilder()
        self._chat_tools = ChatTools(
            answer.input,
            agent_tools=[tool.name for tool in bot.tools],
            response_id=answer.response_id,
            send=send,
        )
        self._translator = Translator(answer.response_id, client_tools=self._chat_tools.names)

    def take_result(self, result: ToolResult) -> None:
        """Process the result of a call of the chat's tool."""
        self._chat_tools.receive(result)

    async def run(self) -> None:
        """Send the whole answer, ending with one terminal event.

        A cancelled run ends with `response.cancelled` or, if it `ends_interrupted`, with
        `response.error`. `send` never raises; without a connection it does nothing.
        """
        response_id = self._answer.response_id
        ended: Event
        try:
            await self._send(ResponseCreated(response_id=response_id, agent=self._answer.agent))
            turn = await self._work()
        except asyncio.CancelledError:
            ended = self.cancelled()
        except UPPError as error:
            logger.warning("%s: an answer failed: %s", self._answer.agent, error)
            code, message = _failure(error)
            ended = self._failed(code, message)
        except _Failed as failed:
            logger.exception("%s: an answer failed", self._answer.agent, exc_info=failed.cause)
            ended = self._failed(ErrorCode.INTERNAL_ERROR, "The agent failed.")
        else:
            ended = self._done(turn)
        self.has_ended = True
        await self._send(ended)

    async def _work(self) -> Turn:
        conversation = await to_conversation(
            history_of(self._answer.input),
            agent_name=self._answer.agent,
            media=self._media,
            accepts_audio=self._bot.model.capabilities.audio_input,
        )
        bot = self._prepared(conversation)
        scripted = bot.model.provider == "scripted"
        messages = open_ended(conversation.messages, resumes=False, scripted=scripted)
        state = AgentState.initial().with_context(messages)
        async with bot.stream(None, state) as stream:
            try:
                async for event in stream:
                    await self._show(event)
                result = await stream.result()
            except UPPError:
                raise
            except Exception as error:
                # Strategies, hooks, middleware and tools are the developer's code.
                raise _Failed(error) from error
        traces = result.state.subagent_traces
        usage = sum((trace.usage for trace in traces if trace.usage is not None), result.turn.usage)
        self._used = usage
        return result.turn

    def _prepared(self, conversation: Conversation) -> Agent:
        """Return the agent with the conversation's system texts, tools and options added."""
        bot = self._bot
        # A server may offer its own tools to a model that calls none.
        tools = self._chat_tools.upp_tools() if bot.model.capabilities.tools else ()
        system = "\n\n".join(text for text in (bot.system or "", *conversation.system) if text)
        llm = bot.llm.with_options(
            system=system or None,
            tools=(*bot.tools, *tools),
            params=params_for(bot, self._answer.input),
        )
        return replace(bot, llm=llm)

    async def _show(self, event: AgentStreamEvent) -> None:
        if event.upp is not None and event.upp.type == "message_stop" and event.upp.delta.usage:
            self._used += event.upp.delta.usage
        for output in self._translator.follow(event):
            if isinstance(output, str):
                delta = Delta(type="text", text=output)
                output = ResponseDelta(  # noqa: PLW2901 text is a delta of the answer
                    response_id=self._answer.response_id, delta=delta, offset=self._output.offset
                )
            self._output.add(output)
            await self._send(output)

    def _usage(self) -> UsageStats | None:
        return usage_stats(self._used) if self._used.total_tokens else None

    def _done(self, turn: Turn) -> ResponseDone:
        return ResponseDone(
            response_id=self._answer.response_id,
            response=ResponseOutput(
                id=self._answer.response_id,
                status="completed",
                output=tuple(self._output.output),
                usage=self._usage(),
                finish_reason=_FINISH_REASONS.get(turn.stop_reason, turn.stop_reason),
            ),
        )

    def cancelled(self) -> Event:
        """Return the final event of a cancelled answer, even one that has not started."""
        if self.ends_interrupted:
            return self._failed(ErrorCode.INTERRUPTED, "The agent's daemon was stopped.")
        return ResponseCancelled(
            response_id=self._answer.response_id,
            partial_output=tuple(self._output.output),
            usage=self._usage(),
        )

    def _failed(self, code: ErrorCode, message: str) -> ResponseError:
        return ResponseError(
            response_id=self._answer.response_id,
            error=ErrorDetail(code=code, message=message),
            usage=self._usage(),
        )


class _Failed(Exception):
    """The agent's own code raised `cause`."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def history_of(event: InputText) -> tuple[Message, ...]:
    """Return the conversation of an input: its messages if it has them, else its text."""
    return event.messages or (Message(role="user", content=event.text),)


def _failure(error: UPPError) -> tuple[ErrorCode, str]:
    if isinstance(error, TooManyRoundsError):
        return ErrorCode.TOO_MANY_STEPS, "The agent used its tools too often without answering."
    default = (ErrorCode.PROVIDER_ERROR, "The agent's model failed. Try again.")
    return _FAILURES.get(error.code, default)
