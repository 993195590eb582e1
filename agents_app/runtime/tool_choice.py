"""A request's demands on its model: unsupported options and the choice of tools.

A forced tool choice holds until the model has called a tool. A model forced in every inference
would call tools until it runs out of rounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents_app.providers.clients import vendor_params
from agents_app.remote.parameters import unknown_options
from agents_app.runtime.offered_tools import tool_definitions
from agents_app.runtime.run_request import RunRequest
from agents_app.selectors import AgentSpec
from uamp.types.content import ToolCallContent
from uamp.types.generation import GenerationOptions
from upp import LLMCapabilities, LLMRequest, LLMResponse, Model, UserMessage
from upp.model import EmittingModel, infer, metadata_entry
from upp.providers.parameters import tool_parameters, unknown_parameters
from upp.stream import Emit

_ACTING = frozenset({"act", "plan_step"})
"""The phases whose prompts are written by a strategy and acted on by the model."""


def refused_options(spec: AgentSpec, request: RunRequest) -> list[str]:
    """Return the names of the options in a request that an agent's model does not support.

    Scripts accept every option and ignore them all.
    """
    if spec.provider == "scripted":
        return []
    requested = {
        name: value
        for name, value in request.params.items()
        if name in GenerationOptions.__struct_fields__
    }
    if spec.kind == "remote" and spec.provider != "openai_compat":
        return unknown_options(spec, requested)
    refused = unknown_parameters(spec.provider, requested)
    if "tool_choice" not in refused and not _can_keep_to(spec, request):
        refused.append("tool_choice")
    return sorted(refused)


def _can_keep_to(spec: AgentSpec, request: RunRequest) -> bool:
    choice = request.params.get("tool_choice")
    if choice in (None, "none", "auto"):
        return True
    names = {name for name, _, _ in tool_definitions(spec, request)}
    if isinstance(choice, Mapping) and choice["function"]["name"] not in names:
        return False
    thinking = vendor_params(spec, request.params).get("thinking")
    # Anthropic's API does not allow a forced tool together with thinking.
    thinks = isinstance(thinking, dict) and thinking.get("type") != "disabled"
    return bool(names) and not (spec.provider == "anthropic" and thinks)


def choosing(model: Model, provider: str, request: RunRequest) -> Model:
    """Wrap the model of a run so that it follows the request's tool choice."""
    choice = request.params.get("tool_choice")
    parallel = request.params.get("parallel_tool_calls")
    if choice in (None, "auto") and parallel is None:
        return model
    has_called = any(isinstance(item, ToolCallContent) for item in request.resume) or bool(
        request.checkpoint and request.checkpoint.tool_rounds
    )
    return ChoosingModel(model, provider, choice, parallel, has_called=has_called)


@dataclass
class ChoosingModel(EmittingModel):
    """A model that is sent a request's tool choice until it has called a tool.

    `provider_kind` is the provider as agents name it. One run calls it, one inference at a time.
    """

    model: Model
    provider_kind: str
    choice: str | Mapping[str, Any] | None
    parallel: bool | None
    has_called: bool = False

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

    async def infer(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """See Model."""
        if not request.tools or _is_for_strategy(request):
            return await infer(self.model, request, emit)
        choice = self.choice if self.choice == "none" or not self.has_called else None
        if choice == "none" and request.structure is not None:
            # A call may stand in for the structure, so this is the only tool allowed.
            return await infer(self.model, replace(request, tools=()), emit)
        tool_params = tool_parameters(self.provider_kind, choice=choice, parallel=self.parallel)
        if "toolConfig" in tool_params:
            configured = request.params.get("toolConfig") or {}
            tool_params["toolConfig"] = {**configured, **tool_params["toolConfig"]}
        bound = replace(request, params={**request.params, **tool_params})
        response = await infer(self.model, bound, emit)
        self.has_called = self.has_called or bool(response.message.tool_calls)
        return response


def _is_for_strategy(request: LLMRequest) -> bool:
    """Return whether a strategy calls the model for its own purposes and ignores its calls."""
    last = request.messages[-1] if request.messages else None
    if not isinstance(last, UserMessage):
        return False
    mark = metadata_entry(last, "uap")
    return bool(mark.get("synthetic")) and mark.get("phase") not in _ACTING
