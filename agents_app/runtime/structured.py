"""Answers in the form that a client requested with `response_format` (UAMP §5.1, §8.3).

Vendors that can constrain their model to a schema do so; every answer is checked here in any case
before it is shown. An answer that does not fit is requested again once, as a step that is admitted
and paid for like any other. If that does not fit either, it is shown, and the run fails with
`invalid_output`.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from agents_app.runtime.failures import AgentError
from agents_app.selectors import AgentSpec
from agents_app.workers.schema_checks import (
    NoSchemaError,
    TooMuchWorkError,
    is_quick,
    misfit,
    slow_misfit,
)
from uamp.errors import ErrorCode
from uamp.types.session import ResponseFormat
from uap import AgentStreamResult, ExecutionContext, ExecutionResult, ExecutionStrategy
from uap.execution import loop
from uap.stream import Emit, follow
from upp import LLMCapabilities, LLMRequest, LLMResponse, Model, StreamEvent, Turn, UserMessage
from upp.model import EmittingModel, infer
from upp.stream import Emit as EmitModel
from upp.stream import reasoning_delta

FORM_CHARS = 1_000_000
"""The most characters of an answer that are held back; a longer answer is invalid."""
# Its checks are short: the process waits for these threads when it exits.
_QUICK = ThreadPoolExecutor(2, thread_name_prefix="response_format")
QUEUE_SECONDS = 30.0
"""A check that has not begun by then is abandoned, so that one client cannot hang another."""
_PROMPT_CHARS = 20_000
PROBLEM_CHARS = 1_500
"""More than a description of what does not fit has (`schema_checks`)."""
_MARK = {"uap": {"synthetic": True, "phase": "form"}}


class Form:
    """The form of one answer: its schema, and how often the model may be asked again.

    `asker` is the payer or visitor; checks of one asker run one after another. The tasks of one run
    call it; a check runs in a thread or in another process.
    """

    def __init__(
        self, agent: str, schema: Mapping[str, Any], *, asker: str, repeats: int = 1
    ) -> None:
        self.schema = dict(schema)
        self.repeats = repeats
        # Whether the model's text is the answer itself, not a step towards it.
        self.is_answering = True
        self._agent = agent
        self._asker = asker
        self._judged: tuple[str, str | None] | None = None

    async def check(self) -> None:
        """Raise AgentError if the schema is invalid or takes too long to check."""
        await self._misfit(None)

    async def problem(self, text: str) -> str | None:
        """Return why a text is not a valid answer, or None if it is."""
        if self._judged is None or self._judged[0] != text:
            try:
                value = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError) as error:
                self._judged = text, f"It is not JSON: {error}."
            else:
                self._judged = text, await self._misfit(value)
        return self._judged[1]

    async def _misfit(self, value: Any) -> str | None:
        try:
            if not is_quick(self.schema, value):
                return await slow_misfit(self.schema, value, asker=self._asker, wait=QUEUE_SECONDS)
            check = partial(misfit, self.schema, value, asker=self._asker)
            async with asyncio.timeout(QUEUE_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(_QUICK, check)
        except NoSchemaError as error:
            text = "The schema of response_format is not a JSON Schema, or refers to another one."
            raise AgentError(text, code=ErrorCode.INVALID_OUTPUT) from error
        except (TooMuchWorkError, TimeoutError) as error:
            text = "Checking an answer against the schema of response_format takes too long."
            raise AgentError(text, code=ErrorCode.INVALID_OUTPUT) from error

    def misfit_error(self, problem: str) -> AgentError:
        """Return the error of a run whose answer does not fit."""
        text = f"The answer of {self._agent} does not match the response_format. {problem}"
        return AgentError(text, code=ErrorCode.INVALID_OUTPUT)


def form_of(spec: AgentSpec, response_format: ResponseFormat | None, *, asker: str) -> Form | None:
    """Return the form of the answer to a request by `asker`, or None for plain text.

    Scripts are not asked again, since they would repeat themselves.
    """
    schema = schema_of_form(response_format)
    if schema is None:
        return None
    repeats = 0 if spec.provider == "scripted" else 1
    return Form(spec.name, schema, asker=asker, repeats=repeats)


def schema_of_form(response_format: ResponseFormat | None) -> Mapping[str, Any] | None:
    """Return the JSON Schema of a requested form, or None for plain text."""
    if response_format is None or response_format.type == "text":
        return None
    schema = response_format.json_schema.schema if response_format.json_schema is not None else None
    return schema or {"type": "object"}


def repeat_prompt(reason: str, schema: Mapping[str, Any]) -> str:
    """Return the prompt for an answer in a form, after the reason."""
    text = msgspec.json.encode(schema).decode()
    schema_note = f"\nThe JSON Schema of the answer: {text}" if len(text) <= _PROMPT_CHARS else ""
    return f"{reason} Write JSON and nothing else: no prose and no code fence.{schema_note}"


@dataclass(frozen=True)
class FormedModel(EmittingModel):
    """A model whose answers are held back until they are known to fit their form.

    Text next to calls, or before the answer is requested, becomes thinking. An answer that does not
    fit is not shown while it can be requested again.
    """

    model: Model
    form: Form

    @property
    def model_id(self) -> str:
        """See Model."""
        return self.model.model_id

    @property
    def provider(self) -> str:
        """See Model."""
        return self.model.provider

    @property
    def capabilities(self) -> LLMCapabilities:
        """See Model."""
        return self.model.capabilities

    async def infer(self, request: LLMRequest, emit: EmitModel) -> LLMResponse:
        """See Model."""
        form, structure = self.form, request.structure
        if structure is not (form.schema if form.is_answering else None):
            # The strategy calls the model for its own purposes.
            return await infer(self.model, request, emit)
        held: list[StreamEvent] = []
        chars = 0

        async def hold(event: StreamEvent) -> None:
            nonlocal chars
            chars += len(event.delta.text or "")
            if chars > FORM_CHARS:
                raise form.misfit_error(f"It has more than {FORM_CHARS} characters.")
            if event.type == "text_delta" or (held and event.type != "reasoning_delta"):
                held.append(event)
            else:
                await emit(event)

        response = await infer(self.model, request, hold)
        for event in await self._visible_events(held, response):
            await emit(event)
        return response

    async def _visible_events(
        self, held: list[StreamEvent], response: LLMResponse
    ) -> list[StreamEvent]:
        if not self.form.is_answering or response.message.tool_calls:
            return [_thought(event) for event in held]
        fits = response.stop_reason == "content_filter" or not self.form.repeats
        if fits or await self.form.problem(response.message.text) is None:
            return held
        return [event for event in held if event.type != "text_delta"]


def _thought(event: StreamEvent) -> StreamEvent:
    if event.type != "text_delta":
        return event
    return reasoning_delta(event.delta.text or "", index=event.index)


@dataclass(frozen=True)
class Formed:
    """A strategy that ends with an answer in the form, or fails if the answer does not fit.

    A plan is carried out in plain text first, since its steps have their own prompts; the answer is
    requested afterwards.
    """

    strategy: ExecutionStrategy
    form: Form

    @property
    def name(self) -> str:
        """See ExecutionStrategy."""
        return self.strategy.name

    async def execute(self, context: ExecutionContext) -> ExecutionResult:
        """See ExecutionStrategy."""
        return await self._run(context, None)

    def stream(self, context: ExecutionContext) -> AgentStreamResult:
        """See ExecutionStrategy."""
        return AgentStreamResult(lambda emit: self._run(context, emit))

    async def _run(self, context: ExecutionContext, emit: Emit | None) -> ExecutionResult:
        form, is_plan = self.form, self.strategy.name == "plan"
        form.is_answering = not is_plan
        plain = replace(context, llm=context.llm.with_options(structure=None))
        result = await _executed(self.strategy, plain if is_plan else context, emit)
        form.is_answering = True
        if result.turn.response.has_tool_calls:
            # The run has paused at calls; this is not an answer yet.
            return result
        if is_plan:
            result = await self._ask(context, result, emit, "Give the whole answer now.")
        while problem := await self._problem(result.turn):
            if not form.repeats:
                raise form.misfit_error(problem)
            form.repeats -= 1
            text = f"Your answer does not fit. {problem} Give it again."
            result = await self._ask(context, result, emit, text)
        return result

    async def _problem(self, turn: Turn) -> str | None:
        # An answer cut off by a filter is reported as filtered.
        is_filtered = turn.stop_reason == "content_filter"
        return None if is_filtered else await self.form.problem(turn.response.text)

    async def _ask(
        self, context: ExecutionContext, so_far: ExecutionResult, emit: Emit | None, reason: str
    ) -> ExecutionResult:
        prompt = UserMessage(content=repeat_prompt(reason, self.form.schema), metadata=_MARK)
        again = replace(context, state=so_far.state, input=prompt)
        result = await _executed(loop(max_iterations=0), again, emit)
        before, turn = so_far.turn, result.turn
        whole = msgspec.structs.replace(
            turn,
            messages=(*before.messages, *turn.messages),
            tool_executions=(*before.tool_executions, *turn.tool_executions),
            usage=before.usage + turn.usage,
            cycles=before.cycles + turn.cycles,
        )
        return ExecutionResult(turn=whole, state=result.state)


async def _executed(
    strategy: ExecutionStrategy, context: ExecutionContext, emit: Emit | None
) -> ExecutionResult:
    if emit is None:
        return await strategy.execute(context)
    return await follow(strategy.stream(context), emit)
